"""What `recalld load` sends: memories that fill namespaces of its own, and calls that search, write and brief.

All of it is a function of the sizes and the seed. The namespaces lie under one prefix that nobody else uses, and
nothing outside of it is read or written.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from recalld import Item
from recalld.filters import field
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1 import types_pb2

from recalld_sidecar.load.texts import Texts

if TYPE_CHECKING:
    from recalld import Client

Calls = list[tuple[str, list[bytes], float]]
"""Methods with their requests and weights, as `_core.load` takes them."""

PREFIX = "recalld-load"
"""First segment of every namespace."""
CHINESE_SHARE = 0.25
"""Of the memories."""
SERVICE = "/recalld.v1.MemoryService/"

_READS = 2_000
"""Different searches; they are asked again and again. A fifth as many briefs."""
_MOST_WRITES = 50_000
"""Different writes; beyond them contents come again, and are found to be duplicates."""
_BATCH = 500
_BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Mix:
    """Shares of the calls; searches are the rest."""

    writes: float
    briefs: float

    @property
    def searches(self) -> float:
        """The rest; below 0 when the others are more than all."""
        return round(1 - self.writes - self.briefs, 9)


class Workload:
    """Namespaces of one run, with the memories that they are filled with and the calls that are made there."""

    def __init__(self, run: str, *, namespaces: int, memories: int, seed: int) -> None:
        """`run` keeps runs apart; `memories` are in each of the `namespaces`."""
        self.name = f"{PREFIX}/{run}"
        """What the names of all namespaces begin with."""
        self._names = [(PREFIX, run, f"{number:06d}") for number in range(namespaces)]
        self._texts = Texts(seed, chinese=CHINESE_SHARE)
        self._random = random.Random(seed)  # noqa: S311  nothing is kept secret with it
        self._memories = [self._texts.memories(memories) for _ in range(namespaces)]

    def fill(self, client: "Client", advance: Callable[[int], None]) -> None:
        """Write the memories; `advance` is told how many."""
        for name, memories in zip(self._names, self._memories, strict=True):
            namespace = client.namespace(*name)
            for start in range(0, len(memories), _BATCH):
                batch = memories[start : start + _BATCH]
                namespace.write_many([Item(text) for text in batch])
                advance(len(batch))

    def clear(self, client: "Client") -> None:
        """Delete all memories of the run's namespaces."""
        everything = field("created_at").range(gte=_BEGINNING)
        for name in self._names:
            client.namespace(*name).delete(filter=everything)

    def calls(self, mix: Mix, expected: float) -> Calls:
        """Prepare the calls of a run of about so many; no two runs write the same."""
        writes = min(round(expected * mix.writes * 1.1) + 1, _MOST_WRITES)
        kinds: list[tuple[str, float, Iterator[bytes]]] = [
            ("Search", mix.searches, self._searches(_READS)),
            ("Write", mix.writes, self._writes(writes)),
            ("Brief", mix.briefs, self._briefs(_READS // 5)),
        ]
        return [(SERVICE + name, list(made), share) for name, share, made in kinds if share > 0]

    def _searches(self, count: int) -> Iterator[bytes]:
        for name, memories in self._places(count):
            query = self._texts.query(self._random.choice(memories))
            yield pb.SearchRequest(namespace=name, query=query).SerializeToString()

    def _briefs(self, count: int) -> Iterator[bytes]:
        for name, memories in self._places(count):
            query = self._texts.query(self._random.choice(memories))
            yield pb.BriefRequest(namespace=name, query=query).SerializeToString()

    def _writes(self, count: int) -> Iterator[bytes]:
        for name, _ in self._places(count):
            item = pb.WriteItem(content=self._texts.memory())
            yield pb.WriteRequest(namespace=name, items=[item]).SerializeToString()

    def _places(self, count: int) -> Iterator[tuple[types_pb2.Namespace, Sequence[str]]]:
        for _ in range(count):
            number = self._random.randrange(len(self._names))
            yield types_pb2.Namespace(segments=self._names[number]), self._memories[number]
