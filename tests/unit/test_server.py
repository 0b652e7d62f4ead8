"""The gRPC server with handlers of the test's own: what goes in, what comes out, and how it ends.

Each test runs on all ways in: grpcio alone, the native front that calls the handlers itself, and the native
front that passes every call through to grpcio.
"""

import itertools
import logging
import re
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import status_pb2  # type: ignore[import-untyped]
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from hypothesis import given
from hypothesis import strategies as st
from recalld.v1 import errors_pb2
from recalld_sidecar import errors, server
from recalld_sidecar._core import CoreError
from recalld_sidecar.config import TcpAddress, UnixAddress
from recalld_sidecar.front import FrontServer
from recalld_sidecar.server import GrpcServer, Server, ServerError
from recalld_sidecar.services import Handler

from tests.support.sidecar import connect

SECONDS = 60
ECHO = "/recalld.v1.MemoryService/Search"
WAIT = "/recalld.v1.MemoryService/Get"
STREAM = "/recalld.v1.MemoryService/SearchStream"


class Calls:
    """Handlers, and what they were given."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, bytes, float | None]] = []
        self.entered = threading.Event()
        self.leave = threading.Event()

    def handlers(self) -> dict[str, Handler]:
        return {
            ECHO: self.echo,
            WAIT: self.wait,
            "/recalld.v1.MemoryService/Write": self.refuse,
            "/recalld.v1.AdminService/GetStats": self.fail,
        }

    def echo(self, method: str, identity: str, request: bytes, timeout: float | None) -> bytes:
        self.seen.append((method, identity, request, timeout))
        return request

    def wait(self, _method: str, _identity: str, request: bytes, _timeout: float | None) -> bytes:
        self.entered.set()
        self.leave.wait(SECONDS)
        return request

    def refuse(self, _method: str, _identity: str, request: bytes, _timeout: float | None) -> bytes:
        reason = errors_pb2.ErrorReason.Value(f"ERROR_REASON_{request.decode()}")
        raise errors.call_error(
            grpc.StatusCode.RESOURCE_EXHAUSTED, reason, "secret 100% \u00fc\nend", field="x"
        )

    def echo_or_refuse(self, method: str, identity: str, request: bytes, timeout: float | None) -> bytes:
        if request == b"STORE_FULL":
            return self.refuse(method, identity, request, timeout)
        return self.echo(method, identity, request, timeout)

    def fail(self, _method: str, _identity: str, _request: bytes, _timeout: float | None) -> bytes:
        raise ZeroDivisionError("secret")


@pytest.fixture
def calls() -> Iterator[Calls]:
    made = Calls()
    yield made
    made.leave.set()


@pytest.fixture
def path() -> Iterator[Path]:
    # pytest's own folders can be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="recalld-test-") as name:
        yield Path(name) / "a.sock"


@pytest.fixture(params=["grpcio", "native", "through"])
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(way: str, calls: Calls, path: Path) -> Callable[[], Server]:
    """Make another server in this way."""
    number = itertools.count()

    def made() -> Server:
        streams = {STREAM: calls.echo_or_refuse}
        grpcio = GrpcServer(calls.handlers(), streams, max_in_flight=4, is_behind_front=way != "grpcio")
        if way == "grpcio":
            return grpcio
        handlers = calls.handlers() if way == "native" else {}
        folder = path.parent / f"front-{next(number)}"
        return FrontServer(grpcio, None, handlers, folder=folder, max_in_flight=4)

    return made


@pytest.fixture
def running(make: Callable[[], Server], calls: Calls, path: Path) -> Iterator[Server]:
    made = make()
    made.listen(UnixAddress(path))
    made.start()
    yield made
    calls.leave.set()
    made.stop(0)


@pytest.fixture
def channel(running: Server, path: Path) -> Iterator[Any]:
    assert running
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with connect(f"unix:{path}", *options) as made:
        yield made


def call(channel: Any, method: str, request: bytes = b"", **options: Any) -> tuple[bytes, dict[str, Any]]:
    response, outcome = channel.unary_unary(method).with_call(request, **{"timeout": SECONDS, **options})
    return response, dict(outcome.trailing_metadata())


def health_stub(channel: Any) -> Any:
    return health_pb2_grpc.HealthStub(channel)


def reflection_stub(channel: Any) -> Any:
    return reflection_pb2_grpc.ServerReflectionStub(channel)


def failure(ask: Callable[[], object]) -> Any:
    with pytest.raises(grpc.RpcError) as raised:
        ask()
    return raised.value


def details(error: Any) -> Any:
    """The rich status of an error, which must agree with the plain one."""
    trailing = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(trailing["grpc-status-details-bin"])
    assert status.code == error.code().value[0]
    assert status.message == error.details()
    return status


def reason(error: Any) -> str:
    status = details(error)
    return errors.reason_of(CoreError(status.code, status.message, status.SerializeToString()))


def test_a_call_reaches_its_handler_as_bytes(channel: Any, calls: Calls) -> None:
    response, _ = call(channel, ECHO, b"\x00\xff not a message", timeout=None)
    assert response == b"\x00\xff not a message"
    assert calls.seen == [(ECHO, "unix", b"\x00\xff not a message", None)]


def test_a_handler_knows_the_time_left(channel: Any, calls: Calls) -> None:
    call(channel, ECHO, timeout=SECONDS)
    (_, _, _, timeout) = calls.seen[0]
    assert timeout is not None
    # gRPC rounds a deadline up on the wire.
    assert 0 < timeout < 2 * SECONDS


@pytest.mark.parametrize(
    ("host", "peer"), [("127.0.0.1", r"ipv4:127\.0\.0\.1:\d+"), ("::1", r"ipv6:%5B::1%5D:\d+")]
)
def test_a_tcp_caller_is_known_by_its_peer(
    make: Callable[[], Server], calls: Calls, host: str, peer: str
) -> None:
    running = make()
    address = running.listen(TcpAddress(host, 0))
    assert isinstance(address, TcpAddress)
    assert address.port
    running.start()
    with connect(str(address)) as channel:
        # Nobody can say that he is somebody else.
        call(channel, ECHO, b"x", metadata=[("x-recalld-identity", "unix")])
    running.stop(0)
    assert re.fullmatch(peer, calls.seen[0][1])


@pytest.mark.parametrize("given_id", ["a", "req-1:2/3+4=@x._", "f" * 128])
def test_a_request_id_comes_back(channel: Any, given_id: str) -> None:
    _, trailing = call(channel, ECHO, metadata=[("x-request-id", given_id)])
    assert trailing["x-request-id"] == given_id
    error = failure(lambda: call(channel, "/a.B/C", metadata=[("x-request-id", given_id)]))
    assert dict(error.trailing_metadata())["x-request-id"] == given_id


@pytest.mark.parametrize("metadata", [[], [("x-request-id", "has space")], [("x-request-id", "f" * 129)]])
def test_a_request_id_is_made_for_the_others(channel: Any, metadata: list[tuple[str, str]]) -> None:
    first = call(channel, ECHO, metadata=metadata)[1]["x-request-id"]
    second = call(channel, ECHO, metadata=metadata)[1]["x-request-id"]
    assert first != second
    assert len(first) == len(second) == 16


@given(st.text(max_size=200))
def test_request_ids_are_safe_to_log(given_id: str) -> None:
    kept = server._request_id([("x-request-id", given_id)])
    assert kept.isascii()
    assert kept.isprintable()
    assert " " not in kept
    assert 1 <= len(kept) <= 128


def test_an_error_arrives_whole(channel: Any) -> None:
    error = failure(lambda: call(channel, "/recalld.v1.MemoryService/Write", b"STORE_FULL"))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert error.details() == "secret 100% \u00fc\nend"
    assert reason(error) == "STORE_FULL"


def test_an_unexpected_exception_tells_nothing_but_where_to_look(
    channel: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ask = lambda: call(channel, "/recalld.v1.AdminService/GetStats", metadata=[("x-request-id", "r1")])  # noqa: E731
    error = failure(ask)
    assert error.code() is grpc.StatusCode.INTERNAL
    assert reason(error) == "INTERNAL"
    assert "r1" in error.details()
    assert "secret" not in str(error.trailing_metadata()) + error.details()
    (logged,) = [record for record in caplog.records if record.exc_info]
    assert logged.request_id == "r1"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "method", ["/recalld.v1.MemoryService/Nope", "/a.B/C", "/recalld.v1.MemoryService/search"]
)
def test_an_unknown_method_is_named(channel: Any, method: str) -> None:
    error = failure(lambda: call(channel, method))
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED
    assert reason(error) == "UNKNOWN_METHOD"
    assert method in error.details()


def test_an_unknown_stream_is_answered_before_it_sends_anything(channel: Any) -> None:
    silent = threading.Event()

    def requests() -> Iterator[bytes]:
        silent.wait(SECONDS)
        yield b""

    try:
        error = failure(lambda: list(channel.stream_stream("/a.B/C")(requests(), timeout=SECONDS)))
    finally:
        silent.set()
    assert reason(error) == "UNKNOWN_METHOD"


def test_a_deadline_ends_the_wait(channel: Any, calls: Calls) -> None:
    error = failure(lambda: call(channel, WAIT, timeout=0.05))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    calls.leave.set()
    assert call(channel, ECHO, b"x")[0] == b"x"


def test_a_cancelled_call_leaves_the_channel_as_it_was(channel: Any, calls: Calls) -> None:
    in_hand = channel.unary_unary(WAIT).future(b"", timeout=SECONDS)
    assert calls.entered.wait(SECONDS)
    in_hand.cancel()
    assert in_hand.cancelled()
    assert call(channel, ECHO, b"x")[0] == b"x"


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_compressed_request_reaches_its_handler_plain(
    channel: Any, calls: Calls, compression: grpc.Compression
) -> None:
    call(channel, ECHO, b"ab" * 50_000, compression=compression)
    assert calls.seen[0][2] == b"ab" * 50_000


def test_a_stream_is_answered_message_by_message(channel: Any, calls: Calls) -> None:
    answers = channel.stream_stream(STREAM)(
        iter([b"a", b"", b"c"]), timeout=SECONDS, metadata=[("x-request-id", "r1")]
    )
    assert list(answers) == [b"a", b"", b"c"]
    assert dict(answers.trailing_metadata())["x-request-id"] == "r1"
    assert [(method, identity) for method, identity, _, _ in calls.seen] == [(STREAM, "unix")] * 3


def test_an_error_ends_a_stream(channel: Any, caplog: pytest.LogCaptureFixture) -> None:
    answers = channel.stream_stream(STREAM)(iter([b"a", b"STORE_FULL", b"c"]), timeout=SECONDS)
    assert next(answers) == b"a"
    error = failure(lambda: next(answers))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert reason(error) == "STORE_FULL"
    assert [record.code for record in caplog.records] == ["RESOURCE_EXHAUSTED"]  # type: ignore[attr-defined]


def test_more_streams_than_threads_for_calls(channel: Any) -> None:
    silent = threading.Event()

    def requests() -> Iterator[bytes]:
        yield b"x"
        silent.wait(SECONDS)

    streams = [channel.stream_stream(STREAM)(requests(), timeout=SECONDS) for _ in range(40)]
    assert [next(stream) for stream in streams] == [b"x"] * 40
    assert call(channel, ECHO, b"x")[0] == b"x"
    for stream in streams:
        stream.cancel()
    silent.set()


def test_large_messages(channel: Any) -> None:
    large = bytes(server.MAX_MESSAGE_BYTES)
    assert call(channel, ECHO, large)[0] == large
    error = failure(lambda: call(channel, ECHO, large + b"x"))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_only_errors_are_logged_by_default(channel: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    call(channel, ECHO)
    failure(lambda: call(channel, "/recalld.v1.MemoryService/Write", b"STORE_FULL"))
    failure(lambda: call(channel, "/recalld.v1.MemoryService/Write", b"OVERLOADED"))
    failure(lambda: call(channel, "/a.B/C"))
    lines = [(record.levelname, record.code, record.reason, record.method) for record in caplog.records]  # type: ignore[attr-defined]
    assert lines == [
        ("WARNING", "RESOURCE_EXHAUSTED", "STORE_FULL", "/recalld.v1.MemoryService/Write"),
        ("INFO", "UNIMPLEMENTED", "UNKNOWN_METHOD", "/a.B/C"),
    ]


def test_every_call_is_logged_at_debug(channel: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "recalld.access")
    call(channel, ECHO, metadata=[("x-request-id", "r1")])
    (record,) = caplog.records
    assert (record.request_id, record.code, record.method) == ("r1", "OK", ECHO)  # type: ignore[attr-defined]
    assert record.took_ms >= 0  # type: ignore[attr-defined]


def test_what_a_refused_request_said_is_not_logged(channel: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "recalld.access")
    failure(lambda: call(channel, "/a.Secret/C"))
    assert [record.getMessage() for record in caplog.records] == ["call"]


@pytest.mark.parametrize("service", ["", "recalld.v1.MemoryService", "recalld.v1.AdminService"])
def test_health_of_the_server_and_its_services(channel: Any, service: str) -> None:
    request = health_pb2.HealthCheckRequest(service=service)
    answer = health_stub(channel).Check(request, timeout=SECONDS)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_health_of_a_stranger_is_not_found(channel: Any) -> None:
    request = health_pb2.HealthCheckRequest(service="a.B")
    error = failure(lambda: health_stub(channel).Check(request, timeout=SECONDS))
    assert error.code() is grpc.StatusCode.NOT_FOUND


def test_reflection_lists_the_services(channel: Any) -> None:
    stub = reflection_stub(channel)
    requests = [reflection_pb2.ServerReflectionRequest(list_services="")]
    (answer,) = stub.ServerReflectionInfo(iter(requests), timeout=SECONDS)
    assert {service.name for service in answer.list_services_response.service} == {
        "recalld.v1.MemoryService",
        "recalld.v1.AdminService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }


def test_a_drain_lets_the_call_in_hand_finish(
    channel: Any, calls: Calls, running: Server, path: Path
) -> None:
    watch = health_stub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=SECONDS)
    assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
    in_hand = channel.unary_unary(WAIT).future(b"done", timeout=SECONDS)
    assert calls.entered.wait(SECONDS)
    outcomes: list[bool] = []
    stopping = threading.Thread(target=lambda: outcomes.append(running.stop(SECONDS)))
    stopping.start()

    assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert list(watch) == []
    late = failure(lambda: call(channel, ECHO))
    assert late.code() is grpc.StatusCode.UNAVAILABLE
    assert stopping.is_alive()

    calls.leave.set()
    assert in_hand.result(SECONDS) == b"done"
    stopping.join(SECONDS)
    assert outcomes == [True]
    assert not path.exists()


def test_a_drain_ends_in_time(channel: Any, calls: Calls, running: Server) -> None:
    in_hand = channel.unary_unary(WAIT).future(b"", timeout=SECONDS)
    assert calls.entered.wait(SECONDS)
    assert running.stop(0.05) is False
    assert failure(in_hand.result).code() in {grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE}


def test_streams_that_never_end_do_not_hold_up_a_drain(channel: Any, running: Server) -> None:
    silent = threading.Event()

    def requests() -> Iterator[reflection_pb2.ServerReflectionRequest]:
        yield reflection_pb2.ServerReflectionRequest(list_services="")
        silent.wait(SECONDS)

    def messages() -> Iterator[bytes]:
        yield b"x"
        silent.wait(SECONDS)

    stub = reflection_stub(channel)
    answers = stub.ServerReflectionInfo(requests(), timeout=SECONDS)
    watch = health_stub(channel).Watch(health_pb2.HealthCheckRequest(), timeout=SECONDS)
    echoes = channel.stream_stream(STREAM)(messages(), timeout=SECONDS)
    next(answers)
    next(watch)
    next(echoes)
    try:
        assert running.stop(SECONDS) is True
    finally:
        silent.set()


def test_more_watches_than_threads_for_calls(channel: Any) -> None:
    stub = health_stub(channel)
    watches = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=SECONDS) for _ in range(40)]
    for watch in watches:
        next(watch)
    assert call(channel, ECHO, b"x")[0] == b"x"
    for watch in watches:
        watch.cancel()


def test_a_unix_socket_is_for_its_owner_alone(running: Server, path: Path) -> None:
    assert running
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_port_is_not_shared(make: Callable[[], Server]) -> None:
    first = make()
    address = first.listen(TcpAddress("127.0.0.1", 0))
    second = make()
    with pytest.raises(ServerError, match=f"cannot listen on {address}"):
        second.listen(address)


def test_listening_can_be_undone(make: Callable[[], Server], path: Path) -> None:
    made = make()
    made.listen(UnixAddress(path))
    made.close()
    assert list(path.parent.iterdir()) == []
