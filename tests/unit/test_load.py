"""`recalld load` without a sidecar: arguments, texts, the search for a rate, pictures, and the generator's own face."""

import argparse
import os
import signal
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar import cli
from recalld_sidecar._core import LoadReport, load
from recalld_sidecar.load import _measure, add_arguments, report
from recalld_sidecar.load.plot import Axis, Chart
from recalld_sidecar.load.rate import highest_rate
from recalld_sidecar.load.texts import Texts
from recalld_sidecar.load.workload import PREFIX, Mix, Workload

METHOD = "/test.Service/Method"
BUSY = "/test.Service/Busy"
SLOW = "/test.Service/Slow"
SERVICE_SECONDS = 0.01


class Handlers(grpc.GenericRpcHandler):
    """Answers one method, refuses another, and takes a fixed time for a third."""

    def service(self, details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any]":
        def answer(_request: bytes, context: grpc.ServicerContext) -> bytes:
            if details.method == BUSY:
                context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "come back later")
            if details.method == SLOW:
                time.sleep(SERVICE_SECONDS)
            return b""

        return grpc.unary_unary_rpc_method_handler(answer)


@contextmanager
def serving(folder: Path, *, threads: int = 8) -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(threads), handlers=[Handlers()])
    address = f"unix:{folder}/server.sock"
    server.add_insecure_port(address)
    server.start()
    try:
        yield address
    finally:
        server.stop(None).wait()


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    with serving(tmp_path) as served:
        yield served


def measured(address: str, *methods: str, rate: float = 100.0, seconds: float = 0.5) -> LoadReport:
    return load(address, [(method, [b""], 1.0) for method in methods], rate=rate, seconds=seconds)


# Arguments


@pytest.mark.parametrize(
    "arguments",
    [
        ["--rate", "0"],
        ["--rate", "-1"],
        ["--rate", "nan"],
        ["--rate", "inf"],
        ["--duration", "30"],
        ["--duration", "0s"],
        ["--slo", "1h"],
        ["--namespaces", "0"],
        ["--memories", "some"],
        ["--writes", "101%"],
        ["--writes", "-1%"],
        ["--writes", "1%1"],
        ["--briefs", "2"],
        ["--connections", "0"],
        ["extra"],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        cli.main(["load", *arguments])
    assert exited.value.code == 2
    assert "usage: recalld" in capsys.readouterr().err


def test_more_than_all_calls_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["load", "--target", "unix:/none", "--writes", "60%", "--briefs", "0.5"]) == 2
    assert capsys.readouterr().err == "recalld: --writes and --briefs are more than all calls\n"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "unix:{tmp}/none.sock",
            "no sidecar answers at unix:{tmp}/none.sock: start one with `recalld serve`",
        ),
        ("nowhere", "target"),
    ],
)
def test_what_cannot_be_measured_is_2_and_one_line(
    target: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["load", "--target", target.format(tmp=tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("recalld: ")
    assert message.format(tmp=tmp_path) in captured.err
    assert captured.err.count("\n") == 1


# The search for a rate


@given(
    capacity=st.floats(10.0, 1e5),
    first=st.floats(0.01, 1e5),
    precision=st.sampled_from([0.01, 0.05, 0.2]),
)
def test_the_highest_rate_is_found(capacity: float, first: float, precision: float) -> None:
    found = highest_rate(lambda rate, _: rate <= capacity, first=first, precision=precision)
    assert capacity / (1 + precision) <= found <= capacity


def test_one_bad_probe_does_not_end_the_search() -> None:
    probes = 0

    def held(rate: float, _: float) -> bool:
        nonlocal probes
        probes += 1
        return rate <= 1_000 and probes % 2 == 0

    assert 1_000 / 1.05 <= highest_rate(held, first=100) <= 1_000


def test_a_rate_that_is_not_confirmed_is_lowered() -> None:
    runs: list[tuple[float, float]] = []

    def held(rate: float, seconds: float) -> bool:
        runs.append((rate, seconds))
        return rate <= (1_000 if seconds < 9 else 500)

    found = highest_rate(held, first=100, short=1, long=9)
    assert 250 < found <= 500
    assert runs[-1] == (found, 9)


def test_nothing_that_is_held_is_0() -> None:
    assert highest_rate(lambda *_: False, first=1_000) == 0
    assert highest_rate(lambda _, seconds: seconds < 9, first=80, short=1, long=9) == 0


def test_a_server_of_known_capacity(tmp_path: Path) -> None:
    # One call at a time, ten milliseconds each: a hundred a second on any machine, fewer on a slow one.
    with serving(tmp_path, threads=1) as address:

        def held(rate: float, seconds: float) -> bool:
            found = load(address, [(SLOW, [b""], 1.0)], rate=rate, seconds=seconds, timeout=2)
            # Half of the time of a probe: a backlog that grows all through it is longer.
            return report.within(found, 0.5 * seconds)

        found = highest_rate(held, first=400, short=0.4, long=0.8, precision=0.3)
    # What was called within half the time of a probe, and what waits for the other half, is answered in time.
    assert 0 < found <= 1.5 / SERVICE_SECONDS * 1.1


# What is sent


def test_texts_are_a_function_of_the_seed() -> None:
    one, other = Texts(3, chinese=0.5), Texts(3, chinese=0.5)
    memories = one.memories(50)
    assert memories == other.memories(50)
    assert one.queries(memories, 50) == other.queries(memories, 50)
    assert memories != Texts(4, chinese=0.5).memories(50)


def test_texts_are_in_both_languages_and_queries_repeat_their_memory() -> None:
    texts = Texts(5, chinese=0.5)
    memories = texts.memories(100)
    chinese = [memory for memory in memories if not memory.isascii()]
    assert 20 < len(chinese) < 80
    for memory in memories:
        query = texts.query(memory)
        if memory in chinese:
            assert query[:4] in memory
        else:
            own = set(memory.lower().replace(".", "").split())
            assert len(own & set(query.rstrip("?").split())) >= 3
    assert all(memory.isascii() for memory in Texts(5).memories(100))


def test_calls_go_to_the_runs_own_namespaces_in_their_shares() -> None:
    workload = Workload("run", namespaces=3, memories=5, seed=1)
    calls = workload.calls(Mix(writes=0.25, briefs=0.0), 1_000)
    assert [(method.rpartition("/")[2], weight) for method, _, weight in calls] == [
        ("Search", 0.75),
        ("Write", 0.25),
    ]
    (_, searches, _), (_, writes, _) = calls
    namespaces = {tuple(pb.SearchRequest.FromString(search).namespace.segments) for search in searches}
    assert namespaces == {(PREFIX, "run", f"{number:06d}") for number in range(3)}
    contents = [pb.WriteRequest.FromString(write).items[0].content for write in writes]
    assert len(set(contents)) == len(contents) >= 250
    again = Workload("run", namespaces=3, memories=5, seed=1)
    assert again.calls(Mix(writes=0.25, briefs=0.0), 1_000) == calls


def test_every_probe_writes_what_no_other_has_and_is_reported_as_it_was(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    flags = ["--find-rate", "--rate", "40", "--duration", "1s", "--slo", "0.001ms", "--writes", "50%"]
    written: list[list[bytes]] = []
    seconds: list[float] = []

    def recorded(target: str, calls: Any, **arguments: Any) -> LoadReport:
        written.append(next(requests for method, requests, _ in calls if method.endswith("/Write")))
        seconds.append(arguments["seconds"])
        return load(target, calls, **arguments)

    monkeypatch.setattr("recalld_sidecar.load.load", recorded)
    workload = Workload("run", namespaces=2, memories=5, seed=1)
    runs = _measure(address, workload, parser.parse_args(flags))
    assert len(runs) == len(written) >= 4
    assert len({write for writes in written for write in writes}) == sum(map(len, written))
    # Even ten a second were too many: what is reported is the last short probe, which was longer than the first.
    assert [run.seconds for run in runs] == seconds
    assert runs[-1].rate == 10


# The generator, from Python


def test_failures_are_counted_by_code_and_said(address: str) -> None:
    found = measured(address, METHOD, BUSY)
    (_, answered), (_, refused) = found.methods
    assert (answered.codes, answered.messages) == ({0: answered.calls}, {})
    assert (refused.codes, refused.messages) == ({8: refused.calls}, {8: "come back later"})
    assert found.total.calls == answered.calls + refused.calls == 50
    assert found.total.ok == answered.ok
    run = report.Run(address, "about", 100.0, 0.5, 60.0, found)
    text = "\n".join(run.lines())
    assert f"{refused.calls} failed with RESOURCE_EXHAUSTED: come back later" in text
    assert "SLO NOT HELD" in text
    assert not run.held
    assert run.as_json()["calls"]["Busy"]["codes"] == {"RESOURCE_EXHAUSTED": refused.calls}


def test_an_slo_is_held_by_answers_and_only_by_them(address: str) -> None:
    found = measured(address, METHOD)
    assert report.within(found, 60)
    assert not report.within(found, 1e-6)
    assert found.total.quantile(0.5) <= found.total.quantile(0.99) <= found.total.max * 1.001
    assert found.elapsed > 0.4
    assert found.lag.calls == 50
    assert not report.within(measured(address, BUSY), 60)


def test_what_cannot_be_planned_is_a_value_error(address: str) -> None:
    calls = [(METHOD, [b""], 1.0)]
    for arguments, message in (
        ({"seconds": 1}, "one of rate and callers"),
        ({"seconds": 1, "rate": 1, "callers": 1}, "one of rate and callers"),
        ({"seconds": 0, "rate": 1}, "duration"),
        ({"seconds": -1, "rate": 1}, "seconds"),
        ({"seconds": 1, "rate": 0}, "rate"),
        ({"seconds": 1, "callers": 0}, "callers"),
    ):
        with pytest.raises(ValueError, match=message):
            load(address, calls, **arguments)
    with pytest.raises(ValueError, match="neither unix:PATH nor HOST:PORT"):
        load("nowhere", calls, seconds=1, rate=1)
    with pytest.raises(ConnectionError, match=r"none\.sock"):
        load(f"{address}/none.sock", calls, seconds=1, rate=1)


def test_a_signal_ends_a_run(address: str) -> None:
    def handle(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, handle)
    interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        interrupt.start()
        with pytest.raises(KeyboardInterrupt):
            measured(address, METHOD, seconds=3_600)
    finally:
        interrupt.join()
        signal.signal(signal.SIGUSR1, before)


# Pictures


def drawn(chart: Chart) -> ET.Element:
    return ET.fromstring(chart.svg())


SVG = "{http://www.w3.org/2000/svg}"


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=8),
        st.lists(st.tuples(st.floats(1e-3, 1e6), st.floats(1e-6, 1e6)), max_size=6),
        max_size=4,
    ),
    st.booleans(),
)
def test_any_points_stay_inside_the_picture(series: dict[str, list[tuple[float, float]]], log: bool) -> None:
    chart = Chart("a < b", Axis("x & y", log=log), Axis("y", log=log), series, ("SLO", 50.0))
    root = drawn(chart)
    assert root.findtext(f"{SVG}title") == "a < b"
    lines = root.findall(f"{SVG}polyline")
    assert len(lines) == len(series)
    points = [point.split(",") for line in lines for point in line.attrib["points"].split()]
    assert len(points) == sum(map(len, series.values()))
    assert all(0 <= float(x) <= 760 and 0 <= float(y) <= 420 for x, y in points)


def test_latencies_are_drawn_by_percentile_and_by_rate(address: str) -> None:
    stats = measured(address, METHOD).total
    by_percentile = drawn(report.by_percentile("latency", {"one": stats}, 0.05))
    # Of 50 calls one is beyond the 98th percentile, and none beyond the 99th.
    assert len(by_percentile.findall(f"{SVG}circle")) == 6
    assert "SLO 50 ms" in [text.text for text in by_percentile.iter(f"{SVG}text")]
    probes = [(200.0, stats), (100.0, stats), (100.0, stats)]
    by_rate = drawn(report.by_rate("rates", {"one": probes}, 0.05))
    assert len(by_rate.findall(f"{SVG}circle")) == 2
