"""Filters of the contract in few words."""

from typing import Any

from recalld.v1.filter_pb2 import Condition, Filter, FilterList
from recalld.v1.types_pb2 import Value


def text(value: str) -> Value:
    return Value(string_value=value)


def condition(field: str, **test: Any) -> Filter:
    return Filter(condition=Condition(field=field, **test))


def negation(of: Filter) -> Filter:
    result = Filter()
    # The field has the name of a keyword.
    getattr(result, "not").CopyFrom(of)
    return result


def all_of(*filters: Filter) -> Filter:
    return Filter(all=FilterList(filters=filters))


def any_of(*filters: Filter) -> Filter:
    return Filter(any=FilterList(filters=filters))
