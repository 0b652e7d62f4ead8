"""The gRPC server: every call as bytes, health, reflection, and an end that loses nothing.

One generic handler serves every method of the registry without (de)serialising: a call costs one dictionary
lookup and one call of its handler, which for the data plane is Rust with the GIL released. This module knows
how gRPC says things (deadlines, peers, metadata, statuses) and must never know what a method means.
"""

import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from recalld_sidecar import errors
from recalld_sidecar._core import CoreError
from recalld_sidecar.config import TcpAddress, UnixAddress, private_runtime_folder
from recalld_sidecar.services import Handler
from recalld_sidecar.sockets import claimed

_log = logging.getLogger(__name__)
_access = logging.getLogger("recalld.access")

MAX_MESSAGE_BYTES = 32 << 20
"""Twice the largest request that the contract allows, so that the core refuses it with a reason."""

_REQUEST_ID = "x-request-id"
_REQUEST_ID_FORM = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_STATUS_DETAILS = "grpc-status-details-bin"

_SPARE_THREADS = 16
"""Threads beyond the calls that the core admits: for health checks, and to tell the rest to come later."""
_STREAM_THREADS = 256
"""Most health watches and reflection streams at a time. Each holds a thread, but none that answers calls."""
_CALLS_A_THREAD = 8
"""Calls that may wait for a thread, a multiple of the threads; gRPC itself refuses more."""

_NO_DEADLINE_SECONDS = 1e9
"""grpcio gives the end of time as the deadline of a call that has none."""

_OPTIONS = (
    # Two processes on one port would share its calls.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # A TCP peer that vanished is noticed; clients may look after us every 10 s, also between calls.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)


class ServerError(Exception):
    """The server cannot listen; the message names the address."""


class GrpcServer:
    """Serves a registry of handlers on Unix sockets and TCP ports."""

    def __init__(self, handlers: Mapping[str, Handler], *, max_in_flight: int) -> None:
        threads = max_in_flight + _SPARE_THREADS
        streams = ThreadPoolExecutor(_STREAM_THREADS, "recalld-stream")
        self._server = grpc.server(
            ThreadPoolExecutor(threads, "recalld-call"),
            options=_OPTIONS,
            maximum_concurrent_rpcs=threads * _CALLS_A_THREAD + _STREAM_THREADS,
        )
        services = {method.split("/")[1] for method in handlers}
        self._bound: list[UnixAddress] = []
        self._open_streams = _OpenStreams()
        self._health = _Health(services, streams, self._open_streams)
        reflected = [*services, health.SERVICE_NAME, reflection.SERVICE_NAME]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(  # type: ignore[no-untyped-call]
            _Reflection(reflected, streams, self._open_streams),
            self._server,
        )
        self._server.add_generic_rpc_handlers((_Calls(handlers),))

    def listen(self, address: UnixAddress | TcpAddress) -> UnixAddress | TcpAddress:
        """Bind an address; answers it with the port that was chosen. Raises ServerError or SocketError."""
        if isinstance(address, TcpAddress):
            return TcpAddress(address.host, self._bind(address))
        with claimed(address.path, private=address.path.parent == private_runtime_folder()):
            self._bind(address)
            self._bound.append(address)
        return address

    def close(self) -> None:
        """Undo `listen` when the server was never started."""
        for address in self._bound:
            address.path.unlink(missing_ok=True)

    def _bind(self, address: UnixAddress | TcpAddress) -> int:
        try:
            return self._server.add_insecure_port(str(address))
        except RuntimeError:
            # The exception does not say why.
            raise ServerError(f"cannot listen on {address}: it is in use or not allowed") from None

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()

    def stop(self, drain_seconds: float) -> bool:
        """Take no more calls, let those in hand finish, then end. False when some had to be cancelled."""
        self._health.enter_graceful_shutdown()
        started = time.monotonic()
        stopped = self._server.stop(drain_seconds)
        self._open_streams.end()
        stopped.wait()
        return time.monotonic() - started < drain_seconds


class _Calls(grpc.GenericRpcHandler):
    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._known: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            method: grpc.unary_unary_rpc_method_handler(_behaviour(method, handler))
            for method, handler in handlers.items()
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any]":
        method = handler_call_details.method
        # An unknown method may be of any kind: as a stream it is answered before a message has come.
        return self._known.get(method) or grpc.stream_stream_rpc_method_handler(_behaviour(method, _unknown))


def _unknown(method: str, _identity: str, _request: object, _timeout: float | None) -> NoReturn:
    raise errors.unknown_method(method)


def _behaviour(method: str, handler: Handler) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    """Make what grpcio calls for a method: the handler, with gRPC's words for what goes in and comes out."""

    def behaviour(request: bytes, context: grpc.ServicerContext) -> bytes:
        started = time.perf_counter()
        request_id = _request_id(context.invocation_metadata())
        try:
            response = handler(method, _identity(context.peer()), request, _timeout(context.time_remaining()))
        except CoreError as error:
            status = _status(error, method, request_id, started)
        except Exception:  # noqa: BLE001  whatever a handler raises, nothing of it may reach the caller
            _log.exception("a handler failed", extra={"request_id": request_id, "method": method})
            status = _status(errors.internal(request_id), method, request_id, started)
        else:
            context.set_trailing_metadata(((_REQUEST_ID, request_id),))
            if _access.isEnabledFor(logging.DEBUG):
                _write_access(logging.DEBUG, "call", method, request_id, started, code="OK")
            return response
        return context.abort_with_status(status)

    return behaviour


def _status(failure: CoreError, method: str, request_id: str, started: float) -> grpc.Status:
    """Say a failure in gRPC's words, and in the log."""
    code = errors.STATUS_CODES.get(failure.code, grpc.StatusCode.UNKNOWN)
    reason = errors.reason_of(failure)
    level = _level(code, reason)
    if _access.isEnabledFor(level):
        # The message of a refused request may quote it; that of a fault does not.
        message = failure.message if level >= logging.WARNING else "call"
        _write_access(level, message, method, request_id, started, code=code.name, reason=reason)
    trailing_metadata = ((_REQUEST_ID, request_id), (_STATUS_DETAILS, failure.status))
    return _Status(code, failure.message, trailing_metadata)


@dataclass(frozen=True, slots=True)
class _Status(grpc.Status):
    code: grpc.StatusCode
    details: str
    trailing_metadata: tuple[tuple[str, str | bytes], ...]


def _request_id(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    for name, value in metadata:
        if name == _REQUEST_ID and isinstance(value, str) and _REQUEST_ID_FORM.fullmatch(value):
            return value
    return secrets.token_hex(8)


def _identity(peer: str) -> str:
    return "unix" if peer.startswith("unix:") else peer


def _timeout(remaining: float | None) -> float | None:
    return None if remaining is None or remaining > _NO_DEADLINE_SECONDS else remaining


def _level(code: grpc.StatusCode, reason: str) -> int:
    if reason in {"OVERLOADED", "NOT_SERVING"}:
        # They come in floods, and writing each down would make the flood worse; the metrics count them.
        return logging.DEBUG
    if code in {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN, grpc.StatusCode.DATA_LOSS}:
        return logging.ERROR
    if code in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}:
        return logging.WARNING
    return logging.INFO


def _write_access(
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


class _OpenStreams:
    """Streams that would go on for as long as their clients like, so that the server can end them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ends: set[Callable[[], object]] = set()
        self._ended = False

    def add(self, context: grpc.ServicerContext, end: Callable[[], object]) -> None:
        """Take in a stream with the function that ends it; a latecomer is ended at once."""
        with self._lock:
            if not self._ended and context.add_callback(lambda: self._forget(end)):
                self._ends.add(end)
                return
        end()

    def end(self) -> None:
        """End all streams, now and from now on."""
        with self._lock:
            self._ended = True
            ends = list(self._ends)
        for end in ends:
            end()

    def _forget(self, end: Callable[[], object]) -> None:
        with self._lock:
            self._ends.discard(end)


class _Health(health.HealthServicer):
    """Health of the server and of each service."""

    def __init__(self, services: Iterable[str], pool: ThreadPoolExecutor, streams: _OpenStreams) -> None:
        # A non-blocking watch is written to under the servicer's lock, which the end of any other watch needs
        # in the thread that would finish the write: the server could hang when it says that it stops.
        super().__init__(experimental_non_blocking=False, experimental_thread_pool=pool)
        self._open_streams = streams
        for service in services:
            self.set(service, health_pb2.HealthCheckResponse.SERVING)

    def Watch(  # type: ignore[override]  # noqa: N802
        self,
        request: health_pb2.HealthCheckRequest,
        context: grpc.ServicerContext,
    ) -> Iterator[health_pb2.HealthCheckResponse]:
        watcher = super().Watch(request, context)
        self._open_streams.add(context, watcher.close)
        return watcher


class _Reflection(reflection.ReflectionServicer):
    """Descriptions of the services, for tools."""

    def __init__(self, services: Iterable[str], pool: ThreadPoolExecutor, streams: _OpenStreams) -> None:
        super().__init__(services)
        self._open_streams = streams
        type(self).ServerReflectionInfo.experimental_thread_pool = pool  # type: ignore[attr-defined]

    def ServerReflectionInfo(self, request_iterator: Iterable[Any], context: Any) -> Any:  # noqa: N802
        self._open_streams.add(context, context.cancel)
        return super().ServerReflectionInfo(request_iterator, context)
