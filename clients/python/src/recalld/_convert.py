"""Converts between plain Python values and the values of the contract, exactly or not at all.

What the wire cannot hold is an InvalidArgument that names the argument; nothing is rounded, guessed or
dropped on the way out. Limits (lengths, counts, ranges) are the server's to check and must never be repeated
here.
"""

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from ._errors import invalid
from .v1 import types_pb2

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_A_DAY = 86_400

# The contract lets values nest 16 deep, and the server counts. This only keeps a list that contains itself
# from being followed for ever, and is never stricter than the server.
_MOST_NESTED = 16

# In this order: every bool is an int too.
_SCALARS = ((bool, "bool_value"), (int, "int_value"), (float, "double_value"), (str, "string_value"))


def put(message: Message, path: str, **fields: object) -> None:
    """Set scalar fields of a message, leaving out what is None.

    `path` is the prefix under which an error names them, as in `items[3].`. A value of the wrong type, an
    integer out of range and text that is not Unicode are InvalidArgument.
    """
    for name, value in fields.items():
        if value is not None:
            _set(message, name, value, path + name)


def put_all(message: Message, path: str, **fields: Collection[object]) -> None:
    """Fill repeated scalar fields of a message, as `put` does.

    One text where a list of texts belongs is refused: it would be sent letter by letter.
    """
    for name, values in fields.items():
        if isinstance(values, str | bytes):
            raise invalid(path + name, "must be a list of texts, not one text")
        try:
            getattr(message, name).extend(values)
        except (TypeError, ValueError) as error:
            raise invalid(path + name, str(error)) from error


def put_times(message: Message, path: str, **fields: datetime | None) -> None:
    """Set instants of a message, as `put` does.

    A datetime without a time zone is refused: it names no instant, and no zone can be assumed.
    """
    for name, value in fields.items():
        if value is not None:
            _put_time(getattr(message, name), value, path + name)


def put_duration(target: Duration, path: str, value: timedelta) -> None:
    """Write a length of time."""
    if not isinstance(value, timedelta):
        raise invalid(path, f"must be a timedelta, not {type(value).__name__}")
    seconds = value.days * _SECONDS_A_DAY + value.seconds
    nanos = value.microseconds * 1000
    if seconds < 0 < nanos:
        # A timedelta keeps its microseconds positive; in a Duration both parts have one sign.
        seconds, nanos = seconds + 1, nanos - 1_000_000_000
    target.seconds = seconds
    target.nanos = nanos


def put_value(target: types_pb2.Value, path: str, value: object, depth: int = 0) -> None:
    """Write a typed value: bool, int of 64 bits, float, str, datetime, or a list or dict of these."""
    for python_type, kind in _SCALARS:
        if isinstance(value, python_type):
            _set(target, kind, value, path)
            return
    if isinstance(value, datetime):
        _put_time(target.time_value, value, path)
        return
    if not isinstance(value, list | dict):
        raise invalid(path, f"cannot hold a value of type {type(value).__name__}")
    if depth == _MOST_NESTED:
        raise invalid(path, f"is nested more than {_MOST_NESTED} deep")
    if isinstance(value, list):
        target.list_value.SetInParent()
        for index, element in enumerate(value):
            put_value(target.list_value.values.add(), f"{path}[{index}]", element, depth + 1)
    else:
        target.map_value.SetInParent()
        for name, element in value.items():
            put_value(entry(target.map_value.fields, path, name), named(path, name), element, depth + 1)


def put_metadata(target: Any, path: str, metadata: Mapping[str, Any]) -> None:
    """Write attributes into a map field of values."""
    if not isinstance(metadata, Mapping):
        raise invalid(path, f"must be a mapping of names to values, not {type(metadata).__name__}")
    for name, value in metadata.items():
        put_value(entry(target, path, name), named(path, name), value)


def entry(fields: Any, path: str, name: object) -> Any:
    """Make an entry of a map field whose values are messages."""
    try:
        return fields[name]
    except (TypeError, ValueError) as error:
        raise invalid(named(path, name), str(error)) from error


def named(path: str, name: object) -> str:
    """Extend the path of a map field by a name of the user's, quoted where it would read as more."""
    text = str(name)
    plain = text.isprintable() and text != "" and "." not in text
    return f"{path}.{text}" if plain else f"{path}[{json.dumps(text)}]"


def time_from_proto(instant: Timestamp) -> datetime:
    """Read an instant, in UTC, cut to the microsecond that a datetime can hold."""
    return _EPOCH + timedelta(0, instant.seconds, instant.nanos // 1000)


def duration_from_proto(duration: Duration) -> timedelta:
    """Read a length of time, cut to microseconds."""
    return timedelta(0, duration.seconds, int(duration.nanos / 1000))


def value_from_proto(value: types_pb2.Value) -> Any:
    """Read a typed value. A type that this client is too old to know is None."""
    match value.WhichOneof("kind"):
        case None:
            return None
        case "time_value":
            return time_from_proto(value.time_value)
        case "list_value":
            return [value_from_proto(element) for element in value.list_value.values]
        case "map_value":
            return metadata_from_proto(value.map_value.fields)
        case kind:
            return getattr(value, kind)


def metadata_from_proto(fields: Mapping[str, types_pb2.Value]) -> dict[str, Any]:
    """Read a map field of values, sorted by name: the wire has no order."""
    return {name: value_from_proto(fields[name]) for name in sorted(fields)}


def _set(message: Message, name: str, value: object, path: str) -> None:
    try:
        setattr(message, name, value)
    except (TypeError, ValueError) as error:
        raise invalid(path, str(error)) from error


def _put_time(target: Timestamp, value: datetime, path: str) -> None:
    if not isinstance(value, datetime):
        raise invalid(path, f"must be a datetime, not {type(value).__name__}")
    if value.utcoffset() is None:
        raise invalid(path, "must have a time zone: a naive datetime names no instant")
    since = value - _EPOCH
    target.seconds = since.days * _SECONDS_A_DAY + since.seconds
    target.nanos = since.microseconds * 1000
