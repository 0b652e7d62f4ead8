"""The builder says what the contract says."""

from datetime import UTC, datetime
from typing import Any

import pytest
from google.protobuf import text_format
from recalld import InvalidArgument
from recalld.filters import Filter, field
from recalld.v1 import filter_pb2

KIND = 'condition { field: "kind" equals { string_value: "fact" } }'


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (field("kind").equals("fact"), KIND),
        (field("metadata.n").equals(1), 'condition { field: "metadata.n" equals { int_value: 1 } }'),
        (
            field("metadata.n").equals(value=True),
            'condition { field: "metadata.n" equals { bool_value: true } }',
        ),
        (
            field("metadata.n").in_([1, 2.5]),
            'condition { field: "metadata.n" in { values { int_value: 1 } values { double_value: 2.5 } } }',
        ),
        (field("tags").in_([]), 'condition { field: "tags" in {} }'),
        (
            field("created_at").range(
                gte=datetime(1970, 1, 1, 0, 1, tzinfo=UTC), lt=datetime(1970, 1, 2, tzinfo=UTC)
            ),
            """condition { field: "created_at" range {
                 gte { time_value { seconds: 60 } } lt { time_value { seconds: 86400 } } } }""",
        ),
        (
            field("importance").range(gt=0, lte=1),
            'condition { field: "importance" range { gt { int_value: 0 } lte { int_value: 1 } } }',
        ),
        (field("importance").range(), 'condition { field: "importance" range {} }'),
        (field("key").exists(), 'condition { field: "key" exists: true }'),
        (field("key").missing(), 'condition { field: "key" exists: false }'),
        (field("source.uri").prefix("s3://"), 'condition { field: "source.uri" prefix: "s3://" }'),
        (~field("kind").equals("fact"), f"not {{ {KIND} }}"),
        (
            field("kind").equals("fact") & field("key").exists() & field("key").prefix("a"),
            f"""all {{ filters {{ {KIND} }} filters {{ condition {{ field: "key" exists: true }} }}
                       filters {{ condition {{ field: "key" prefix: "a" }} }} }}""",
        ),
        (
            field("kind").equals("fact") | field("key").exists() & ~field("key").prefix("a"),
            f"""any {{ filters {{ {KIND} }} filters {{ all {{
                  filters {{ condition {{ field: "key" exists: true }} }}
                  filters {{ not {{ condition {{ field: "key" prefix: "a" }} }} }} }} }} }}""",
        ),
    ],
)
def test_a_filter_is_its_message(built: Filter, expected: str) -> None:
    assert built.proto == text_format.Parse(expected, filter_pb2.Filter())


def test_joining_leaves_the_parts_as_they_were() -> None:
    one, two = field("kind").equals("fact"), field("key").exists()
    before = (one.proto, two.proto)
    joined = one | two
    assert (joined | ~one).proto != joined.proto
    assert (one.proto, two.proto) == before
    one.proto.Clear()
    assert one.proto == before[0]


def test_a_filter_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"with &, \| and ~"):
        _ = field("kind").equals("fact") and field("key").exists()


def test_a_filter_is_joined_only_with_a_filter() -> None:
    with pytest.raises(TypeError, match="not with bool"):
        _ = field("kind").equals("fact") & True  # type: ignore[operator]


@pytest.mark.parametrize(
    "build",
    [
        lambda name: field(name).equals(datetime(2031, 5, 12)),  # noqa: DTZ001
        lambda name: field(name).equals(None),  # type: ignore[arg-type]
        lambda name: field(name).range(gte=2**63),
        lambda name: field(name).in_("fact"),
    ],
)
def test_what_cannot_be_sent_names_the_field(build: Any) -> None:
    with pytest.raises(InvalidArgument) as caught:
        build("metadata.order")
    assert caught.value.field == "metadata.order"


def test_a_filter_is_printed_as_its_message() -> None:
    shown = repr(field("kind").equals("fact"))
    assert shown == 'Filter(condition { field: "kind" equals { string_value: "fact" } })'
