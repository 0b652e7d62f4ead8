"""The sidecar behind each front, as unmodified clients see it: one contract, whoever terminates the connection."""

import logging
import re
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import grpc
import pytest
from google.rpc import status_pb2  # type: ignore[import-untyped]
from grpc_health.v1 import health_pb2, health_pb2_grpc
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.types_pb2 import Namespace
from recalld_sidecar import logs
from recalld_sidecar.app import Sidecar
from recalld_sidecar.config import Config, UnixAddress
from recalld_sidecar.front import FrontServer
from recalld_sidecar.server import GrpcServer

from tests.support.sidecar import FRONTS, RunningSidecar, connect, running_sidecar
from tests.support.texts import sentences

SECONDS = 60
NAMESPACE = Namespace(segments=["contract"])
SERVICE = "/recalld.v1.MemoryService/"


@pytest.fixture(scope="module")
def sidecar(front: str) -> Iterator[RunningSidecar]:
    assert front
    flags = ["--listen", "127.0.0.1:0", "--listen", "[::1]:0"]
    with running_sidecar(flags=flags) as running, connect(running.address) as channel:
        items = [pb.WriteItem(content=text) for text in sentences(200, seed=7)]
        request = pb.WriteRequest(namespace=NAMESPACE, items=items)
        channel.unary_unary(SERVICE + "Write")(request.SerializeToString(), timeout=SECONDS)
        yield running


@pytest.fixture
def channel(sidecar: RunningSidecar) -> Iterator[Any]:
    with connect(sidecar.address) as made:
        yield made


def search(query: str, **fields: Any) -> pb.SearchRequest:
    return pb.SearchRequest(namespace=NAMESPACE, query=query, **fields)


def found(channel: Any, request: pb.SearchRequest, **options: Any) -> list[str]:
    answer = channel.unary_unary(SERVICE + "Search")(request.SerializeToString(), timeout=SECONDS, **options)
    return [hit.id for hit in pb.SearchResponse.FromString(answer).hits]


def stream(channel: Any, messages: Iterator[bytes], **options: Any) -> Any:
    return channel.stream_stream(SERVICE + "SearchStream")(messages, timeout=SECONDS, **options)


def tagged(tag: int, request: pb.SearchRequest) -> bytes:
    return pb.SearchStreamRequest(tag=tag, search=request).SerializeToString()


QUERIES = sentences(40, seed=7)


def test_a_stream_finds_what_single_searches_find(channel: Any) -> None:
    expected = {tag: found(channel, search(query)) for tag, query in enumerate(QUERIES)}
    messages = (tagged(tag, search(query)) for tag, query in enumerate(QUERIES))
    answers = [pb.SearchStreamResponse.FromString(answer) for answer in stream(channel, messages)]
    assert {answer.tag: [hit.id for hit in answer.result.response.hits] for answer in answers} == expected
    assert len(answers) == len(QUERIES)


def test_a_search_of_a_stream_that_fails_does_not_end_it(channel: Any) -> None:
    messages = [tagged(1, pb.SearchRequest(query="no namespace")), tagged(2, search(QUERIES[0]))]
    answers = {
        answer.tag: answer.result
        for answer in map(pb.SearchStreamResponse.FromString, stream(channel, iter(messages)))
    }
    failure = answers[1].failure
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert status_pb2.Status.FromString(failure.status).message == failure.message
    assert answers[2].response.hits


def test_each_message_of_a_stream_is_answered_before_the_next_is_sent(channel: Any) -> None:
    answered = threading.Semaphore(1)

    def messages() -> Iterator[bytes]:
        for tag in range(5):
            assert answered.acquire(timeout=SECONDS)
            yield tagged(tag, search(QUERIES[tag]))

    tags = []
    for answer in stream(channel, messages()):
        tags.append(pb.SearchStreamResponse.FromString(answer).tag)
        answered.release()
    assert tags == list(range(5))


def test_what_is_no_message_ends_a_stream(channel: Any) -> None:
    answers = stream(channel, iter([b"\xff"]), metadata=[("x-request-id", "stream-1")])
    with pytest.raises(grpc.RpcError) as raised:
        list(answers)
    error: Any = raised.value
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    trailing = dict(error.trailing_metadata())
    assert trailing["x-request-id"] == "stream-1"
    assert status_pb2.Status.FromString(trailing["grpc-status-details-bin"]).message == error.details()


def test_a_cancelled_stream_leaves_the_channel_as_it_was(channel: Any) -> None:
    silent = threading.Event()

    def messages() -> Iterator[bytes]:
        yield tagged(1, search(QUERIES[0]))
        silent.wait(SECONDS)

    answers = stream(channel, messages())
    assert pb.SearchStreamResponse.FromString(next(answers)).tag == 1
    answers.cancel()
    with pytest.raises(grpc.RpcError) as raised:
        next(answers)
    silent.set()
    error: Any = raised.value
    assert error.code() is grpc.StatusCode.CANCELLED
    assert found(channel, search(QUERIES[0]))


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_requests(channel: Any, compression: grpc.Compression) -> None:
    text = "The harbour lights went out one by one. " * 5_000
    request = pb.CountTokensRequest(texts=[text]).SerializeToString()
    count = channel.unary_unary(SERVICE + "CountTokens")
    plain = count(request, timeout=SECONDS)
    assert count(request, timeout=SECONDS, compression=compression) == plain


def test_all_addresses_answer(sidecar: RunningSidecar) -> None:
    answers = []
    for address in sidecar.addresses:
        with connect(address) as channel:
            answers.append(found(channel, search(QUERIES[0])))
    assert len(answers) == 3
    assert answers[0]
    assert answers == [answers[0]] * 3


def failing_calls(address: str) -> None:
    """Calls that each front must log in the same way."""
    conflict = pb.WriteItem(content="secret", key="secret", if_version=7)
    calls = {
        "invalid": ("Search", pb.SearchRequest(query="secret").SerializeToString()),
        "malformed": ("Search", b"\xff secret"),
        "conflict": ("Write", pb.WriteRequest(namespace=NAMESPACE, items=[conflict]).SerializeToString()),
        "unknown": ("Imagine", b"secret"),
    }
    with connect(address) as channel:
        for request_id, (method, request) in calls.items():
            with pytest.raises(grpc.RpcError):
                channel.unary_unary(SERVICE + method)(
                    request, timeout=SECONDS, metadata=[("x-request-id", request_id)]
                )
        channel.unary_unary(SERVICE + "CountTokens")(
            pb.CountTokensRequest(texts=["a"]).SerializeToString(),
            timeout=SECONDS,
            metadata=[("x-request-id", "fine")],
        )
        # Python answers this one behind either front.
        channel.unary_unary("/recalld.v1.AdminService/GetStats")(
            b"", timeout=SECONDS, metadata=[("x-request-id", "stats")]
        )


@pytest.mark.parametrize(("level", "logged"), [("debug", 6), ("info", 4)])
def test_both_fronts_log_the_same(level: str, logged: int) -> None:
    lines = []
    for front in FRONTS:
        with running_sidecar(flags=["--front", front, "--log-level", level]) as sidecar:
            failing_calls(sidecar.address)
            assert sidecar.stop() == 0
            assert "secret" not in sidecar.output()
            calls = [line for line in sidecar.logs() if "request_id" in line]
        assert all(line.pop("took_ms") >= 0 and line.pop("time") for line in calls)
        lines.append([list(line.items()) for line in calls if line["method"].startswith("/recalld")])
    assert len(lines[0]) == logged
    assert sorted(lines[0]) == sorted(lines[1])


@pytest.mark.parametrize("form", ["json", "text"])
def test_rust_writes_log_lines_as_python_does(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], form: Literal["json", "text"]
) -> None:
    config = Config(
        data_dir=tmp_path / "data",
        listen=(UnixAddress(tmp_path / "s"),),
        http=None,
        log_format=form,
    )
    sidecar = Sidecar(config)
    sidecar.start()
    with connect(f"unix:{tmp_path / 's'}") as channel, pytest.raises(grpc.RpcError):
        channel.unary_unary(SERVICE + "Search")(b"", timeout=SECONDS, metadata=[("x-request-id", "a")])
    assert sidecar.stop()
    (line,) = [line for line in capfd.readouterr().err.splitlines() if SERVICE in line]
    record = logging.makeLogRecord(
        {
            "levelname": "INFO",
            "msg": "call",
            "request_id": "a",
            "method": SERVICE + "Search",
            "code": "INVALID_ARGUMENT",
            "reason": "INVALID_FIELD",
            "took_ms": 1.5,
        }
    )
    formatter = logs.JsonFormatter() if form == "json" else logs.TextFormatter()
    assert without_times(line) == without_times(formatter.format(record))


def without_times(line: str) -> str:
    line = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", "TIME", line)
    return re.sub(r"(took_ms\W+)[0-9.]+", r"\1TOOK", line)


def test_a_drain_ends_open_streams(front: str) -> None:
    assert front
    silent = threading.Event()

    def messages() -> Iterator[bytes]:
        yield tagged(1, search("harbour"))
        silent.wait(SECONDS)

    with running_sidecar(flags=["--drain-seconds", "3600"]) as sidecar, connect(sidecar.address) as channel:
        answers = stream(channel, messages())
        next(answers)
        health: Any = health_pb2_grpc.HealthStub(channel)
        watch = health.Watch(health_pb2.HealthCheckRequest(), timeout=SECONDS)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        sidecar.send(signal.SIGTERM)
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        with pytest.raises(grpc.RpcError) as raised:
            list(answers)
        error: Any = raised.value
        assert error.code() in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
        silent.set()
        assert sidecar.wait() == 0
        assert sidecar.logs()[-1]["message"] == "stopped"


def test_too_much_metadata_is_refused_and_the_channel_goes_on(channel: Any) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        found(channel, search(QUERIES[0]), metadata=[("x-long", "x" * 40_000)])
    error: Any = raised.value
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert found(channel, search(QUERIES[0]))


def test_the_private_socket_is_private_and_comes_and_goes_with_the_sidecar(tmp_path: Path) -> None:
    # Longer than the path of a socket can be.
    data_dir = tmp_path / ("long" * 40)
    folder = data_dir / "front"
    flags = ["--front", "native"]
    with running_sidecar(data_dir, flags=flags) as sidecar:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert [path.is_socket() for path in folder.iterdir()] == [True]
        assert sidecar.stop(signal.SIGKILL) == -signal.SIGKILL
    assert folder.exists()
    with running_sidecar(data_dir, flags=flags) as sidecar:
        assert sidecar.stop() == 0
    assert not folder.exists()


def test_a_front_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    grpc_server = GrpcServer({}, {}, max_in_flight=1, is_behind_front=True)
    with pytest.raises(ValueError, match="log level"):
        FrontServer(grpc_server, None, {}, folder=tmp_path / "front", max_in_flight=1, log_level="loud")
    assert not (tmp_path / "front").exists()
    descriptors = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    assert not [path for path in descriptors if str(path.readlink()).startswith(str(tmp_path))]


def test_python_can_serve_alone(tmp_path: Path) -> None:
    with running_sidecar(tmp_path / "data", flags=["--front", "python"]):
        assert not (tmp_path / "data" / "front").exists()
