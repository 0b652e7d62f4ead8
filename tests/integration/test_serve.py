"""The real process: what it serves, what it refuses, how it ends, and the commands that talk to it."""

import json
import shutil
import signal
import stat
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from recalld.v1 import admin_service_pb2, admin_service_pb2_grpc
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1 import memory_service_pb2_grpc as rpc
from recalld.v1.types_pb2 import Namespace
from recalld_sidecar import __version__

from tests.support.sidecar import STOP_SECONDS, RunningSidecar, connect, run_cli, running_sidecar

SECONDS = 60
ALICE = Namespace(segments=["acme", "user", "alice"])


@pytest.fixture(scope="module")
def sidecar(front: str) -> Iterator[RunningSidecar]:
    assert front
    with running_sidecar(flags=["--listen", "127.0.0.1:0"]) as running:
        yield running


def fetch(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def health_check(channel: Any) -> Any:
    stub: Any = health_pb2_grpc.HealthStub(channel)
    return stub.Check


def reason(error: Any) -> str:
    """The reason of an error whose details agree with its status."""
    status = status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
    assert (status.code, status.message) == (error.code().value[0], error.details())
    infos = [detail for detail in status.details if detail.Is(error_details_pb2.ErrorInfo.DESCRIPTOR)]
    assert len(infos) == 1
    info = error_details_pb2.ErrorInfo.FromString(infos[0].value)
    assert info.domain == "recalld"
    return str(info.reason)


@pytest.mark.parametrize("index", [0, 1], ids=["unix", "tcp"])
def test_an_unmodified_channel_and_generated_stubs(sidecar: RunningSidecar, index: int) -> None:
    namespace = Namespace(segments=["stubs", str(index)])
    with connect(sidecar.addresses[index]) as channel:
        memory = rpc.MemoryServiceStub(channel)
        item = pb.WriteItem(key="seat", content="Alice prefers aisle seats.", kind="preference")
        receipt = memory.Write(pb.WriteRequest(namespace=namespace, items=[item]), timeout=SECONDS).receipts[
            0
        ]
        assert receipt.outcome == pb.WRITE_OUTCOME_STORED
        request = pb.SearchRequest(namespace=namespace, query="which seat does she like?")
        assert [hit.id for hit in memory.Search(request, timeout=SECONDS).hits] == [receipt.id]
        details = memory.Get(pb.GetRequest(namespace=namespace, keys=["seat"]), timeout=SECONDS)
        assert details.memories[0].content == "Alice prefers aisle seats."
        brief = memory.Brief(pb.BriefRequest(namespace=namespace, query="seats"), timeout=SECONDS)
        assert "aisle" in brief.text
        deleted = memory.Delete(pb.DeleteRequest(namespace=namespace, keys=["seat"]), timeout=SECONDS)
        assert deleted.deleted == 1
        assert not memory.Search(request, timeout=SECONDS).hits


def test_stats(sidecar: RunningSidecar) -> None:
    namespace = Namespace(segments=["stats"])
    with connect(sidecar.address) as channel:
        admin = admin_service_pb2_grpc.AdminServiceStub(channel)
        before = admin.GetStats(admin_service_pb2.GetStatsRequest(), timeout=SECONDS)
        assert not before.HasField("namespace")
        assert before.server_version == __version__
        items = [pb.WriteItem(content=f"Memory number {number}.") for number in range(3)]
        memory = rpc.MemoryServiceStub(channel)
        memory.Write(pb.WriteRequest(namespace=namespace, items=items), timeout=SECONDS)
        after = admin.GetStats(admin_service_pb2.GetStatsRequest(namespace=namespace), timeout=SECONDS)
    assert after.namespace.memories == after.namespace.versions == 3
    assert after.store.memories == before.store.memories + 3
    assert after.store.position > before.store.position
    assert after.store.store_id == before.store.store_id


def test_stats_of_an_invalid_namespace(sidecar: RunningSidecar) -> None:
    with connect(sidecar.address) as channel:
        admin = admin_service_pb2_grpc.AdminServiceStub(channel)
        request = admin_service_pb2.GetStatsRequest(namespace=Namespace())
        with pytest.raises(grpc.RpcError) as raised:
            admin.GetStats(request, timeout=SECONDS)
    assert reason(raised.value) == "INVALID_FIELD"


@pytest.mark.parametrize("method", ["/recalld.v1.MemoryService/Search", "/recalld.v1.AdminService/GetStats"])
def test_a_request_that_is_no_message(sidecar: RunningSidecar, method: str) -> None:
    with connect(sidecar.address) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary(method)(b"\xff\xff", timeout=SECONDS)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert reason(raised.value) == "MALFORMED_REQUEST"


def test_an_unknown_method(sidecar: RunningSidecar) -> None:
    with connect(sidecar.address) as channel, pytest.raises(grpc.RpcError) as raised:
        channel.unary_unary("/recalld.v1.MemoryService/Imagine")(b"", timeout=SECONDS)
    assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert reason(raised.value) == "UNKNOWN_METHOD"


def test_a_request_id_comes_back_and_is_logged(sidecar: RunningSidecar) -> None:
    metadata = (("x-request-id", "trace-17"),)
    request = pb.SearchRequest(query="no namespace, and a secret")
    with connect(sidecar.address) as channel, pytest.raises(grpc.RpcError) as raised:
        rpc.MemoryServiceStub(channel).Search(request, timeout=SECONDS, metadata=metadata)
    error: Any = raised.value
    assert dict(error.trailing_metadata())["x-request-id"] == "trace-17"
    (line,) = [line for line in sidecar.logs() if line.get("request_id") == "trace-17"]
    assert (line["code"], line["reason"]) == ("INVALID_ARGUMENT", "INVALID_FIELD")
    assert line["method"] == "/recalld.v1.MemoryService/Search"
    assert line["took_ms"] >= 0
    assert "secret" not in sidecar.output()


def test_health_and_reflection(sidecar: RunningSidecar) -> None:
    with connect(sidecar.address) as channel:
        check = health_check(channel)
        database = ProtoReflectionDescriptorDatabase(channel)
        services = [name for name in database.get_services() if name.startswith("recalld.")]
        assert services == ["recalld.v1.AdminService", "recalld.v1.MemoryService"]
        for service in services:
            request = health_pb2.HealthCheckRequest(service=service)
            assert check(request, timeout=SECONDS).status == health_pb2.HealthCheckResponse.SERVING
        described = DescriptorPool(database).FindServiceByName("recalld.v1.MemoryService")
    assert set(described.methods_by_name) >= {"Write", "Search", "Get", "Delete", "Brief", "CountTokens"}


def test_probes_and_metrics(sidecar: RunningSidecar) -> None:
    with connect(sidecar.address) as channel:
        request = pb.CountTokensRequest(texts=["one"])
        rpc.MemoryServiceStub(channel).CountTokens(request, timeout=SECONDS)
        admin_stub = admin_service_pb2_grpc.AdminServiceStub(channel)
        admin_stub.GetStats(admin_service_pb2.GetStatsRequest(), timeout=SECONDS)
    assert fetch(f"{sidecar.http}/healthz")[0] == 200
    assert fetch(f"{sidecar.http}/readyz")[0] == 200
    assert fetch(f"{sidecar.http}/nothing")[0] == 404
    status, text = fetch(f"{sidecar.http}/metrics")
    assert status == 200
    for method in ("MemoryService/CountTokens", "AdminService/GetStats"):
        assert f'recalld_request_seconds_bucket{{le="0.05",method="recalld.v1.{method}"}}' in text
        assert f'recalld_requests_total{{code="OK",method="recalld.v1.{method}"}}' in text
    assert "recalld_store_memories " in text
    assert f'version="{__version__}"' in text


def test_what_the_sidecar_makes_is_for_its_user_alone(sidecar: RunningSidecar) -> None:
    socket = Path(sidecar.address.removeprefix("unix:"))
    assert stat.S_IMODE(socket.stat().st_mode) == 0o600
    for path in [sidecar.data_dir, *sidecar.data_dir.rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_a_second_process_is_told_who_has_the_directory(sidecar: RunningSidecar, tmp_path: Path) -> None:
    refused = run_cli(
        "serve", "--data-dir", str(sidecar.data_dir), "--listen", f"unix:{tmp_path}/b.sock", "--http", "off"
    )
    assert refused.returncode == 1
    assert str(sidecar.pid) in refused.stderr
    assert sidecar.address in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not (tmp_path / "b.sock").exists()


def test_a_socket_in_use_is_refused_and_lives_on(sidecar: RunningSidecar, tmp_path: Path) -> None:
    refused = run_cli(
        "serve", "--data-dir", str(tmp_path / "d"), "--listen", sidecar.address, "--http", "off"
    )
    assert refused.returncode == 1
    assert f"another process serves {sidecar.address}" in refused.stderr
    with connect(sidecar.address) as channel:
        check = health_check(channel)
        assert check(health_pb2.HealthCheckRequest(), timeout=SECONDS).status


def test_a_port_in_use_is_refused(sidecar: RunningSidecar, tmp_path: Path) -> None:
    data = ["serve", "--data-dir", str(tmp_path / "d")]
    http = sidecar.http.removeprefix("http://")
    for flags in (
        ["--listen", sidecar.addresses[1], "--http", "off"],
        ["--listen", "127.0.0.1:0", "--http", http],
    ):
        refused = run_cli(*data, *flags)
        assert refused.returncode == 1
        assert refused.stderr.startswith("recalld: cannot ")
        assert refused.stderr.count("\n") == 1


def test_a_missing_parent_is_a_mistake_and_not_made(tmp_path: Path) -> None:
    refused = run_cli("serve", "--data-dir", str(tmp_path / "not-mounted" / "d"), "--listen", "127.0.0.1:0")
    assert refused.returncode == 1
    assert "not-mounted" in refused.stderr
    assert not (tmp_path / "not-mounted").exists()


def wait_for_metric(sidecar: RunningSidecar, line: str, call: Any) -> None:
    while line not in fetch(f"{sidecar.http}/metrics")[1].splitlines():
        assert not call.done(), "the call ended before it was seen"


@pytest.mark.usefixtures("front")
def test_a_drain_lets_the_call_in_hand_finish() -> None:
    with (
        running_sidecar() as sidecar,
        connect(sidecar.address, ("grpc.max_send_message_length", -1)) as channel,
    ):
        # Long enough to be in hand when the signal comes.
        texts = ["The quick brown fox jumps over the lazy dog. " * 1_000] * 340
        stub = rpc.MemoryServiceStub(channel)
        in_hand = stub.CountTokens.future(pb.CountTokensRequest(texts=texts), timeout=SECONDS)
        wait_for_metric(sidecar, "recalld_requests_in_flight 1.0", in_hand)
        sidecar.send(signal.SIGTERM)

        assert len(in_hand.result(SECONDS).counts) == len(texts)
        assert sidecar.wait() == 0
        assert [line.get("message") for line in sidecar.logs()][-2:] == ["draining", "stopped"]
        assert not Path(sidecar.address.removeprefix("unix:")).exists()


@pytest.fixture(scope="module")
def store_behind_a_token(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A data directory, and a token of the same store that it never reaches by itself: reads with it wait."""
    folder = tmp_path_factory.mktemp("token")
    request = pb.WriteRequest(namespace=ALICE, items=[pb.WriteItem(content="Alice prefers aisle seats.")])
    with running_sidecar(folder / "data") as sidecar, connect(sidecar.address) as channel:
        rpc.MemoryServiceStub(channel).Write(request, timeout=SECONDS)
        assert sidecar.stop() == 0
    shutil.copytree(folder / "data", folder / "behind")
    request.items[0].content = "Alice moved to Lyon."
    with running_sidecar(folder / "data") as sidecar, connect(sidecar.address) as channel:
        token = rpc.MemoryServiceStub(channel).Write(request, timeout=SECONDS).token
    return folder / "behind", token


@pytest.fixture
def waiting(
    front: str, store_behind_a_token: tuple[Path, str], tmp_path: Path
) -> Iterator[tuple[RunningSidecar, Any]]:
    """A sidecar with a call in hand that outlasts the test."""
    assert front
    behind, token = store_behind_a_token
    shutil.copytree(behind, tmp_path / "data")
    flags = ["--drain-seconds", "0.2", "--max-in-flight", "1"]
    with (
        running_sidecar(tmp_path / "data", flags=flags) as sidecar,
        connect(sidecar.address) as channel,
    ):
        request = pb.SearchRequest(namespace=ALICE, query="seats", at_least_as_fresh=token)
        call = rpc.MemoryServiceStub(channel).Search.future(request, timeout=10 * STOP_SECONDS)
        wait_for_metric(sidecar, "recalld_requests_in_flight 1.0", call)
        yield sidecar, call


def test_an_overloaded_sidecar_says_when_to_come_back(waiting: tuple[RunningSidecar, Any]) -> None:
    sidecar, call = waiting
    with connect(sidecar.address) as channel:
        with pytest.raises(grpc.RpcError) as raised:
            rpc.MemoryServiceStub(channel).CountTokens(pb.CountTokensRequest(texts=["a"]), timeout=SECONDS)
        error: Any = raised.value
        assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert reason(error) == "OVERLOADED"
        status = status_pb2.Status.FromString(dict(error.trailing_metadata())["grpc-status-details-bin"])
        assert [detail for detail in status.details if detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR)]
        # Health is not a call of the data plane.
        assert health_check(channel)(health_pb2.HealthCheckRequest(), timeout=SECONDS).status
    assert not call.done()


def test_a_drain_does_not_wait_longer_than_it_is_told(
    waiting: tuple[RunningSidecar, Any],
) -> None:
    sidecar, call = waiting
    assert sidecar.stop() == 0
    assert "were abandoned" in sidecar.logs()[-1]["message"]
    assert isinstance(call.exception(SECONDS), grpc.RpcError)


def test_a_drain_does_not_wait_for_a_call_whose_caller_is_gone(waiting: tuple[RunningSidecar, Any]) -> None:
    sidecar, call = waiting
    call.cancel()
    assert sidecar.stop() == 0


@pytest.mark.usefixtures("front")
def test_a_second_signal_ends_at_once(store_behind_a_token: tuple[Path, str], tmp_path: Path) -> None:
    behind, token = store_behind_a_token
    shutil.copytree(behind, tmp_path / "data")
    flags = ["--drain-seconds", "3600"]
    with running_sidecar(tmp_path / "data", flags=flags) as sidecar, connect(sidecar.address) as channel:
        request = pb.SearchRequest(namespace=ALICE, query="seats", at_least_as_fresh=token)
        call = rpc.MemoryServiceStub(channel).Search.future(request, timeout=10 * STOP_SECONDS)
        wait_for_metric(sidecar, "recalld_requests_in_flight 1.0", call)
        sidecar.send(signal.SIGTERM)
        sidecar.wait_for_log("draining")
        assert fetch(f"{sidecar.http}/readyz")[0] == 503
        assert fetch(f"{sidecar.http}/healthz")[0] == 200
        sidecar.send(signal.SIGINT)
        assert sidecar.wait() == -signal.SIGINT


@pytest.mark.usefixtures("front")
def test_interrupting_is_stopping(tmp_path: Path) -> None:
    with running_sidecar(tmp_path / "data") as sidecar:
        assert sidecar.stop(signal.SIGINT) == 0


@pytest.mark.usefixtures("front")
def test_what_was_acknowledged_is_there_after_a_kill(tmp_path: Path) -> None:
    with running_sidecar(tmp_path / "data") as sidecar, connect(sidecar.address) as channel:
        items = [pb.WriteItem(key="seat", content="Alice prefers aisle seats.")]
        rpc.MemoryServiceStub(channel).Write(pb.WriteRequest(namespace=ALICE, items=items), timeout=SECONDS)
        assert sidecar.stop(signal.SIGKILL) == -signal.SIGKILL
        # The socket is left behind; the next sidecar takes its place.
        listen = ["--listen", sidecar.address]
        with running_sidecar(tmp_path / "data", flags=listen) as second:
            assert sidecar.address in second.addresses
            with connect(sidecar.address) as again:
                request = pb.GetRequest(namespace=ALICE, keys=["seat"])
                details = rpc.MemoryServiceStub(again).Get(request, timeout=SECONDS)
    assert details.memories[0].content == "Alice prefers aisle seats."


def test_the_commands_of_a_working_day(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_sidecar(data) as sidecar:
        where = ["--address", sidecar.address, "--namespace", "acme/user/alice%2Fbob"]

        def run(*arguments: str, stdin: str = "") -> str:
            done = run_cli(*arguments, *where, stdin=stdin)
            assert done.returncode == 0, done.stderr
            return done.stdout

        def run_json(*arguments: str, stdin: str = "") -> Any:
            return json.loads(run(*arguments, "--json", stdin=stdin))

        written = run_json(
            "write", "-", "--key", "seat", "--kind", "preference", stdin="She likes aisle seats.\n"
        )
        assert written["outcome"] == "stored"
        assert run("write", "She likes window seats.", "--key", "seat").startswith(
            f"updated {written['id']} version 2"
        )
        metadata = ["--metadata", '{"order": {"id": 9007199254740993}}', "--tag", "trip", "--ttl", "30d"]
        run("write", "Booked BA 117 for 12 May.", "--occurred-at", "2026-05-01T10:00:00Z", *metadata)

        (first, *_) = run_json("search", "which seat does she like?")["hits"]
        assert first["id"] == written["id"]
        assert "window" in run("search", "which seat does she like?")

        (memory,) = run_json("get", "--key", "seat")["memories"]
        assert memory["content"] == "She likes window seats."
        (old,) = run_json("get", written["id"], "--as-of-version", "1")["memories"]
        assert old["content"] == "She likes aisle seats."
        (booked,) = run_json("search", "flight", "--tag", "trip", "--limit", "1")["hits"]
        (booking,) = run_json("get", booked["id"])["memories"]
        assert booking["metadata"] == {"order": {"id": 9007199254740993}}
        assert booking["occurred_at"] == "2026-05-01T10:00:00Z"
        assert "She likes window seats.\n" in run("get", "--key", "seat")

        brief = run_json("brief", "book a flight", "--budget-tokens", "300")
        assert 0 < brief["tokens"] <= 300
        assert run("brief", "book a flight", "--budget-tokens", "300") == brief["text"] + "\n"

        assert run_json("stats")["namespace"]["memories"] == 2
        assert "namespace.versions: 3\n" in run("stats")

        doctor = run_cli("doctor", "--data-dir", str(data), "--listen", sidecar.address, "--json")
        assert doctor.returncode == 0, doctor.stdout
        (held,) = [finding for finding in json.loads(doctor.stdout) if finding["where"] == str(data)]
        assert f"process {sidecar.pid} serves it at {sidecar.address}" in held["what"]
        assert "2 memories" in held["what"]

        assert (
            run("delete", "--key", "seat", "--key", "none", "--dry-run")
            == "would delete 1 memories (2 versions)\n"
        )
        assert run_json("delete", "--key", "seat")["deleted"] == 1
        gone = run_cli("get", "--key", "seat", *where)
        assert (gone.returncode, gone.stderr) == (1, "recalld: not found: seat\n")
        refused = run_cli("write", "x", "--importance", "2", *where)
        assert refused.returncode == 1
        assert refused.stderr.startswith("recalld: INVALID_FIELD: ")
        assert "items[0].importance" in refused.stderr
        assert refused.stderr.count("\n") == 1

    doctor = run_cli("doctor", "--data-dir", str(data), "--listen", sidecar.address)
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    assert "PROBLEM" not in doctor.stdout


def test_the_doctor_finds_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    listen = ["--listen", f"unix:{tmp_path}/file"]
    model = ["--model-dir", str(tmp_path)]
    sick = run_cli("doctor", "--data-dir", str(tmp_path / "none"), "--json", *listen, *model)
    assert sick.returncode == 1
    problems = {finding["where"]: finding for finding in json.loads(sick.stdout) if finding["fix"]}
    assert set(problems) == {f"unix:{tmp_path}/file", str(tmp_path), str(tmp_path / "none")}
    assert (
        "lacks model.safetensors and vocab.txt and neighbours.safetensors" in problems[str(tmp_path)]["what"]
    )
    printed = run_cli("doctor", "--data-dir", str(tmp_path / "none"), *listen, *model).stdout
    assert printed.count("PROBLEM") == printed.count("fix: ") == 3


def test_the_doctor_finds_a_damaged_data_file(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_sidecar(data) as sidecar, connect(sidecar.address) as channel:
        items = [pb.WriteItem(content=f"Memory number {number} about seats.") for number in range(200)]
        rpc.MemoryServiceStub(channel).Write(pb.WriteRequest(namespace=ALICE, items=items), timeout=SECONDS)
    file = max((path for path in data.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    content = bytearray(file.read_bytes())
    at = content.index(b"Memory number 100 about seats")
    content[at] ^= 0xFF
    file.write_bytes(content)
    sick = run_cli("doctor", "--data-dir", str(data), "--listen", f"unix:{tmp_path}/none.sock")
    assert sick.returncode == 1
    assert "PROBLEM" in sick.stdout
