"""Search and brief in the core, one thread, beside the exact scan of the same vectors."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar import _core
from recalld_sidecar.load.texts import MODEL

from tests.load.report import COMMAND, Figures, Goal, at_most
from tests.load.rounds import Call, Timing, in_turns, ratio
from tests.load.scale import LARGE, Scale
from tests.load.stores import (
    INDEX_AFTER,
    NAMESPACE,
    NEVER,
    SERVICE,
    Store,
    Workshop,
    brief_requests,
    opened,
    search_requests,
)

QUERIES = 1_000
"""Different queries; they are asked again and again."""

HUGE_GOAL = at_most(1.5)
"""Of the median at a million memories, in milliseconds."""

EXACT = "scan"
"""What the core calls the method that looks at every vector."""

_Matrix = NDArray[np.float32]


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure at all sizes."""
    figures = Figures("Search in the core, one thread")
    _at_size(figures, workshop, scale, scale.memories, goal=at_most(0.25))
    _at_size(figures, workshop, scale, scale.many_memories, goal=at_most(0.6))
    if scale.huge_memories:
        _at_size(figures, workshop, scale, scale.huge_memories, goal=HUGE_GOAL)
    else:
        figures.miss(
            f"search, {LARGE.huge_memories:,} memories: p50",
            "ms",
            HUGE_GOAL,
            f"{COMMAND} --only search --large",
        )
    figures.notes.append(
        "Queries have ten words, five of them of one memory. *Scan by numpy* is a product of the same "
        "vectors in single precision with the query's, without choosing the best; *search by vector* is "
        "the core's own call with a vector instead of words: its scan, and all that a search does around "
        "it. *Processor time* is that of the calling thread and does not count waiting for a busy machine."
    )
    return figures


def _at_size(figures: Figures, workshop: Workshop, scale: Scale, count: int, *, goal: Goal) -> None:
    memories = workshop.memories(count)
    searches = search_requests(memories, QUERIES)
    briefs = brief_requests(memories, QUERIES)
    queries = [pb.SearchRequest.FromString(request).query for request in searches]
    vectors = _vectors(queries)
    by_vector = [
        pb.SearchRequest(namespace=NAMESPACE, vector=vector).SerializeToString()
        for vector in vectors.tolist()
    ]
    matrix = _vectors(memories)
    # What scans a million vectors takes a hundred times as long.
    calls = scale.calls // 10 if count == scale.huge_memories else scale.calls

    with opened(workshop.filled(count)) as store:
        if count >= INDEX_AFTER:
            store.wait_for_index()
        method = _method(store, searches[0])
        contestants: dict[str, Call] = {
            "search": _call(store, "Search", searches),
            "brief": _call(store, "Brief", briefs),
            "vector": _call(store, "Search", by_vector),
            "numpy": lambda index: np.dot(matrix, vectors[index % QUERIES]),
        }
        timings = in_turns(contestants, rounds=scale.rounds, calls_a_round=calls)
    _add(figures, f"{count:,} memories", method, timings, goal)

    if method != EXACT:
        with opened(workshop.filled(count), index_after=NEVER) as store:
            assert _method(store, searches[0]) == EXACT
            contestants["search"] = _call(store, "Search", searches)
            contestants["vector"] = _call(store, "Search", by_vector)
            del contestants["brief"]
            timings = in_turns(contestants, rounds=scale.rounds, calls_a_round=calls)
        _add(figures, f"{count:,} memories", EXACT, timings, None)


def _add(figures: Figures, size: str, method: str, timings: dict[str, Timing], goal: Goal | None) -> None:
    search, numpy = timings["search"], timings["numpy"]
    figures.add(f"search, {size} ({method}): p50", search.p50 * 1e3, "ms", goal)
    figures.add(f"search, {size} ({method}): p99", search.p99 * 1e3, "ms")
    figures.add(f"search, {size} ({method}): processor time", search.cpu * 1e3, "ms")
    figures.add(f"search by vector, {size} ({method}): p50", timings["vector"].p50 * 1e3, "ms")
    figures.add(f"scan by numpy, {size}: p50", numpy.p50 * 1e3, "ms")
    bound = at_most(3) if goal and method == EXACT else None
    figures.add(f"search / scan by numpy, {size} ({method})", ratio(search.p50s, numpy.p50s), "x", bound)
    if "brief" in timings:
        brief = timings["brief"]
        figures.add(f"brief, {size} ({method}): p50", brief.p50 * 1e3, "ms")
        figures.add(f"brief / search, {size} ({method})", ratio(brief.p50s, search.p50s), "x", at_most(1.5))


def _call(store: Store, method: str, requests: list[bytes]) -> Callable[[int], bytes]:
    name = SERVICE + method
    return lambda index: store.call(name, requests[index % len(requests)])


def _method(store: Store, request: bytes) -> str:
    answer = pb.SearchResponse.FromString(store.call(SERVICE + "Search", request))
    return next(arm.method for arm in answer.arms if arm.name == "dense")


def _vectors(texts: list[str]) -> _Matrix:
    embedded = _core.embed(str(MODEL), texts)
    assert all(vector is not None for vector in embedded)
    return np.array(embedded, dtype=np.float32)
