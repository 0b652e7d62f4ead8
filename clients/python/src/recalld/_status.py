"""Reads errors: from what a call or one of its searches answers to the tree in `_errors`.

The details are in a google.rpc.Status. Where it is missing or unreadable, as in errors of a proxy or of gRPC
itself, code and message are enough. This module must never decide what is repeated.
"""

from datetime import timedelta
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

from ._convert import duration_from_proto
from ._errors import (
    AlreadyExists,
    Conflict,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    RecalldError,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
    Violation,
)
from ._transport import CallFailed

_DOMAIN = "recalld"

_PLAIN: dict[grpc.StatusCode, type[RecalldError]] = {
    error.code: error
    for error in (
        AlreadyExists,
        Conflict,
        DataLoss,
        DeadlineExceeded,
        FailedPrecondition,
        Internal,
        NotFound,
        Unavailable,
        Unimplemented,
    )
}


def error_from(failed: CallFailed, *, within: str = "") -> RecalldError:
    """Make the error that a failed call means.

    `within` is a prefix that is cut from the paths of wrong fields, so that an error names the argument that
    the user gave: `content`, where the request has `items[0].content`.
    """
    code, message = failed.code, failed.message
    info, bad_request, retry = _details(failed.status)
    reason = info.reason
    metadata = dict(info.metadata)
    if code is grpc.StatusCode.INVALID_ARGUMENT:
        violations = [
            Violation(wrong.field.removeprefix(within), wrong.description)
            for wrong in bad_request.field_violations
        ]
        return InvalidArgument(message, violations=violations, reason=reason, metadata=metadata)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED:
        return ResourceExhausted(message, retry_after=retry, reason=reason, metadata=metadata)
    error = _PLAIN.get(code, RecalldError)(message, reason=reason, metadata=metadata)
    error.code = code
    return error


def _details(serialized: bytes) -> tuple[Any, Any, timedelta | None]:
    """Find the ErrorInfo, the BadRequest (both empty when not there) and the delay of the RetryInfo."""
    info = error_details_pb2.ErrorInfo()
    bad_request = error_details_pb2.BadRequest()
    retry: timedelta | None = None
    try:
        for detail in status_pb2.Status.FromString(serialized).details:
            if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR):
                found = error_details_pb2.ErrorInfo.FromString(detail.value)
                if found.domain == _DOMAIN:
                    info = found
            elif detail.Is(error_details_pb2.BadRequest.DESCRIPTOR):
                bad_request = error_details_pb2.BadRequest.FromString(detail.value)
            elif detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR):
                told = error_details_pb2.RetryInfo.FromString(detail.value)
                retry = duration_from_proto(told.retry_delay)
    except DecodeError:
        pass  # What was read so far counts.
    return info, bad_request, retry
