"""Search in a store of many small namespaces, beside one of few: what a tenant pays for the others."""

import time
from pathlib import Path
from statistics import median

from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.types_pb2 import Namespace
from recalld_sidecar.load.texts import Texts

from tests.load.report import COMMAND, Figures, at_most
from tests.load.rounds import in_turns, percentile, ratio
from tests.load.scale import LARGE, Scale
from tests.load.stores import SERVICE, Store, Workshop, opened

FEW = 100
"""Namespaces of the store that is compared with."""
MEMORIES = 100
"""Of each namespace."""
TEXTS = 10_000
"""Different memories; namespaces share them."""
QUERIES = 1_000
"""Each in a namespace of its own, where there are so many."""
SEARCH = SERVICE + "Search"
GOAL = at_most(1.2)


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure the stores in turns."""
    figures = Figures(f"Search in one of many namespaces of {MEMORIES} memories, in the core")
    memories = Texts(19).memories(TEXTS)
    for many in scale.namespaces:
        _beside_few(figures, workshop, scale, many, memories)
    if LARGE.namespaces[-1] not in scale.namespaces:
        name = f"{LARGE.namespaces[-1]:,} namespaces / {FEW}: p50"
        figures.miss(name, "x", GOAL, f"{COMMAND} --only namespaces --large")
    return figures


def _beside_few(figures: Figures, workshop: Workshop, scale: Scale, many: int, memories: list[str]) -> None:
    with (
        opened(_filled(workshop, FEW, memories)) as small,
        opened(_filled(workshop, many, memories)) as large,
    ):
        requests = {name: _requests(count, memories) for name, count in (("few", FEW), ("many", many))}
        # Pages of a store as large as the machine's memory come from the disk first.
        cold = percentile([_seconds(large, request) for request in requests["many"]], 0.5)
        for request in requests["few"]:
            small.call(SEARCH, request)
        timings = in_turns(
            {
                "few": lambda at: small.call(SEARCH, requests["few"][at % QUERIES]),
                "many": lambda at: large.call(SEARCH, requests["many"][at % QUERIES]),
            },
            rounds=scale.rounds,
            calls_a_round=scale.calls,
        )
    few, some = timings["few"], timings["many"]
    figures.add(f"{FEW} namespaces, beside {many:,}: p50", median(few.p50s) * 1e3, "ms")
    figures.add(f"{many:,} namespaces: p50", median(some.p50s) * 1e3, "ms")
    figures.add(f"{many:,} namespaces: p50 of first searches", cold * 1e3, "ms")
    goal = GOAL if many == LARGE.namespaces[-1] else None
    figures.add(f"{many:,} namespaces / {FEW}: p50", ratio(some.p50s, few.p50s), "x", goal)


def _seconds(store: Store, request: bytes) -> float:
    start = time.perf_counter()
    store.call(SEARCH, request)
    return time.perf_counter() - start


def _filled(workshop: Workshop, namespaces: int, memories: list[str]) -> Path:
    def fill(path: Path) -> None:
        with opened(path) as store:
            _fill(store, namespaces, memories)

    return workshop.made(f"namespaces-{namespaces}", fill)


def _fill(store: Store, namespaces: int, memories: list[str]) -> None:
    for number in range(namespaces):
        first = number * MEMORIES % len(memories)
        items = [pb.WriteItem(content=text) for text in memories[first : first + MEMORIES]]
        request = pb.WriteRequest(namespace=_name(number), items=items)
        store.call(SERVICE + "Write", request.SerializeToString())


def _requests(namespaces: int, memories: list[str]) -> list[bytes]:
    queries = Texts(23).queries(memories, QUERIES)
    # A stride without a common factor visits namespaces all over the store.
    return [
        pb.SearchRequest(namespace=_name(at * 7_919 % namespaces), query=query).SerializeToString()
        for at, query in enumerate(queries)
    ]


def _name(number: int) -> Namespace:
    return Namespace(segments=["small", f"{number:06d}"])
