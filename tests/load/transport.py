"""Search through the real process on its Unix socket, by both fronts, beside services that do nothing.

Calls are made by the native open-loop generator: at a constant rate, their latency counted from the planned moment.
"""

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import psutil
from recalld import Client
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar.load import report as load_report
from recalld_sidecar.load.rate import highest_rate

from tests.load import echo
from tests.load.report import Figures, at_least, at_most
from tests.load.rounds import difference, percentile, ratio, turns
from tests.load.scale import Scale
from tests.load.served import SLO, Target, note_failures, served
from tests.load.stores import NAMESPACE, SERVICE, Store, Workshop, opened, search_requests

if TYPE_CHECKING:
    from recalld_sidecar._core import LoadStats

QUERIES = 1_000
SEARCH = SERVICE + "Search"
RATE = 1_000
"""Calls a second at which latencies are compared."""
BUSY_CALLERS = 4
"""Callers that keep a process busy while its processor time is taken."""
MANY_CALLERS = 16
"""Callers that leave no processor idle."""

NATIVE, PYTHON, BURNING = "native front", "python front", "native front beside a busy Python thread"
NATIVE_ECHO, ECHO = "Get through the native front", "empty grpcio service"
MACHINE = "a fixed computation as long as a search, on one thread"


@dataclass(frozen=True)
class Services:
    """All that is called."""

    store: Store
    """The core in this process, on a copy of the same data."""
    requests: list[bytes]
    targets: dict[str, Target]
    answer_bytes: int
    spare: Path
    """A copy of the data that nobody has opened."""


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure with one caller, at a rate, and the highest rate."""
    figures = Figures(f"Search over the Unix socket, {scale.memories:,} memories")
    with _services(workshop, scale) as services:
        _one_caller(figures, scale, services)
        _processor_time(figures, scale, services)
        _at_a_rate(figures, scale, services)
        _highest_rates(figures, scale, services)
        _without_a_pause(figures, scale, services)
        for name in (NATIVE, PYTHON):
            resident = psutil.Process(services.targets[name].pid).memory_info().rss
            figures.add(f"{name}: resident memory of the process", resident / 2**20, "MiB")
    request_bytes = round(median(map(len, services.requests)))
    figures.notes.append(
        f"A search has {request_bytes} bytes and its answer {services.answer_bytes}. The *{ECHO}* answers as many "
        f"without looking at the request. *{NATIVE_ECHO}* reads one memory of as many bytes by its key: the least that "
        "a call of the data plane does. *Core* is the call in the process, without gRPC. The *busy Python thread* "
        "runs in the sidecar's own process and holds the GIL a third of the time. The *fixed computation* hashes "
        "bytes, waits for nothing and shares nothing: by what its p99 exceeds its p50, the machine was slow."
    )
    return figures


@contextmanager
def _services(workshop: Workshop, scale: Scale) -> Iterator[Services]:
    requests = search_requests(workshop.memories(scale.memories), QUERIES)
    with ExitStack() as stack:
        store = stack.enter_context(opened(workshop.copy(scale.memories)))
        answer_bytes = round(median(len(store.call(SEARCH, request)) for request in requests))
        native = stack.enter_context(served(workshop.copy(scale.memories), "--front", "native"))
        python = stack.enter_context(served(workshop.copy(scale.memories), "--front", "python"))
        empty = stack.enter_context(echo.running_echo(answer_bytes))
        with Client(native.address) as client:
            client.namespace("echo").write("a" * answer_bytes, key="echo")
        get = pb.GetRequest(keys=["echo"])
        get.namespace.segments.append("echo")
        targets = {
            NATIVE: Target(native.address, native.pid, SEARCH, requests),
            PYTHON: Target(python.address, python.pid, SEARCH, requests),
            ECHO: Target(empty.address, empty.pid, echo.METHOD, requests),
            NATIVE_ECHO: Target(native.address, native.pid, SERVICE + "Get", [get.SerializeToString()]),
        }
        yield Services(store, requests, targets, answer_bytes, workshop.copy(scale.memories))


def _one_caller(figures: Figures, scale: Scale, services: Services) -> None:
    def over_the_socket(target: Target) -> Callable[[], float]:
        return lambda: target.answered(callers=1, seconds=scale.turn_seconds).total.quantile(0.5)

    queries = [pb.SearchRequest.FromString(request).query for request in services.requests]
    with Client(services.targets[NATIVE].address) as client:
        search = client.namespace(*NAMESPACE.segments).search
        contestants = {
            "core": lambda: _p50(lambda at: services.store.call(SEARCH, services.requests[at]), scale),
            **{name: over_the_socket(target) for name, target in services.targets.items()},
            "client": lambda: _p50(lambda at: search(queries[at]), scale),
        }
        p50s = turns(contestants, rounds=scale.rounds)
    for name, title in (
        ("core", "core"),
        *((name, name) for name in services.targets),
        ("client", f"Python client, {NATIVE}"),
    ):
        figures.add(f"1 caller, {title}: p50", median(p50s[name]) * 1e3, "ms")
    for name, goal in ((NATIVE, 0.15), (PYTHON, 0.6)):
        on_top = difference(p50s[name], p50s["core"])
        figures.add(f"1 caller, {name}: on top of the core, p50", on_top * 1e3, "ms", at_most(goal))


def _p50(call: Callable[[int], object], scale: Scale) -> float:
    """Call for a turn and return the median."""
    taken: list[float] = []
    end = time.perf_counter() + scale.turn_seconds
    while (start := time.perf_counter()) < end:
        call(len(taken) % QUERIES)
        taken.append(time.perf_counter() - start)
    return median(taken)


def _processor_time(figures: Figures, scale: Scale, services: Services) -> None:
    def core() -> float:
        start = time.thread_time()
        for request in services.requests:
            services.store.call(SEARCH, request)
        return (time.thread_time() - start) / len(services.requests)

    def process(target: Target) -> Callable[[], float]:
        return lambda: target.cpu(seconds=5 * scale.turn_seconds, callers=BUSY_CALLERS)

    contestants = {"core": core, **{name: process(target) for name, target in services.targets.items()}}
    spent = turns(contestants, rounds=max(scale.rounds // 4, 1))
    for name, seconds in spent.items():
        figures.add(f"{name}: processor time of a call", median(seconds) * 1e6, "µs")
    for name, goal in ((NATIVE, at_most(60)), (PYTHON, None)):
        on_top = difference(spent[name], spent["core"])
        figures.add(f"{name}: processor time on top of the core's own", on_top * 1e6, "µs", goal)


def _at_a_rate(figures: Figures, scale: Scale, services: Services) -> None:
    last: dict[str, LoadStats] = {}

    def p99(name: str, target: Target) -> Callable[[], float]:
        def measured() -> float:
            report = target.call(rate=RATE, seconds=scale.rate_seconds, warmup=scale.rate_seconds / 5)
            last[name] = report.total
            note_failures(figures, f"{RATE:,}/s, {name}", report.total)
            return report.total.quantile(0.99)

        return measured

    with served(services.spare, "--front", "native", burning=True) as burning:
        targets = {
            NATIVE: services.targets[NATIVE],
            PYTHON: services.targets[PYTHON],
            BURNING: Target(burning.address, burning.pid, SEARCH, services.requests),
        }
        compute = _computation(_p50(lambda at: services.store.call(SEARCH, services.requests[at]), scale))
        fixed: list[float] = []

        def machine() -> float:
            fixed[:] = _paced(compute, scale.rate_seconds)
            return percentile(fixed, 0.99)

        contestants = {name: p99(name, target) for name, target in targets.items()}
        p99s = turns({**contestants, MACHINE: machine}, rounds=3, warm_up=False)
    figures.add(f"{RATE:,}/s, {MACHINE}: p50, last round", median(fixed) * 1e3, "ms")
    figures.add(f"{RATE:,}/s, {MACHINE}: p99", median(p99s.pop(MACHINE)) * 1e3, "ms")
    goals = {NATIVE: at_most(5), PYTHON: at_most(5), BURNING: at_most(10)}
    for name, found in p99s.items():
        figures.add(f"{RATE:,}/s, {name}: p99", median(found) * 1e3, "ms", goals[name])
        stats = last[name]
        for share, label in ((0.5, "p50"), (0.95, "p95"), (0.999, "p99.9")):
            figures.add(f"{RATE:,}/s, {name}: {label}, last round", stats.quantile(share) * 1e3, "ms")
    title = f"Search at {RATE:,} a second: latency by percentile"
    figures.charts["latency"] = load_report.by_percentile(title, last)


def _computation(seconds: float) -> Callable[[], object]:
    """Return what takes a processor about so long."""
    block = bytes(1 << 20)
    taken = []
    for _ in range(9):
        start = time.perf_counter()
        hashlib.sha256(block)
        taken.append(time.perf_counter() - start)
    part = block[: max(round(len(block) * seconds / median(taken)), 1)]
    return lambda: hashlib.sha256(part).digest()


def _paced(compute: Callable[[], object], seconds: float) -> list[float]:
    """Compute at the rate, one after the other; return how long after each planned moment it was done."""
    taken = []
    start = time.perf_counter()
    for number in range(round(RATE * seconds)):
        planned = start + number / RATE
        time.sleep(max(planned - time.perf_counter(), 0))
        compute()
        taken.append(time.perf_counter() - planned)
    return taken


def _without_a_pause(figures: Figures, scale: Scale, services: Services) -> None:
    """Unlike the highest rate, this does not hang on the longest pause that the machine makes."""

    def answers(target: Target) -> Callable[[], float]:
        def measured() -> float:
            report = target.answered(callers=MANY_CALLERS, seconds=scale.turn_seconds)
            return report.total.ok / report.elapsed

        return measured

    compared = {name: answers(services.targets[name]) for name in (NATIVE, ECHO, PYTHON)}
    found = turns(compared, rounds=scale.rounds)
    for name, rates in found.items():
        figures.add(f"{MANY_CALLERS} callers without a pause, {name}: answers", median(rates), "1/s")
    name = f"{MANY_CALLERS} callers without a pause, {NATIVE} / {ECHO}"
    figures.add(name, ratio(found[NATIVE], found[ECHO]), "x")


def _highest_rates(figures: Figures, scale: Scale, services: Services) -> None:
    probes: dict[str, list[tuple[float, LoadStats]]] = {name: [] for name in services.targets}

    def highest(name: str) -> Callable[[], float]:
        def held(rate: float, seconds: float) -> bool:
            report = services.targets[name].call(rate=rate, seconds=seconds, warmup=seconds / 5)
            probes[name].append((rate, report.total))
            return load_report.within(report, SLO)

        def measured() -> float:
            first = max((rate for rate, _ in probes[name][-1:]), default=float(RATE))
            return highest_rate(
                held, first=first, short=scale.probe_seconds, long=2 * scale.probe_seconds, precision=0.1
            )

        return measured

    compared = {name: highest(name) for name in (NATIVE, ECHO)}
    rates = turns(compared, rounds=scale.rate_rounds, warm_up=False)
    rates |= turns({name: highest(name) for name in (PYTHON, NATIVE_ECHO)}, rounds=1, warm_up=False)
    for name, found in rates.items():
        figures.add(f"highest rate with p99 < {SLO * 1e3:g} ms, {name}", median(found), "1/s")
    figures.add(f"highest rate, {NATIVE} / {ECHO}", ratio(rates[NATIVE], rates[ECHO]), "x", at_least(2))
    title = "Search: p99 by rate of arrival"
    figures.charts["rates"] = load_report.by_rate(title, probes, SLO)
