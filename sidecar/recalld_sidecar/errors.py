"""Errors that are born in Python, in the same shape as those of the core.

Every error that a caller sees is a CoreError: a gRPC status code, a message, and a serialised
google.rpc.Status that repeats both and carries one ErrorInfo with a reason of errors.proto. Nothing of an
unexpected exception may reach a caller; its traceback goes to the log under the request's id.
"""

import grpc
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from recalld.v1 import errors_pb2

from recalld_sidecar._core import CoreError

DOMAIN = "recalld"
_PREFIX = "ERROR_REASON_"

STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}
"""gRPC status codes by number."""


def call_error(
    code: grpc.StatusCode,
    reason: "errors_pb2.ErrorReason.ValueType",
    message: str,
    **metadata: str,
) -> CoreError:
    """Make the error of a call."""
    number: int = code.value[0]
    status = status_pb2.Status(code=number, message=message)
    name = errors_pb2.ErrorReason.Name(reason).removeprefix(_PREFIX)
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=name, domain=DOMAIN, metadata=metadata))
    return CoreError(number, message, status.SerializeToString())


def unknown_method(method: str) -> CoreError:
    """Make the error for a method that is not served."""
    return call_error(
        grpc.StatusCode.UNIMPLEMENTED,
        errors_pb2.ERROR_REASON_UNKNOWN_METHOD,
        f"{method} is not a method of this server",
    )


def malformed_request(message_name: str) -> CoreError:
    """Make the error for bytes that are not the request message of their method."""
    return call_error(
        grpc.StatusCode.INVALID_ARGUMENT,
        errors_pb2.ERROR_REASON_MALFORMED_REQUEST,
        f"the request is not a {message_name}",
    )


def internal(request_id: str) -> CoreError:
    """Make the error for a fault of the sidecar, which says no more than where to look."""
    return call_error(
        grpc.StatusCode.INTERNAL,
        errors_pb2.ERROR_REASON_INTERNAL,
        f"the sidecar failed; its log has the cause under request {request_id}",
        request_id=request_id,
    )


def reason_of(error: CoreError) -> str:
    """Read the stable reason from an error's ErrorInfo; empty when there is none."""
    info = error_details_pb2.ErrorInfo()
    for detail in status_pb2.Status.FromString(error.status).details:
        if detail.Is(info.DESCRIPTOR) and detail.Unpack(info):
            return str(info.reason)
    return ""
