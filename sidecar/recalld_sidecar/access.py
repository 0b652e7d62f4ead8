"""The access log: a line for every call that failed and, at `debug`, for every other one.

It is written where a handler runs, so that a call is logged once on each way in. Calls that Rust answers by
itself are logged by `core_rs/python/src/access.rs` in the same words.
"""

import logging
import time
from collections.abc import Callable

import grpc

from recalld_sidecar import errors
from recalld_sidecar._core import CoreError
from recalld_sidecar.services import Handler

_log = logging.getLogger(__name__)
_access = logging.getLogger("recalld.access")

LoggedHandler = Callable[[str, bytes, float | None, str], bytes]
"""A handler of one method: identity, request, seconds left and request id in, the response out.

Raises CoreError and nothing else.
"""


def logged(method: str, handler: Handler) -> LoggedHandler:
    """Make a handler log its calls, and hide what it did not mean to raise."""

    def answer(identity: str, request: bytes, timeout: float | None, request_id: str) -> bytes:
        started = time.perf_counter()
        try:
            response = handler(method, identity, request, timeout)
        except CoreError as error:
            _write_failure(error, method, request_id, started)
            raise
        except Exception:  # noqa: BLE001  whatever a handler raises, nothing of it may reach the caller
            _log.exception("a handler failed", extra={"request_id": request_id, "method": method})
            fault = errors.internal(request_id)
            _write_failure(fault, method, request_id, started)
            raise fault from None
        if _access.isEnabledFor(logging.DEBUG):
            _write(logging.DEBUG, "call", method, request_id, started, code="OK")
        return response

    return answer


def _write_failure(failure: CoreError, method: str, request_id: str, started: float) -> None:
    code = errors.STATUS_CODES.get(failure.code, grpc.StatusCode.UNKNOWN)
    reason = errors.reason_of(failure)
    level = _level(code, reason)
    if _access.isEnabledFor(level):
        # The message of a refused request may quote it; that of a fault does not.
        message = failure.message if level >= logging.WARNING else "call"
        _write(level, message, method, request_id, started, code=code.name, reason=reason)


def _level(code: grpc.StatusCode, reason: str) -> int:
    if reason in {"OVERLOADED", "NOT_SERVING"}:
        # They come in floods, and writing each down would make the flood worse; the metrics count them.
        return logging.DEBUG
    if code in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}:
        return logging.ERROR
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}:
        return logging.WARNING
    return logging.INFO


def _write(
    level: int,
    message: str,
    method: str,
    request_id: str,
    started: float,
    **fields: str,
) -> None:
    took_ms = round((time.perf_counter() - started) * 1000, 3)
    _access.log(
        level,
        message,
        extra={"request_id": request_id, "method": method, "took_ms": took_ms, **fields},
    )
