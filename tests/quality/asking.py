"""Asks the questions of corpora and measures each answer: what every section about recall is made from.

A corpus is written once and then asked by every ranking, so that all of them see the same store. Work is cut into
chunks of corpora that run in processes of their own. The product's defaults are used for all sets.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar import _core
from recalld_sidecar.demo.corpus import Corpus, Question

from tests.quality import store as stores
from tests.quality.baseline import Rankings, terms
from tests.quality.causes import cause
from tests.quality.measures import Ranking, documents, is_fresh, recall, reciprocal_rank, words_shown
from tests.support.store import MODEL_DIR, Store, open_store

RECALLD = "recalld"
DEPTHS = (5, 10, 20)
BUDGETS = (250, 500, 1000, 2000)
ABLATION_BUDGET = 1000
LIMIT = 64
"""Hits that are asked for: as many as a brief considers. The deeper ones tell which of two values comes first."""
REACH = 10
"""Hits of which a brief should carry as many as it can."""

Overrides = Mapping[str, float]
"""Weights of the ranking that differ from the defaults."""


@dataclass(frozen=True, slots=True)
class InBrief:
    """What a brief of one budget holds."""

    recall: float
    strict: float
    """As `recall`, of evidence that is quoted with half of the answer's words that it has."""
    tokens: int
    reach: float
    """Share of the best hits that it carries."""


@dataclass(frozen=True, slots=True)
class Result:
    """What was measured of one question. Measures of evidence are empty where nothing answers."""

    corpus: str
    question: str
    kind: str
    answerable: bool
    is_update: bool
    """An older value of what is asked is in the history."""
    recall: dict[str, dict[int, float]] = field(default_factory=dict)
    """By ranking and depth."""
    reciprocal: dict[str, float] = field(default_factory=dict)
    fresh: dict[str, float] = field(default_factory=dict)
    """By ranking, of updates: 1 when the newest value comes before every older one."""
    sessions: dict[int, tuple[float, float]] = field(default_factory=dict)
    """By depth: 1 when a session with evidence is among those of the best hits, and the share of such sessions."""
    briefs: dict[int, InBrief] = field(default_factory=dict)
    """By budget."""
    best: dict[str, float] = field(default_factory=dict)
    """Numbers of the best hit that may tell whether anything answers."""
    only_weak: bool = False
    """Nothing was found, or nothing that is not weak."""
    cause: str | None = None
    """Why the question is lost."""


@dataclass(frozen=True, slots=True)
class Ablations:
    """What is asked again with other weights: of some corpora, by the name of what is off."""

    corpora: frozenset[str] = frozenset()
    overrides: Mapping[str, Overrides] = field(default_factory=dict)


def ask(
    corpora: Sequence[Corpus], group: str, budgets: Sequence[int], ablations: Ablations
) -> dict[str, list[Result]]:
    """Write corpora and ask their questions: by the defaults under "", and by each ablation those of its corpora."""
    vectors = _Vectors(corpora)
    results: dict[str, list[Result]] = {}
    with TemporaryDirectory(prefix="recalld-quality-") as folder:
        path = Path(folder)
        with open_store(path) as store:
            names = {corpus.id: _write(store, group, corpus) for corpus in corpora}
            results[""] = [
                result
                for corpus in corpora
                for result in _results(_Asked(store, group, corpus, names[corpus.id]), budgets, vectors)
            ]
        some = [corpus for corpus in corpora if corpus.id in ablations.corpora]
        for name, overrides in ablations.overrides.items() if some else ():
            with open_store(path, ranking=dict(overrides)) as store:
                results[name] = [
                    result
                    for corpus in some
                    for result in _results(
                        _Asked(store, group, corpus, names[corpus.id]), [ABLATION_BUDGET], None
                    )
                ]
    return results


def _write(store: Store, group: str, corpus: Corpus) -> dict[str, str]:
    """Write a corpus and return the documents of the memories' ids."""
    items = [stores.turn(doc) for doc in corpus.docs]
    ids = stores.write(store, stores.namespace(group, corpus), items)
    return dict(zip(ids, (doc.id for doc in corpus.docs), strict=True))


class _Vectors:
    """Vectors of all texts, made in one go: loading the model takes as long as embedding a corpus."""

    def __init__(self, corpora: Sequence[Corpus]) -> None:
        texts = [doc.line for corpus in corpora for doc in corpus.docs]
        texts += [question.text for corpus in corpora for question in corpus.questions]
        distinct = list(dict.fromkeys(texts))
        self._of = dict(zip(distinct, _core.embed(MODEL_DIR, distinct), strict=True))

    def __getitem__(self, text: str) -> list[float] | None:
        return self._of[text]


@dataclass(frozen=True)
class _Asked:
    """A corpus in an open store."""

    store: Store
    group: str
    corpus: Corpus
    names: Mapping[str, str]

    @property
    def segments(self) -> list[str]:
        return stores.namespace(self.group, self.corpus)

    def search(self, question: Question) -> pb.SearchResponse:
        return self.store.search(self.segments, question.text, limit=LIMIT, explain=True)

    def brief(self, question: Question, budget: int) -> pb.BriefResponse:
        return self.store.brief(self.segments, question.text, budget_tokens=budget)


def _results(asked: _Asked, budgets: Sequence[int], vectors: _Vectors | None) -> Iterator[Result]:
    """Measure every question of a corpus, with its opponents when there are vectors."""
    corpus = asked.corpus
    lines = [doc.line for doc in corpus.docs]
    opponents = Rankings(lines, [vectors[line] for line in lines]) if vectors else None
    for question in corpus.questions:
        if not question.groups and not question.abstain:
            continue
        response = asked.search(question)
        ranking = stores.places(response, asked.names)
        result = Result(
            corpus=corpus.id,
            question=question.id,
            kind=question.kind or "question",
            answerable=not question.abstain,
            is_update=bool(question.superseded),
            best=_numbers(response),
            only_weak=all(hit.weak for hit in response.hits),
        )
        if result.answerable:
            rankings: dict[str, Ranking] = {RECALLD: ranking}
            if opponents and vectors:
                for name, texts in opponents.rank(question.text, vectors[question.text], LIMIT).items():
                    rankings[name] = [[corpus.docs[text].id] for text in texts]
            result = _with_evidence(result, asked, question, rankings, budgets)
        yield result


def _numbers(response: pb.SearchResponse) -> dict[str, float]:
    """Return all numbers by which the best hit could show that nothing answers; without a hit all are absent."""
    if not response.hits:
        return {}
    best = response.hits[0]
    numbers = {"relevance": best.relevance, "score": best.score}
    for signal in best.explanation.signals:
        numbers[f"{signal.name}, as measured"] = signal.raw
        numbers[f"{signal.name}, made comparable"] = signal.normalized
    return numbers


def _with_evidence(
    result: Result,
    asked: _Asked,
    question: Question,
    rankings: Mapping[str, Ranking],
    budgets: Sequence[int],
) -> Result:
    """Add what can be measured where there is evidence."""
    docs = {doc.id: doc for doc in asked.corpus.docs}
    groups = question.groups
    ranking = rankings[RECALLD]
    for name, one in rankings.items():
        result.recall[name] = {depth: recall(groups, documents(one[:depth])) for depth in DEPTHS}
        result.reciprocal[name] = reciprocal_rank(groups, one)
        if question.superseded:
            result.fresh[name] = float(is_fresh(question.relevant, question.superseded, one))
    wanted = {docs[doc].session for group in groups for doc in group} - {""}
    for depth in DEPTHS if wanted else ():
        share = recall(
            [[session] for session in wanted], [docs[place[0]].session for place in ranking[:depth]]
        )
        result.sessions[depth] = (float(share > 0), share)
    folded = {place[0]: place for place in ranking}
    answer = set(terms(question.answer))
    for budget in budgets:
        brief = asked.brief(question, budget)
        carried = {doc for memory in brief.included for doc in folded.get(memory.key, [memory.key])}
        quoted = stores.quoted(brief)
        telling = [
            doc
            for doc in carried
            if doc not in quoted or words_shown(answer, set(terms(docs[doc].text)), set(terms(quoted[doc])))
        ]
        best = [place[0] for place in ranking[:REACH]]
        result.briefs[budget] = InBrief(
            recall=recall(groups, carried),
            strict=recall(groups, telling),
            tokens=brief.tokens,
            reach=sum(doc in carried for doc in best) / len(best) if best else 1.0,
        )
    return replace(result, cause=cause(question, ranking, docs))
