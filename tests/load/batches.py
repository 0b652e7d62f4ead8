"""Many searches in one call, beside one a call, through the native front."""

from collections.abc import Callable
from statistics import median

from recalld.v1 import memory_service_pb2 as pb

from tests.load.report import Figures, at_least
from tests.load.rounds import ratio, turns
from tests.load.scale import Scale
from tests.load.served import Target, served
from tests.load.stores import SERVICE, Workshop, search_requests

SIZE = 16
QUERIES = 1_024
CALLERS = 2
"""Keep the server busy, and leave it the processors."""


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure both in turns."""
    figures = Figures(f"BatchSearch of {SIZE}, native front, {scale.memories:,} memories")
    searches = search_requests(workshop.memories(scale.memories), QUERIES)
    messages = [pb.SearchRequest.FromString(search) for search in searches]
    batches = [
        pb.BatchSearchRequest(searches=messages[start : start + SIZE]).SerializeToString()
        for start in range(0, QUERIES, SIZE)
    ]
    with served(workshop.copy(scale.memories), "--front", "native") as sidecar:

        def queries_a_second(method: str, requests: list[bytes], size: int) -> Callable[[], float]:
            target = Target(sidecar.address, sidecar.pid, SERVICE + method, requests)

            def measured() -> float:
                report = target.answered(callers=CALLERS, seconds=scale.turn_seconds)
                return report.total.ok * size / report.elapsed

            return measured

        rates = turns(
            {
                "unary": queries_a_second("Search", searches, 1),
                "batch": queries_a_second("BatchSearch", batches, SIZE),
            },
            rounds=scale.rounds,
        )
    figures.add("Search: queries a second", median(rates["unary"]), "1/s")
    figures.add("BatchSearch: queries a second", median(rates["batch"]), "1/s")
    figures.add("BatchSearch / Search", ratio(rates["batch"], rates["unary"]), "x", at_least(3))
    figures.notes.append(f"{CALLERS} callers call without a pause, each on a connection of its own.")
    return figures
