"""How soon a store with many memories answers after a restart."""

import time
from pathlib import Path
from statistics import median

from tests.load.report import Figures, at_most
from tests.load.rounds import difference
from tests.load.scale import Scale
from tests.load.stores import SERVICE, Workshop, opened, search_requests
from tests.support.sidecar import running_sidecar


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure beside an empty store."""
    count = scale.many_memories
    full, empty = workshop.filled(count), workshop.filled(0)
    serving: dict[str, list[float]] = {"full": [], "empty": []}
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
    figures = Figures(f"Ready after a restart with {count:,} memories")
    figures.add("from start to SERVING", median(serving["full"]), "s", at_most(1))
    figures.add("from start to SERVING, empty store", median(serving["empty"]), "s")
    figures.add(
        "from start to SERVING, more than an empty store", difference(serving["full"], serving["empty"]), "s"
    )
    figures.add("open in the process", median(opening["full"]) * 1e3, "ms")
    figures.add("open in the process, empty store", median(opening["empty"]) * 1e3, "ms")
    figures.add("open in the process and the first search answered", median(searching) * 1e3, "ms")
    figures.notes.append(
        "The data file is in the system's cache. The start of Python and the loading of its modules are in "
        "the first two."
    )
    return figures


def _seconds_to_serve(directory: Path) -> float:
    start = time.perf_counter()
    with running_sidecar(directory):
        return time.perf_counter() - start
