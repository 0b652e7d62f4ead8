"""How soon a store with many memories answers after a restart, an orderly one and one after kill -9."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar.load.texts import Texts

from tests.load.report import COMMAND, Figures, Goal, at_most
from tests.load.rounds import difference
from tests.load.scale import LARGE, Scale
from tests.load.served import Target, served
from tests.load.stores import NAMESPACE, SERVICE, Workshop, opened, search_requests
from tests.support.sidecar import running_sidecar

GOAL = at_most(1)
"""Seconds to serve a million memories."""
WRITERS = 16
WRITES = 5_000
WRITING_SECONDS = 0.5
"""Time that a process writes before it is killed."""


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure at all sizes, beside an empty store."""
    figures = Figures("Ready after a restart")
    _at_size(figures, workshop, scale, scale.many_memories, None)
    if scale.huge_memories:
        _at_size(figures, workshop, scale, scale.huge_memories, GOAL)
    else:
        size = f"{LARGE.huge_memories:,} memories"
        for name in (f"{size}: from start to SERVING", f"{size}, after kill -9: from start to SERVING"):
            figures.miss(name, "s", GOAL, f"{COMMAND} --only restart --large")
    figures.notes.append(
        "The data file is in the system's cache. To serve takes the start of Python and the loading of its modules "
        f"first. A process is killed while {WRITERS} callers write."
    )
    return figures


def _at_size(figures: Figures, workshop: Workshop, scale: Scale, count: int, goal: Goal | None) -> None:
    full, empty = workshop.filled(count), workshop.filled(0)
    written_to = workshop.copy(count)
    serving: dict[str, list[float]] = {"full": [], "empty": [], "killed": []}
    opening: dict[str, list[float]] = {"full": [], "empty": []}
    searching: list[float] = []
    (request,) = search_requests(workshop.memories(count), 1)
    for _ in range(scale.restarts):
        for name, directory in (("full", full), ("empty", empty)):
            serving[name].append(_seconds_to_serve(directory))
            start = time.perf_counter()
            with opened(directory) as store:
                opening[name].append(time.perf_counter() - start)
                if name == "full":
                    store.call(SERVICE + "Search", request)
                    searching.append(time.perf_counter() - start)
        _kill_in_the_middle_of_writes(written_to, len(searching))
        serving["killed"].append(_seconds_to_serve(written_to))
    size = f"{count:,} memories"
    figures.add(f"{size}: from start to SERVING", median(serving["full"]), "s", goal)
    figures.add(f"{size}, after kill -9: from start to SERVING", median(serving["killed"]), "s", goal)
    figures.add(f"empty store beside {size}: from start to SERVING", median(serving["empty"]), "s")
    more = difference(serving["full"], serving["empty"])
    figures.add(f"{size}: from start to SERVING, more than an empty store", more, "s")
    figures.add(f"{size}: open in the process", median(opening["full"]) * 1e3, "ms")
    figures.add(f"empty store beside {size}: open in the process", median(opening["empty"]) * 1e3, "ms")
    answered = median(searching) * 1e3
    figures.add(f"{size}: open in the process and the first search answered", answered, "ms")


def _seconds_to_serve(directory: Path) -> float:
    start = time.perf_counter()
    with running_sidecar(directory):
        return time.perf_counter() - start


def _kill_in_the_middle_of_writes(directory: Path, turn: int) -> None:
    requests = [
        pb.WriteRequest(namespace=NAMESPACE, items=[pb.WriteItem(content=text)]).SerializeToString()
        for text in Texts(100 + turn).memories(WRITES)
    ]
    with served(directory) as sidecar, ThreadPoolExecutor(1) as pool:
        write = Target(sidecar.address, sidecar.pid, SERVICE + "Write", requests)
        writing = pool.submit(write.call, callers=WRITERS, seconds=2 * WRITING_SECONDS)
        time.sleep(WRITING_SECONDS)
        sidecar.send(signal.SIGKILL)
        assert writing.result().total.ok, "it wrote"
