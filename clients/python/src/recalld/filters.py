"""Filters: conditions on the attributes of memories.

    from recalld.filters import field

    cheap = field("metadata.price").range(lt=100) & ~field("tags").equals("sold")

A filter is built from conditions on a `field`, joined with `&` (all hold), `|` (one holds) and `~` (does not
hold). It is the contract's `recalld.v1.Filter`, to be seen at `Filter.proto`; nothing is added to it. What a
field can be and which conditions fit it is the server's to check and must never be repeated here.
"""

from collections.abc import Collection
from datetime import datetime
from typing import NoReturn

from google.protobuf.text_format import MessageToString

from ._convert import put, put_value
from ._errors import invalid
from .v1 import filter_pb2

__all__ = ["Field", "Filter", "Scalar", "field"]

Scalar = bool | int | float | str | datetime
"""A value that a field is compared with."""


class Filter:
    """A condition, or conditions joined; immutable. Made by `field(...)`, never directly."""

    __slots__ = ("_proto",)

    def __init__(self, proto: filter_pb2.Filter) -> None:
        self._proto = proto

    @property
    def proto(self) -> filter_pb2.Filter:
        """A copy of the message that is sent."""
        copy = filter_pb2.Filter()
        copy.CopyFrom(self._proto)
        return copy

    def __and__(self, other: "Filter") -> "Filter":
        return _joined("all", self, other)

    def __or__(self, other: "Filter") -> "Filter":
        return _joined("any", self, other)

    def __invert__(self) -> "Filter":
        proto = filter_pb2.Filter()
        getattr(proto, "not").CopyFrom(self._proto)
        return Filter(proto)

    def __bool__(self) -> NoReturn:
        # `a and b` would quietly be b alone.
        raise TypeError(
            "a filter is neither true nor false: join filters with &, | and ~, not with and, or and not"
        )

    def __repr__(self) -> str:
        return f"Filter({MessageToString(self._proto, as_one_line=True, as_utf8=True)})"


class Field:
    """A field of memories, on which conditions are put."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def equals(self, value: Scalar) -> Filter:
        """Hold where the field has this value."""
        condition = self._condition()
        put_value(condition.equals, self.name, value)
        return _filter(condition)

    def in_(self, values: Collection[Scalar]) -> Filter:
        """Hold where the field has one of these values."""
        if isinstance(values, str | bytes):
            raise invalid(self.name, "must be compared with a list of values, not with one text")
        condition = self._condition()
        operands = getattr(condition, "in")
        operands.SetInParent()
        for value in values:
            put_value(operands.values.add(), self.name, value)
        return _filter(condition)

    def range(
        self,
        *,
        gte: Scalar | None = None,
        gt: Scalar | None = None,
        lte: Scalar | None = None,
        lt: Scalar | None = None,
    ) -> Filter:
        """Hold where the field lies within these bounds: numbers, times or text."""
        condition = self._condition()
        condition.range.SetInParent()
        for name, bound in (("gte", gte), ("gt", gt), ("lte", lte), ("lt", lt)):
            if bound is not None:
                put_value(getattr(condition.range, name), self.name, bound)
        return _filter(condition)

    def exists(self) -> Filter:
        """Hold where the field is present."""
        return self._presence(present=True)

    def missing(self) -> Filter:
        """Hold where the field is absent."""
        return self._presence(present=False)

    def prefix(self, text: str) -> Filter:
        """Hold where the field is text that starts with this, byte for byte."""
        condition = self._condition()
        put(condition, f"{self.name}.", prefix=text)
        return _filter(condition)

    def __repr__(self) -> str:
        return f"field({self.name!r})"

    def _condition(self) -> filter_pb2.Condition:
        condition = filter_pb2.Condition()
        put(condition, "", field=self.name)
        return condition

    def _presence(self, *, present: bool) -> Filter:
        condition = self._condition()
        condition.exists = present
        return _filter(condition)


def field(name: str) -> Field:
    """Name a field of memories.

    `kind`, `tags`, `key`, `origin`, `source.uri`, `source.session`, `source.speaker` (text), `importance`,
    `confidence` (numbers), `occurred_at`, `created_at`, `updated_at`, `expires_at` (times), or
    `metadata.<path>`. Where a field holds several values, a condition holds when it holds for any of them.
    """
    return Field(name)


def _filter(condition: filter_pb2.Condition) -> Filter:
    return Filter(filter_pb2.Filter(condition=condition))


def _joined(how: str, *operands: Filter) -> Filter:
    """Join filters in one node: `a & b & c` is one list of three, since the depth of a filter is limited."""
    proto = filter_pb2.Filter()
    joined = getattr(proto, how).filters
    for operand in operands:
        if not isinstance(operand, Filter):
            raise TypeError(f"a filter can be joined with a filter, not with {type(operand).__name__}")
        if operand._proto.WhichOneof("node") == how:  # noqa: SLF001
            joined.extend(getattr(operand._proto, how).filters)  # noqa: SLF001
        else:
            joined.append(operand._proto)  # noqa: SLF001
    return Filter(proto)
