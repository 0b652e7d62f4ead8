"""Filtered searches and small namespaces against brute force over the same vectors.

Memories are written with vectors of their own, and asked with vectors, by relevance alone and with every feature that
refines the arms turned off: the order must then be that of the cosines, which are computed here by numpy over rows
quantised as docs/decisions say. Filters of many selectivities must change nothing but who takes part. Beside the large
namespace lies a small one with a few of the same memories. The approximate index is asked without a filter, because
filtered searches never use it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from google.protobuf.timestamp_pb2 import Timestamp
from numpy.typing import NDArray
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.types_pb2 import TimeRange, Weights
from recalld_sidecar import _core
from recalld_sidecar.demo.corpus import Corpus

from tests.quality import store as stores
from tests.quality.ablations import arms_alone
from tests.support.filters import all_of, condition, negation, text
from tests.support.store import MODEL_DIR, Store, open_store, wait_until

DEPTH = 10
LARGE = ["filters", "large"]
SMALL = ["filters", "small"]
SMALL_NAMESPACE = "small namespace"
APPROXIMATE = "approximate index"
NEVER = 2**32 - 1
"""An `index_after` that no namespace reaches."""
ROUNDING = 1e-5
"""Cosines closer than this are equal: sums of 256 products in another order."""
START = datetime(2024, 1, 1, tzinfo=UTC)

FORBIDDEN = -2.0
"""Stands for the cosine of a memory that must not be found: below every cosine."""

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is written and asked."""

    memories: int
    small: int
    """Of them in the small namespace."""
    queries: int
    index_after: int


@dataclass(frozen=True, slots=True)
class Found:
    """How the searches of one kind came out."""

    name: str
    allowed: int
    """Memories that may be returned."""
    identical: float
    """Share of searches with the same cosines at every place as brute force."""
    recall: float
    """Mean share of the nearest that were found."""
    methods: tuple[str, ...]
    """How the dense arm looked."""


@dataclass(frozen=True, slots=True)
class _Filter:
    """A filter of the contract and what it means."""

    fields: Mapping[str, Any]
    allows: Callable[[int], bool]
    """By position of a memory."""


@dataclass(frozen=True)
class _Memories:
    """Texts with distinct vectors and attributes that follow from their position."""

    texts: list[str]
    sessions: list[str]
    vectors: Matrix

    def item(self, position: int) -> pb.WriteItem:
        item = pb.WriteItem(
            key=str(position),
            content=self.texts[position],
            kind=_kind(position),
            tags=_tags(position),
            vector=self.vectors[position].tolist(),
            occurred_at=_stamp(position),
        )
        if self.sessions[position]:
            item.sources.add(session=self.sessions[position])
        return item


def _kind(position: int) -> str:
    return "turn" if position % 2 else "event"


def _tags(position: int) -> list[str]:
    return [f"every-{step}" for step in (3, 10, 100, 1000) if position % step == 0]


def _stamp(position: int) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(START + timedelta(minutes=position))
    return stamp


def _tagged(step: int) -> _Filter:
    return _Filter({"tags": [f"every-{step}"]}, lambda at: at % step == 0)


def _in_session(memories: _Memories, session: str) -> _Filter:
    chosen = condition("source.session", equals=text(session))
    return _Filter({"filter": chosen}, lambda at: memories.sessions[at] == session)


def _filters(memories: _Memories) -> dict[str, _Filter]:
    """Filters by every kind of attribute, from half of the memories down to a few."""
    count = len(memories.texts)
    session = memories.sessions[count // 2]
    first, last = count // 4, count // 4 + max(count // 20, 1)
    window = TimeRange(start=_stamp(first), end=_stamp(last))
    tagged = condition("tags", equals=text("every-10"))
    other = negation(condition("kind", equals=text("turn")))
    return {
        "kind": _Filter({"kinds": ["event"]}, lambda at: _kind(at) == "event"),
        **{f"tag of one in {step:,}": _tagged(step) for step in (3, 10, 100, 1000)},
        "a twentieth of the time": _Filter({"occurred": window}, lambda at: first <= at < last),
        **({"one session": _in_session(memories, session)} if session else {}),
        "a tag and not a kind": _Filter(
            {"filter": all_of(tagged, other)}, lambda at: at % 10 == 0 and _kind(at) != "turn"
        ),
    }


def measure(corpora: Sequence[Corpus], scale: Scale) -> list[Found]:
    """Write memories of the corpora and search for their questions."""
    everything = _Filter({}, lambda _: True)
    memories, queries = _prepare(corpora, scale)
    found = []
    with TemporaryDirectory(prefix="recalld-quality-") as folder:
        path = Path(folder)
        with open_store(path, index_after=NEVER, ranking=dict(arms_alone())) as store:
            items = [memories.item(position) for position in range(len(memories.texts))]
            positions = dict(zip(stores.write(store, LARGE, items), range(len(items)), strict=True))
            few = stores.write(store, SMALL, items[: scale.small])
            positions |= {id_: position for position, id_ in enumerate(few)}
            asking = _Asking(memories, positions, queries)
            found.append(asking.search(store, LARGE, "no filter", everything))
            found += (asking.search(store, LARGE, name, one) for name, one in _filters(memories).items())
            in_small = _Filter({}, lambda at: at < scale.small)
            found.append(asking.search(store, SMALL, SMALL_NAMESPACE, in_small))
        index_after = min(scale.index_after, len(memories.texts) // 2)
        with open_store(path, index_after=index_after, ranking=dict(arms_alone())) as store:
            wait_until(lambda: _is_indexed(store), "the approximate index holds every memory")
            approximate = asking.search(store, LARGE, APPROXIMATE, everything)
            assert "hnsw" in approximate.methods, "the approximate index was not asked"
            found.append(approximate)
    return found


def _is_indexed(store: Store) -> bool:
    # Of a memory that was written with a vector, that one is indexed, however many passages it has.
    stats = store.core.namespace_stats(LARGE)
    return stats.indexed_passages == stats.memories


def _prepare(corpora: Sequence[Corpus], scale: Scale) -> tuple[_Memories, Matrix]:
    """Take texts with distinct vectors, and vectors of questions."""
    docs = {doc.text: doc for corpus in corpora for doc in corpus.docs}
    texts: list[str] = []
    sessions: list[str] = []
    vectors: list[list[float]] = []
    seen: set[tuple[float, ...]] = set()
    for doc, vector in zip(docs.values(), _core.embed(MODEL_DIR, list(docs)), strict=True):
        if vector and tuple(vector) not in seen and len(texts) < scale.memories:
            seen.add(tuple(vector))
            texts.append(doc.text)
            sessions.append(doc.session)
            vectors.append(vector)
    questions = [question.text for corpus in corpora for question in corpus.questions]
    step = max(1, len(questions) // scale.queries)
    asked = [vector for vector in _core.embed(MODEL_DIR, questions[::step]) if vector]
    return _Memories(texts, sessions, np.array(vectors)), np.array(asked[: scale.queries])


def _quantised(vectors: Matrix) -> Matrix:
    """Rows as they are stored: signed bytes, the largest element of each row being 127 steps."""
    steps = np.abs(vectors).max(axis=1, keepdims=True) / 127
    rows: Matrix = np.rint(vectors / steps) * steps
    return rows


@dataclass(frozen=True)
class _Asking:
    """Memories that were written, and queries for them."""

    memories: _Memories
    positions: Mapping[str, int]
    """Of the memories, by id."""
    queries: Matrix

    def search(self, store: Store, segments: Sequence[str], name: str, chosen: _Filter) -> Found:
        """Make every search with a filter."""
        allowed = [at for at in range(len(self.memories.texts)) if chosen.allows(at)]
        cosines = self.queries @ _quantised(self.memories.vectors[allowed]).T
        place = {at: index for index, at in enumerate(allowed)}
        same, shares, methods = [], [], set()
        for query, expected in zip(self.queries, cosines, strict=True):
            response = store.search(
                segments, vector=query.tolist(), limit=DEPTH, weights=Weights(relevance=1), **chosen.fields
            )
            methods |= {arm.method for arm in response.arms}
            best = np.sort(expected)[::-1][:DEPTH]
            # What was folded into a hit was found as well; what the filter leaves out is nowhere near.
            found = [self.positions[id_] for hit in response.hits for id_ in (hit.id, *hit.duplicate_ids)]
            got = np.sort([expected[place[at]] if at in place else FORBIDDEN for at in found])[::-1]
            same.append(got[-1] > FORBIDDEN and _equal(got[:DEPTH], best))
            shares.append(float((got[:DEPTH] > best[-1] - ROUNDING).sum()) / len(best))
        return Found(
            name=name,
            allowed=len(allowed),
            identical=sum(same) / len(same),
            recall=sum(shares) / len(shares),
            methods=tuple(sorted(methods)),
        )


def _equal(got: Matrix, best: Matrix) -> bool:
    return len(got) == len(best) and bool(np.all(np.abs(got - best) < ROUNDING))
