"""What the demo measures: a history written, questions asked, and the time that the answers take.

Everything goes through the Python client and its socket, as an agent's calls do. Nothing here prints.
"""

import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from recalld import Brief, Client, Item, Namespace, Outcome, Search, Source, StoreStats

from recalld_sidecar.demo.corpus import Corpus, Doc, Question, instant
from recalld_sidecar.demo.progress import Progress

DEPTHS = (5, 10)
"""Numbers of first hits that are looked at; five is what a search gives unless it asks for more."""
HITS = max(DEPTHS)
"""Hits that every search asks for."""

_BATCH_ITEMS = 500
_BATCH_LETTERS = 2 << 20
"""At most 8 MiB as UTF-8, and with it half of what a call may carry; a single longer doc goes alone."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A corpus in a namespace of its own."""

    corpus: Corpus
    namespace: Namespace
    docs: Mapping[str, frozenset[str]]
    """The docs that each current memory holds, by its id."""
    calls: int
    """Calls it took to write."""
    seconds: float
    """Time that these calls took."""
    history_tokens: int
    """Tokens of the whole history, a line for each doc (o200k_base)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What memory gave for a question."""

    stored: Stored
    question: Question
    search: Search
    budget: int
    """Budget of the brief, in tokens."""
    brief: Brief

    @property
    def answerable(self) -> bool:
        """Whether the corpus names evidence for an answer."""
        return bool(self.question.groups) and not self.question.abstain

    def is_evidence(self, memory: str) -> bool:
        """Whether a memory states a fact that the answer needs."""
        return not self._docs(memory).isdisjoint(frozenset[str]().union(*self.question.groups))

    def is_superseded(self, memory: str) -> bool:
        """Whether a memory states an older value, and nothing that the answer needs."""
        return not self.is_evidence(memory) and not self._docs(memory).isdisjoint(self.question.superseded)

    @property
    def evidence_ranks(self) -> list[int]:
        """Ranks of the hits with evidence, from 1."""
        return [rank for rank, hit in enumerate(self.search, 1) if self.is_evidence(hit.id)]

    @property
    def superseded_ranks(self) -> list[int]:
        """Ranks of the hits with an older value, from 1."""
        return [rank for rank, hit in enumerate(self.search, 1) if self.is_superseded(hit.id)]

    def facts_in_hits(self, depth: int = HITS) -> int:
        """How many of the needed facts the first hits state."""
        return self._facts(hit.id for hit in self.search[:depth])

    @property
    def facts_in_brief(self) -> int:
        """How many of the needed facts stand in the brief, in whatever form."""
        return self._facts(memory.id for memory in self.brief.included)

    def docs(self, memory: str) -> list[str]:
        """Ids of the docs that a memory holds, sorted."""
        return sorted(self._docs(memory))

    def _docs(self, memory: str) -> frozenset[str]:
        return self.stored.docs.get(memory, frozenset())

    def _facts(self, memories: Iterable[str]) -> int:
        have = frozenset[str]().union(*map(self._docs, memories))
        return sum(not group.isdisjoint(have) for group in self.question.groups)


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of one kind of call, in milliseconds."""

    p50: float
    p99: float
    max: float

    @classmethod
    def of(cls, milliseconds: Iterable[float]) -> "Latency":
        """Take the percentiles of at least one time, each a time that occurred (nearest rank)."""
        ordered = sorted(milliseconds)

        def percentile(percent: int) -> float:
            return ordered[math.ceil(len(ordered) * percent / 100) - 1]

        return cls(percentile(50), percentile(99), ordered[-1])


@dataclass(frozen=True, slots=True)
class Timing:
    """What one caller waits for a call, and what of it the server spent."""

    client: Latency
    server: Latency


@dataclass(frozen=True, slots=True)
class Report:
    """All that the demo has to say."""

    data: str
    """Name of the file."""
    stored: Sequence[Stored]
    stats: StoreStats
    """The store after it."""
    budget: int
    """Budget of each brief, in tokens."""
    answers: Sequence[Answer]
    repeats: int
    """How often each kind of call was timed."""
    search: Timing
    brief: Timing

    @property
    def answerable(self) -> list[Answer]:
        """The answers to questions that have one."""
        return [answer for answer in self.answers if answer.answerable]

    def recall_in_hits(self, depth: int) -> float | None:
        """Share of the needed facts among the first hits, averaged over the answerable questions."""
        return _mean(answer.facts_in_hits(depth) / len(answer.question.groups) for answer in self.answerable)

    @property
    def recall_in_brief(self) -> float | None:
        """Share of the needed facts in the brief, averaged over the answerable questions."""
        return _mean(answer.facts_in_brief / len(answer.question.groups) for answer in self.answerable)

    @property
    def history_tokens(self) -> float:
        """Tokens of replaying the whole history, averaged over the questions."""
        return mean(answer.stored.history_tokens for answer in self.answers)

    @property
    def brief_tokens(self) -> float:
        """Tokens of a brief, averaged over the questions."""
        return mean(answer.brief.tokens for answer in self.answers)


def measure(client: Client, data: str, corpora: Sequence[Corpus], *, budget: int, repeats: int) -> Report:
    """Write all corpora, ask all their questions, of which there is at least one, and time the calls."""
    progress = Progress("writing memories", sum(len(corpus.docs) for corpus in corpora))
    stored = [_store(client, corpus, progress) for corpus in corpora]
    stats = client.stats()
    progress = Progress("asking questions", sum(len(corpus.questions) for corpus in corpora))
    answers = [_ask(one, question, budget, progress) for one in stored for question in one.corpus.questions]
    search, brief = _time(answers, budget, repeats)
    return Report(data, stored, stats, budget, answers, repeats, search, brief)


def _store(client: Client, corpus: Corpus, progress: Progress) -> Stored:
    namespace = client.namespace("demo", corpus.id)
    docs: dict[str, frozenset[str]] = {}
    calls = 0
    seconds = 0.0
    history_tokens = 0
    for batch in _batches(corpus.docs):
        items = [_item(doc) for doc in batch]
        began = time.perf_counter()
        receipts = namespace.write_many(items)
        seconds += time.perf_counter() - began
        calls += 1
        for doc, receipt in zip(batch, receipts, strict=True):
            # A new version holds only its own doc; a duplicate stands for both.
            earlier = (
                docs.get(receipt.id, frozenset()) if receipt.outcome is Outcome.DUPLICATE else frozenset()
            )
            docs[receipt.id] = earlier | {doc.id}
        history_tokens += client.count_tokens([doc.line for doc in batch]).total
        progress.advance(len(batch))
    return Stored(corpus, namespace, docs, calls, seconds, history_tokens)


def _batches(docs: Sequence[Doc]) -> Iterator[list[Doc]]:
    """Split docs into what one call may carry, in which a key may stand only once."""
    batch: list[Doc] = []
    letters = 0
    keys: set[str] = set()
    for doc in docs:
        full = len(batch) == _BATCH_ITEMS or letters + len(doc.text) > _BATCH_LETTERS
        if batch and (full or doc.key in keys):
            yield batch
            batch, letters, keys = [], 0, set()
        batch.append(doc)
        letters += len(doc.text)
        if doc.key:
            keys.add(doc.key)
    if batch:
        yield batch


def _item(doc: Doc) -> Item:
    return Item(
        doc.text,
        key=doc.key or None,
        kind=doc.kind or "turn",
        occurred_at=instant(doc.time),
        sources=[Source(uri=doc.id, session=doc.session, speaker=doc.speaker)],
    )


def _ask(stored: Stored, question: Question, budget: int, progress: Progress) -> Answer:
    search = stored.namespace.search(question.text, limit=HITS)
    brief = stored.namespace.brief(question.text, budget_tokens=budget)
    progress.advance()
    return Answer(stored, question, search, budget, brief)


def _time(answers: Sequence[Answer], budget: int, repeats: int) -> tuple[Timing, Timing]:
    """Time searches and briefs, one call after the other, going round the questions."""
    searches: list[tuple[float, float]] = []
    briefs: list[tuple[float, float]] = []
    progress = Progress("timing calls", repeats)
    for answer in itertools.islice(itertools.cycle(answers), repeats):
        namespace, query = answer.stored.namespace, answer.question.text
        began = time.perf_counter()
        search = namespace.search(query, limit=HITS)
        searched = time.perf_counter()
        brief = namespace.brief(query, budget_tokens=budget)
        ended = time.perf_counter()
        searches.append((searched - began, search.took.total_seconds()))
        briefs.append((ended - searched, brief.took.total_seconds()))
        progress.advance()
    return _timing(searches), _timing(briefs)


def _timing(seconds: Sequence[tuple[float, float]]) -> Timing:
    return Timing(
        client=Latency.of(client * 1000 for client, _ in seconds),
        server=Latency.of(server * 1000 for _, server in seconds),
    )


def _mean(values: Iterable[float]) -> float | None:
    listed = list(values)
    return mean(listed) if listed else None
