"""Search through grpcio: the real process on its Unix socket, beside an empty service and the core alone."""

from collections.abc import Callable
from statistics import median
from typing import TypeVar

import psutil
from recalld import Client
from recalld.v1 import memory_service_pb2 as pb

from tests.load import echo
from tests.load.callers import SECONDS, Target, running_callers, stub
from tests.load.report import Figures, at_most
from tests.load.rounds import difference, garbage_kept, in_turns, ratio
from tests.load.scale import Scale
from tests.load.stores import NAMESPACE, SERVICE, Workshop, opened, search_requests
from tests.support.sidecar import connect, running_sidecar

CALLERS = 8
QUERIES = 1_000
SEARCH = SERVICE + "Search"
LIGHT = SERVICE + "CountTokens"
LIGHT_REQUEST = pb.CountTokensRequest(texts=["word"]).SerializeToString()
"""A call that costs the core nothing: what is left is the sidecar's own."""

_Argument = TypeVar("_Argument")


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure with one caller and with eight."""
    count = scale.memories
    figures = Figures(f"Search through grpcio, Unix socket, {count:,} memories")
    requests = search_requests(workshop.memories(count), QUERIES)
    with opened(workshop.copy(count)) as store:
        answer_bytes = round(median(len(store.call(SEARCH, request)) for request in requests))
        with running_sidecar(workshop.copy(count)) as sidecar, echo.running_echo(answer_bytes) as empty:
            targets = {
                "grpcio": Target(sidecar.address, SEARCH, requests),
                "echo": Target(empty.address, echo.METHOD, requests),
            }
            core = _cycled(lambda request: store.call(SEARCH, request), requests)
            _one_caller(figures, scale, targets["grpcio"], targets["echo"], core)
            _many_callers(figures, scale, targets, {"grpcio": sidecar.pid, "echo": empty.pid})
    request_bytes = round(median(map(len, requests)))
    figures.notes.append(
        f"A request has {request_bytes} bytes and an answer {answer_bytes}; the empty service, a plain "
        "grpcio server in a process of its own, answers as many without looking at the request. Both are "
        f"called by the same unmodified grpcio stub. The {CALLERS} callers are processes, each with a "
        "channel of its own, which make their calls without a pause."
    )
    return figures


def _one_caller(
    figures: Figures,
    scale: Scale,
    search: Target,
    empty: Target,
    core: Callable[[int], object],
) -> None:
    requests = list(search.requests)
    queries = [pb.SearchRequest.FromString(request).query for request in requests]
    with (
        connect(search.address) as channel,
        connect(empty.address) as empty_channel,
        Client(search.address, timeout=SECONDS) as client,
    ):
        namespace = client.namespace(*NAMESPACE.segments)
        call, call_light = stub(channel, search.method), stub(channel, LIGHT)
        call_empty = stub(empty_channel, empty.method)
        contestants = {
            "core": core,
            "grpcio": _cycled(lambda request: call(request, timeout=SECONDS), requests),
            "client": _cycled(namespace.search, queries),
            "light": _cycled(lambda request: call_light(request, timeout=SECONDS), [LIGHT_REQUEST]),
            "echo": _cycled(lambda request: call_empty(request, timeout=SECONDS), requests),
        }
        timings = in_turns(contestants, rounds=scale.rounds, calls_a_round=scale.calls)
    for name, title in (
        ("core", "in the process, without gRPC"),
        ("grpcio", "through grpcio, stub"),
        ("client", "through grpcio, Python client"),
        ("light", "through grpcio, stub, counting the tokens of a word"),
        ("echo", "empty grpcio service"),
    ):
        figures.add(f"{title}: p50", timings[name].p50 * 1e3, "ms")
        figures.add(f"{title}: p99", timings[name].p99 * 1e3, "ms")
    grpcio, empty_service = timings["grpcio"], timings["echo"]
    on_top = difference(grpcio.p50s, timings["core"].p50s)
    figures.add("on top of the call in the process, stub: p50", on_top * 1e3, "ms", at_most(0.6))
    figures.add("stub / empty service: p50", ratio(grpcio.p50s, empty_service.p50s), "x")
    light = timings["light"]
    figures.add("counting a word / empty service: p50", ratio(light.p50s, empty_service.p50s), "x")
    figures.add("stub / empty service: p99", ratio(grpcio.p99s, empty_service.p99s), "x")
    figures.add("Python client / stub: p50", ratio(timings["client"].p50s, grpcio.p50s), "x")


def _many_callers(figures: Figures, scale: Scale, targets: dict[str, Target], pids: dict[str, int]) -> None:
    rates: dict[str, list[float]] = {name: [] for name in targets}
    costs: dict[str, list[float]] = {name: [] for name in targets}
    processes = {name: psutil.Process(pid) for name, pid in pids.items()}
    with running_callers(CALLERS, targets) as callers, garbage_kept():
        for _ in range(scale.rounds):
            for name, process in processes.items():
                before = process.cpu_times()
                rates[name].append(callers.calls_a_second(name, scale.calls))
                after = process.cpu_times()
                used = after.user + after.system - before.user - before.system
                costs[name].append(used / (len(callers) * scale.calls))
    figures.add(f"{CALLERS} callers, Search: calls a second", median(rates["grpcio"]), "1/s")
    figures.add(f"{CALLERS} callers, empty service: calls a second", median(rates["echo"]), "1/s")
    figures.add(f"{CALLERS} callers, Search / empty service", ratio(rates["grpcio"], rates["echo"]), "x")
    figures.add(
        f"{CALLERS} callers, Search: processor time of the server", median(costs["grpcio"]) * 1e6, "µs"
    )
    figures.add(
        f"{CALLERS} callers, empty service: processor time of the server", median(costs["echo"]) * 1e6, "µs"
    )


def _cycled(call: Callable[[_Argument], object], arguments: list[_Argument]) -> Callable[[int], object]:
    return lambda index: call(arguments[index % len(arguments)])
