"""Why a question is lost: answerable, and not all of its evidence among the ten best hits.

Each lost question has exactly one cause, the first of the list whose rule holds. The rules look only at words, labels
and places, so that the list is the same in every run. "Missing" is the evidence that was not found.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from recalld_sidecar.demo.corpus import Doc, Question

from tests.quality.baseline import terms
from tests.quality.measures import Ranking, documents

DEPTH = 10

NO_COMMON_WORD = "no word in common"
SEVERAL_NEEDED = "several evidences needed"
TIME = "time question"
OLD_VALUE = "wrong newest value"
TOO_LONG = "too long"
NEARLY_THE_SAME = "several say nearly the same"
OTHER = "other"

EXPLANATION = f"""\
- {NO_COMMON_WORD}: no missing evidence shares a term with the question (stemmed, without stop words).
- {SEVERAL_NEEDED}: the answer needs two facts or more, and at least one was found.
- {TIME}: the question asks when, in what order, for how long, or for what was before or after something.
- {OLD_VALUE}: a statement of an older value is among the ten.
- {TOO_LONG}: every missing evidence is longer than three passages.
- {NEARLY_THE_SAME}: a memory among the ten shares half of its terms with missing evidence and is none itself.
- {OTHER}: none of these.
"""

PASSAGE_CHARACTERS = 250
LONG = 3 * PASSAGE_CHARACTERS
ALIKE = 0.5
"""Jaccard similarity of terms from which two memories say nearly the same."""

TIME_WORDS = re.compile(
    r"\b(when|how long|how (?:many|much) (?:\w+ )?(?:seconds|minutes|hours|days|weeks|months|years|time)|how often"
    r"|what (?:time|date|day|week|month|year)|which (?:date|day|week|month|year)|before|after|first|last|latest"
    r"|earliest|order|ago|since|until|previous(?:ly)?|earlier|later|recent(?:ly)?|past)\b"
    "|什么时候|何时|几时|多久|多长时间|之前|之后|以前|以后|先后|顺序|最近|最早|最后|哪天|哪年|哪个月|几天|几年|几个月|几号"
    "|日期|时间",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class _Case:
    """A lost question with what was found."""

    question: Question
    found: Sequence[Doc]
    missing: Sequence[Doc]
    facts_missing: int


def _no_common_word(case: _Case) -> bool:
    asked = set(terms(case.question.text))
    return all(asked.isdisjoint(terms(doc.line)) for doc in case.missing)


def _several_needed(case: _Case) -> bool:
    return case.facts_missing < len(case.question.groups)


def _time(case: _Case) -> bool:
    return TIME_WORDS.search(case.question.text) is not None


def _old_value(case: _Case) -> bool:
    return any(doc.id in case.question.superseded for doc in case.found)


def _too_long(case: _Case) -> bool:
    return all(len(doc.text) > LONG for doc in case.missing)


def _nearly_the_same(case: _Case) -> bool:
    evidence = frozenset[str]().union(*case.question.groups)
    others = [doc for doc in case.found if doc.id not in evidence]
    return any(_alike(one, other) for one in case.missing for other in others)


def _alike(one: Doc, other: Doc) -> bool:
    ours, theirs = set(terms(one.text)), set(terms(other.text))
    return len(ours & theirs) >= ALIKE * max(len(ours | theirs), 1)


_RULES: Mapping[str, Callable[[_Case], bool]] = {
    NO_COMMON_WORD: _no_common_word,
    SEVERAL_NEEDED: _several_needed,
    TIME: _time,
    OLD_VALUE: _old_value,
    TOO_LONG: _too_long,
    NEARLY_THE_SAME: _nearly_the_same,
}
CAUSES = (*_RULES, OTHER)


def cause(question: Question, ranking: Ranking, docs: Mapping[str, Doc]) -> str | None:
    """Say why a question is lost; None when all of its evidence was found."""
    found = list(dict.fromkeys(documents(ranking[:DEPTH])))
    missing = [group for group in question.groups if group.isdisjoint(found)]
    if not missing:
        return None
    case = _Case(
        question=question,
        found=[docs[doc] for doc in found],
        missing=[docs[doc] for group in missing for doc in sorted(group)],
        facts_missing=len(missing),
    )
    return next((name for name, holds in _RULES.items() if holds(case)), OTHER)
