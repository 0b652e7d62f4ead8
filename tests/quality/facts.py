"""Facts written as facts: the old and the new value of an updated fact under one key, the rest as it was said.

An agent that knows what a statement is about writes it under a key, and a new value replaces the old one. The values
of a question's fact are written in the order of time; then the question is asked. The newest value must be found, and
no old one may be: neither as a hit nor in the text of a brief.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from recalld.v1.memory_pb2 import Signature
from recalld_sidecar.demo.corpus import Corpus, Doc, Question

from tests.quality import store as stores
from tests.support.store import Store, open_store

DEPTH = 10
EVERYTHING = 1000
"""Most hits that a search can be asked for."""
BUDGET = 1000
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one updated fact."""

    newest_first: bool
    """In the whole ranking, the newest value stands, and before every old one."""
    found: bool
    """The newest value is among the ten best hits."""
    old_shown: bool
    """An old value is a hit or stands in the brief."""


def has_updates(corpus: Corpus) -> bool:
    """Say whether there is something to measure."""
    return any(question.superseded and not question.abstain for question in corpus.questions)


def measure(corpora: Sequence[Corpus]) -> list[Outcome]:
    """Write and ask the updated facts of corpora."""
    outcomes = []
    with TemporaryDirectory(prefix="recalld-quality-") as folder, open_store(Path(folder)) as store:
        for corpus in corpora:
            updates = [question for question in corpus.questions if question.superseded and question.groups]
            segments = stores.namespace("facts", corpus)
            stated = frozenset[str]().union(*(_statements(question) for question in updates))
            stores.write(store, segments, [stores.turn(doc) for doc in corpus.docs if doc.id not in stated])
            for question in updates:
                _write_fact(store, segments, corpus.docs, question)
            outcomes += [_outcome(store, segments, corpus.docs, question) for question in updates]
    return outcomes


def _statements(question: Question) -> frozenset[str]:
    return question.superseded.union(question.relevant)


def key(question: Question) -> str:
    """Name the fact that a question is about."""
    return f"fact:{question.id}"


def _write_fact(store: Store, segments: Sequence[str], docs: Sequence[Doc], question: Question) -> None:
    """Write every statement of a fact, each in place of the one before. Docs stand in the order of time."""
    for doc in docs:
        if doc.id in _statements(question):
            item = stores.turn(doc)
            item.key, item.kind = key(question), "fact"
            store.write(segments, [item])


def _outcome(store: Store, segments: Sequence[str], docs: Sequence[Doc], question: Question) -> Outcome:
    hits = store.search(segments, question.text, limit=EVERYTHING).hits
    brief = store.brief(segments, question.text, budget_tokens=BUDGET)
    newest = [doc.text for doc in docs if doc.id in question.relevant]
    versions = {hit.version: _content(store, segments, question, hit.version) for hit in _of(hits, question)}
    places = [place for place, hit in enumerate(hits) if hit.key == key(question)]
    current = [place for place in places if versions[hits[place].version] in newest]
    quoted = stores.quoted(brief).get(key(question), "")
    return Outcome(
        newest_first=bool(current) and current[0] == places[0],
        found=bool(current) and current[0] < DEPTH,
        old_shown=len(current) < len(places) or not is_quoted_from(quoted, newest),
    )


def _of(hits: Iterable[Signature], question: Question) -> Iterator[Signature]:
    return (hit for hit in hits if hit.key == key(question))


def _content(store: Store, segments: Sequence[str], question: Question, version: int) -> str:
    return store.get(segments, keys=[key(question)], as_of_version=version).memories[0].content


def is_quoted_from(quoted: str, texts: Sequence[str]) -> bool:
    """Say whether all of a quotation stands in one of the texts; an ellipsis stands for what was left out."""
    fragments = [_one_line(fragment) for fragment in quoted.split(ELLIPSIS)]
    return any(all(fragment in _one_line(text) for fragment in fragments) for text in texts)


def _one_line(text: str) -> str:
    return " ".join(text.split())
