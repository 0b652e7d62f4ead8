"""Metadata and times come back as they went."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st
from recalld import _convert
from recalld.v1 import memory_pb2, types_pb2

INSTANTS = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001
    max_value=datetime(9998, 12, 31),  # noqa: DTZ001
    timezones=st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)
NAMES = st.text(min_size=1, max_size=8)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=8)
    | INSTANTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


def alike(sent: Any, received: Any) -> bool:
    """Tell whether values are equal and of one type, all the way down: 1, 1.0 and True are three values."""
    if isinstance(sent, dict):
        return sent.keys() == received.keys() and all(alike(sent[name], received[name]) for name in sent)
    if isinstance(sent, list):
        return len(sent) == len(received) and all(map(alike, sent, received))
    return type(sent) is type(received) and repr(sent) == repr(received)


def in_utc(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: in_utc(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [in_utc(inner) for inner in value]
    # `fold` tells two readings of a local time apart; in UTC there is one.
    return value.astimezone(UTC).replace(fold=0) if isinstance(value, datetime) else value


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_metadata_comes_back_exactly(metadata: dict[str, Any]) -> None:
    sent = memory_pb2.Memory()
    _convert.put_metadata(sent.metadata, "metadata", metadata)
    received = memory_pb2.Memory.FromString(sent.SerializeToString())
    assert alike(in_utc(metadata), _convert.metadata_from_proto(received.metadata))


@given(INSTANTS)
def test_an_instant_is_that_of_protobuf(instant: datetime) -> None:
    sent = types_pb2.Value()
    _convert.put_value(sent, "t", instant)
    expected = Timestamp()
    expected.FromDatetime(instant)
    assert sent.time_value == expected
    assert _convert.time_from_proto(expected) == instant


@given(st.timedeltas(timedelta(days=-3_000_000), timedelta(days=3_000_000)))
def test_a_duration_is_that_of_protobuf(length: timedelta) -> None:
    sent, expected = Duration(), Duration()
    _convert.put_duration(sent, "ttl", length)
    expected.FromTimedelta(length)
    assert sent == expected
    assert _convert.duration_from_proto(sent) == length


def test_a_value_of_a_later_contract_is_none() -> None:
    assert _convert.value_from_proto(types_pb2.Value()) is None


def test_nanoseconds_are_cut_and_not_rounded() -> None:
    before_1970 = Timestamp(seconds=-1, nanos=999_999_999)
    assert _convert.time_from_proto(before_1970) == datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    assert _convert.duration_from_proto(Duration(nanos=-1_999)) == timedelta(microseconds=-1)
