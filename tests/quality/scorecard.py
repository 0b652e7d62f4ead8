"""The scorecard: what must never be returned, how soon a write is found, and what a memory takes on disk.

Nothing passes by accident: for each way in which a memory may be forbidden, a twin that was treated in no way is asked
for in the same manner and must be found.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.duration_pb2 import Duration
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar.demo.corpus import Corpus, Doc

from tests.quality import store as stores
from tests.support.store import Store, open_store, wait_until

HOME = ["acme"]
NEIGHBOURS = (["acme-corp"], ["acme", "user"], ["globex"])
"""Namespaces whose names look alike, lie below, or have nothing in common."""
LIMIT = 20
BUDGET = 1000
QUERY_CHARACTERS = 500
"""Beginning of a text by which it is asked for."""
TTL = timedelta(milliseconds=1)


@dataclass
class Forbidden:
    """Memories of one way of being forbidden, asked for by their own words."""

    asked: int = 0
    returned: int = 0
    """Hits, and memories in briefs, that must not be there."""
    twins_asked: int = 0
    twins_found: int = 0


@dataclass(frozen=True, slots=True)
class Space:
    """What the memories of a store take."""

    memories: int
    source_bytes: int
    """UTF-8 bytes of the contents."""
    store_bytes: int
    """Of the data file beyond an empty store's."""


@dataclass(frozen=True, slots=True)
class Lag:
    """From the acknowledgement of a write to the answer of a search that has it."""

    seconds: list[float] = field(default_factory=list)
    searches: list[int] = field(default_factory=list)
    """Searches until it was found."""


def forbidden(corpora: Sequence[Corpus], count: int) -> dict[str, Forbidden]:
    """Write `count` documents for each way of being forbidden and as many twins, and ask for all of them."""
    ways = ("deleted", "expired", "of another namespace", "an old version")
    distinct = list(_distinct(corpora))
    docs = iter(distinct)
    # Each way takes as many to hide, as twins, and to replace others with.
    count = min(count, len(distinct) // (3 * len(ways)))
    cards = {}
    with TemporaryDirectory(prefix="recalld-quality-") as folder, open_store(Path(folder)) as store:
        prepared = []
        for way in ways:
            hidden, twins = list(islice(docs, count)), list(islice(docs, count))
            stores.write(store, HOME, [_item(doc, f"twin of {way}") for doc in twins])
            prepared.append((way, hidden, twins, _hide(store, way, hidden, islice(docs, count))))
        for way, hidden, twins, ids in prepared:
            card = cards[way] = Forbidden()
            for doc in hidden:
                card.asked += 1
                card.returned += _returned(store, doc, ids)
            for doc in twins:
                card.twins_asked += 1
                hits = store.search(HOME, doc.text[:QUERY_CHARACTERS], limit=LIMIT).hits
                card.twins_found += any(hit.key == f"twin of {way}:{doc.id}" for hit in hits)
    return cards


def _distinct(corpora: Sequence[Corpus]) -> Iterator[Doc]:
    """Documents whose beginnings differ, with ids that differ over all corpora."""
    seen = set()
    for corpus in corpora:
        for doc in corpus.docs:
            if (beginning := doc.text[:QUERY_CHARACTERS]) not in seen:
                seen.add(beginning)
                yield replace(doc, id=str(len(seen)))


def _item(doc: Doc, prefix: str) -> pb.WriteItem:
    item = stores.turn(doc)
    item.key = f"{prefix}:{doc.id}"
    return item


def _hide(store: Store, way: str, docs: Sequence[Doc], others: Iterator[Doc]) -> set[tuple[str, int]]:
    """Write documents and make them forbidden; return the (id, version) that must not come back."""
    items = [_item(doc, way) for doc in docs]
    if way == "of another namespace":
        ids = [id_ for neighbour in NEIGHBOURS for id_ in stores.write(store, neighbour, items)]
        return {(id_, 1) for id_ in ids}
    if way == "expired":
        ttl = Duration()
        ttl.FromTimedelta(TTL)
        for item in items:
            item.ttl.CopyFrom(ttl)
    ids = stores.write(store, HOME, items)
    if way == "deleted":
        store.delete(HOME, ids=ids)
    elif way == "an old version":
        for item, other in zip(items, others, strict=True):
            item.content = other.text
        stores.write(store, HOME, items)
    elif way == "expired":
        wait_until(lambda: not store.get(HOME, ids=ids).memories, "memories expire")
    return {(id_, 1) for id_ in ids}


def _returned(store: Store, doc: Doc, ids: set[tuple[str, int]]) -> int:
    query = doc.text[:QUERY_CHARACTERS]
    returned = [(hit.id, hit.version) for hit in store.search(HOME, query, limit=LIMIT).hits]
    brief = store.brief(HOME, query, budget_tokens=BUDGET)
    returned += [(memory.id, memory.version) for memory in brief.included]
    return sum(one in ids for one in returned)


def lag(writes: int) -> Lag:
    """Write memories one by one and search for each until it is found."""
    measured = Lag()
    with TemporaryDirectory(prefix="recalld-quality-") as folder, open_store(Path(folder)) as store:
        for number in range(writes):
            code = f"KX{number:05}"
            item = pb.WriteItem(key=code, content=f"Parcel {code} is waiting at the front desk.")
            store.write(HOME, [item])
            acknowledged = time.perf_counter()
            searches = 1
            while all(hit.key != code for hit in store.search(HOME, f"Where is parcel {code}?").hits):
                searches += 1
            measured.seconds.append(time.perf_counter() - acknowledged)
            measured.searches.append(searches)
    return measured


def space(corpora: Sequence[Corpus]) -> Space:
    """Write corpora and look at the data file."""
    with TemporaryDirectory(prefix="recalld-quality-") as folder, open_store(Path(folder)) as store:
        empty = store.store_stats().bytes_used
        for corpus in corpora:
            stores.write(store, stores.namespace("space", corpus), [stores.turn(doc) for doc in corpus.docs])
        stats = store.store_stats()
        return Space(
            memories=stats.memories,
            source_bytes=sum(len(doc.text.encode()) for corpus in corpora for doc in corpus.docs),
            store_bytes=stats.bytes_used - empty,
        )
