"""What is measured of an answer, as pure functions of names of documents. They know neither recalld nor the sets.

A ranking is a list of places, best first; a place names the documents that stand there: one, or several when a search
folded memories that say the same into one hit, that hit's own document first. Evidence comes in groups: the documents
of one group state the same fact, and one of them is enough.
"""

from collections.abc import Collection, Iterable, Sequence

import numpy as np

Ranking = Sequence[Sequence[str]]
Groups = Sequence[Collection[str]]


def documents(ranking: Ranking) -> list[str]:
    """Return the documents of all places, in order."""
    return [document for place in ranking for document in place]


def recall(groups: Groups, found: Iterable[str]) -> float:
    """Return the share of the groups of which a document was found."""
    there = set(found)
    return sum(not there.isdisjoint(group) for group in groups) / len(groups)


def reciprocal_rank(groups: Groups, ranking: Ranking) -> float:
    """Return 1 / the first place with evidence, from 1; 0 without one."""
    wanted = {document for group in groups for document in group}
    for rank, place in enumerate(ranking, 1):
        if not wanted.isdisjoint(place):
            return 1 / rank
    return 0.0


def is_fresh(newest: Collection[str], old: Collection[str], ranking: Ranking) -> bool:
    """Say whether a statement of the newest value comes before every one of an old value."""
    for document in documents(ranking):
        if document in newest:
            return True
        if document in old:
            return False
    return False


def words_shown(answer: Collection[str], whole: Collection[str], shown: Collection[str]) -> bool:
    """Say whether a quotation has half of the answer's words, of those that the quoted memory has at all."""
    there = set(answer) & set(whole)
    return len(there & set(shown)) * 2 >= len(there)


def auroc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """Return the chance that one of `higher` is above one of `lower`, ties counting half: Mann and Whitney's U."""
    ordered = np.sort(np.asarray(lower, dtype=float))
    below = np.searchsorted(ordered, higher, "left")
    not_above = np.searchsorted(ordered, higher, "right")
    return float((below + not_above).sum() / (2 * len(higher) * len(lower)))


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that so large a share of the values does not exceed."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def mean(values: Sequence[float]) -> float:
    """Return the mean, adding in order: results do not depend on how a library adds."""
    return sum(values) / len(values)
