"""The gRPC server: every call as bytes, health, reflection, and an end that loses nothing.

One generic handler serves every method of the registry without (de)serialising: a call costs one dictionary
lookup and one call of its handler, which for the data plane is Rust with the GIL released. This module knows
how gRPC says things (deadlines, peers, metadata, statuses) and must never know what a method means.
"""

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeAlias

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc

from recalld_sidecar import errors
from recalld_sidecar._core import CoreError
from recalld_sidecar.access import logged
from recalld_sidecar.config import TcpAddress, UnixAddress, private_runtime_folder
from recalld_sidecar.services import Handler
from recalld_sidecar.sockets import claimed

MAX_MESSAGE_BYTES = 32 << 20
"""Twice the largest request that the contract allows, so that the core refuses it with a reason."""

_REQUEST_ID = "x-request-id"
_REQUEST_ID_FORM = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
_STATUS_DETAILS = "grpc-status-details-bin"
_FORWARDED_IDENTITY = "x-recalld-identity"
"""Set by the native front, which takes it from clients: `IDENTITY` in `core_rs/front`."""

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


class Server(Protocol):
    """Something that serves gRPC."""

    def listen(self, address: UnixAddress | TcpAddress) -> UnixAddress | TcpAddress:
        """Bind an address; answers it with the port that was chosen. Raises ServerError or SocketError."""

    def close(self) -> None:
        """Undo `listen` when the server was never started."""

    def start(self) -> None:
        """Begin to answer."""

    def stop(self, drain_seconds: float) -> bool:
        """Take no more calls, let those in hand finish, then end. False when some had to be cancelled."""


class GrpcServer:
    """Serves a registry of handlers on Unix sockets and TCP ports.

    A method among `streams` is a stream both ways: its handler answers each message with one, in their order.
    Behind the native front, which is the only one who can connect then, callers are who it says.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        streams: Mapping[str, Handler],
        *,
        max_in_flight: int,
        is_behind_front: bool = False,
    ) -> None:
        threads = max_in_flight + _SPARE_THREADS
        stream_threads = ThreadPoolExecutor(_STREAM_THREADS, "recalld-stream")
        self._server = grpc.server(
            ThreadPoolExecutor(threads, "recalld-call"),
            options=_OPTIONS,
            maximum_concurrent_rpcs=threads * _CALLS_A_THREAD + _STREAM_THREADS,
        )
        services = {method.split("/")[1] for method in handlers}
        self._bound: list[UnixAddress] = []
        self._open_streams = _OpenStreams()
        self._health = _Health(services, stream_threads, self._open_streams)
        reflected = [*services, health.SERVICE_NAME, reflection.SERVICE_NAME]
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        reflection_pb2_grpc.add_ServerReflectionServicer_to_server(  # type: ignore[no-untyped-call]
            _Reflection(reflected, stream_threads, self._open_streams),
            self._server,
        )
        identity = _forwarded_identity if is_behind_front else _peer_identity
        calls = {method: _unary(method, handler, identity) for method, handler in handlers.items()}
        for method, handler in streams.items():
            calls[method] = _stream(method, handler, identity, stream_threads, self._open_streams)
        self._server.add_generic_rpc_handlers((_Calls(calls, identity),))

    def listen(self, address: UnixAddress | TcpAddress) -> UnixAddress | TcpAddress:
        """As Server says."""
        if isinstance(address, TcpAddress):
            return TcpAddress(address.host, self._bind(address))
        with claimed(address.path, private=address.path.parent == private_runtime_folder()):
            self._bind(address)
            self._bound.append(address)
        return address

    def listen_privately(self, path: str) -> None:
        """Bind a Unix socket in a folder that only we can enter. Raises ServerError."""
        self._bind(path)

    def close(self) -> None:
        """As Server says."""
        for address in self._bound:
            address.path.unlink(missing_ok=True)

    def _bind(self, address: UnixAddress | TcpAddress | str) -> int:
        try:
            return self._server.add_insecure_port(str(address))
        except RuntimeError:
            # The exception does not say why.
            raise ServerError(f"cannot listen on {address}: it is in use or not allowed") from None

    def start(self) -> None:
        """As Server says."""
        self._server.start()

    def stop(self, drain_seconds: float) -> bool:
        """As Server says."""
        self.say_not_serving()
        return self.drain(drain_seconds)()

    def say_not_serving(self) -> None:
        """Answer NOT_SERVING to everybody who asks or watches."""
        self._health.enter_graceful_shutdown()

    def drain(self, drain_seconds: float) -> Callable[[], bool]:
        """Begin to stop; what it returns waits for the end, and answers as `stop` does."""
        deadline = time.monotonic() + drain_seconds
        stopped = self._server.stop(drain_seconds)
        self._open_streams.end()

        def wait() -> bool:
            in_time = stopped.wait(max(deadline - time.monotonic(), 0))
            stopped.wait()
            return in_time

        return wait


_Identity = Callable[[grpc.ServicerContext], str]
_Call: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"


class _Calls(grpc.GenericRpcHandler):
    def __init__(self, calls: Mapping[str, _Call], identity: _Identity) -> None:
        self._calls = calls
        self._identity = identity

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any]":
        method = handler_call_details.method
        # An unknown method may be of any kind: as a stream it is answered before a message has come.
        return self._calls.get(method) or grpc.stream_stream_rpc_method_handler(
            _behaviour(method, _unknown, self._identity),
        )


def _unknown(method: str, _identity: str, _request: object, _timeout: float | None) -> NoReturn:
    raise errors.unknown_method(method)


def _unary(method: str, handler: Handler, identity: _Identity) -> _Call:
    return grpc.unary_unary_rpc_method_handler(_behaviour(method, handler, identity))


def _behaviour(
    method: str, handler: Handler, identity: _Identity
) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    """Make what grpcio calls for a method: the handler, with gRPC's words for what goes in and comes out."""
    answer = logged(method, handler)

    def behaviour(request: bytes, context: grpc.ServicerContext) -> bytes:
        request_id = _request_id(context.invocation_metadata())
        try:
            response = answer(identity(context), request, _timeout(context.time_remaining()), request_id)
        except CoreError as error:
            return context.abort_with_status(_status(error, request_id))
        context.set_trailing_metadata(((_REQUEST_ID, request_id),))
        return response

    return behaviour


def _stream(
    method: str, handler: Handler, identity: _Identity, pool: ThreadPoolExecutor, streams: "_OpenStreams"
) -> _Call:
    """Make what grpcio calls for a method that is a stream both ways."""
    answer = logged(method, handler)

    def behaviour(requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        streams.add(context, context.cancel)
        request_id = _request_id(context.invocation_metadata())
        context.set_trailing_metadata(((_REQUEST_ID, request_id),))
        caller = identity(context)
        try:
            for request in requests:
                yield answer(caller, request, _timeout(context.time_remaining()), request_id)
        except CoreError as error:
            context.abort_with_status(_status(error, request_id))

    behaviour.experimental_thread_pool = pool  # type: ignore[attr-defined]
    return grpc.stream_stream_rpc_method_handler(behaviour)


def _status(failure: CoreError, request_id: str) -> grpc.Status:
    """Say a failure in gRPC's words."""
    code = errors.STATUS_CODES.get(failure.code, grpc.StatusCode.UNKNOWN)
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


def _peer_identity(context: grpc.ServicerContext) -> str:
    peer = context.peer()
    return "unix" if peer.startswith("unix:") else peer


def _forwarded_identity(context: grpc.ServicerContext) -> str:
    for name, value in context.invocation_metadata():
        if name == _FORWARDED_IDENTITY and isinstance(value, str):
            return value
    raise ServerError("a call did not come through the front")


def _timeout(remaining: float | None) -> float | None:
    return None if remaining is None or remaining > _NO_DEADLINE_SECONDS else remaining


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
