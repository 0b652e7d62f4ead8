"""What a hybrid has to beat, written apart from the product: BM25 alone, meaning alone, and their plain sum.

All three rank whole messages as `[time] speaker: text`. BM25 has k1 1.5 and b 0.75, English words in lower case without
stop words, stemmed, and Chinese characters and bigrams. The stemmer is a plain suffix stripper, close to Porter's first
step: good enough to be a fair opponent and independent of ours. Meaning is the cosine under the model that ships with
the product. The sum weighs z-scores over all texts of the corpus.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]

MEANING = 0.6
"""Weight of the cosine in the plain sum; the rest is BM25's."""
BM25_ALONE = "BM25 alone"
MEANING_ALONE = "dense alone"
PLAIN_SUM = "plain sum"
OPPONENTS = (BM25_ALONE, MEANING_ALONE, PLAIN_SUM)

WORD = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]+", re.ASCII | re.IGNORECASE)
STOP = frozenset(
    "a an and are as at be been but by can could did do does for from had has have he her him his how i if in into is "
    "it its me my no not of on or our she so than that the their them then there these they this to was we were what "
    "when where which who whom why will with would you your".split()
)
SUFFIXES = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "ly", "s")


def stem(word: str) -> str:
    """Strip a common English suffix, keeping at least three letters."""
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            return word[: -len(suffix)] + ("y" if suffix == "ies" else "")
    return word


def terms(text: str) -> list[str]:
    """Split a text into terms."""
    out: list[str] = []
    for match in WORD.finditer(text.lower()):
        word = match[0]
        if word[0] >= "\u3400":
            out += word
            out += [word[i : i + 2] for i in range(len(word) - 1)]
        elif word not in STOP:
            out.append(stem(word))
    return out


class Bm25:
    """An index of texts in memory."""

    def __init__(self, texts: Sequence[str], k1: float = 1.5, b: float = 0.75) -> None:
        counts = [Counter(terms(text)) for text in texts]
        lengths = [sum(count.values()) for count in counts]
        average = sum(lengths) / max(len(lengths), 1)
        self._postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for doc, count in enumerate(counts):
            norm = k1 * (1 - b + b * lengths[doc] / average)
            for term, frequency in count.items():
                self._postings[term].append((doc, frequency * (k1 + 1) / (frequency + norm)))
        self._size = len(texts)

    def scores(self, query: str) -> dict[int, float]:
        """Return the scores of the texts that have a term of the query."""
        scores: defaultdict[int, float] = defaultdict(float)
        for term in set(terms(query)):
            postings = self._postings.get(term, [])
            idf = math.log(1 + (self._size - len(postings) + 0.5) / (len(postings) + 0.5))
            for doc, weight in postings:
                scores[doc] += idf * weight
        return scores

    def rank(self, query: str, limit: int) -> list[int]:
        """Return the best texts, best first; ties by position."""
        scores = self.scores(query)
        return sorted(scores, key=lambda doc: (-scores[doc], doc))[:limit]


class Rankings:
    """The three rankings of one corpus; a text is named by its position."""

    def __init__(self, texts: Sequence[str], vectors: Sequence[Sequence[float] | None]) -> None:
        self._bm25 = Bm25(texts)
        self._size = len(texts)
        # A text in which the model knows nothing is like any other text: its cosine is 0.
        dimensions = next((len(vector) for vector in vectors if vector), 1)
        self._vectors = np.array([vector or [0.0] * dimensions for vector in vectors])

    def rank(self, query: str, vector: Sequence[float] | None, limit: int) -> dict[str, list[int]]:
        """Return the best texts by each ranking, best first."""
        words = np.zeros(self._size)
        for text, score in self._bm25.scores(query).items():
            words[text] = score
        cosines = self._vectors @ np.asarray(vector) if vector else np.zeros(self._size)
        both = MEANING * _z(cosines) + (1 - MEANING) * _z(words)
        return {
            BM25_ALONE: self._bm25.rank(query, limit),
            MEANING_ALONE: _best(cosines, limit) if vector else [],
            PLAIN_SUM: _best(both, limit),
        }


def _z(values: Scores) -> Scores:
    z: Scores = (values - values.mean()) / (float(values.std()) or 1.0)
    return z


def _best(scores: Scores, limit: int) -> list[int]:
    """Positions by falling score; ties by position."""
    return [int(position) for position in np.argsort(-scores, kind="stable")[:limit]]
