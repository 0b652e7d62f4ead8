"""BM25 alone, written apart from the product: the baseline that a hybrid has to beat.

k1 1.5, b 0.75; English words in lower case without stop words, stemmed; Chinese characters and bigrams; the text is
`[time] speaker: text`. The stemmer is a plain suffix stripper, close to Porter's first step: good enough to be a fair
opponent and independent of ours.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

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

    def rank(self, query: str, limit: int) -> list[int]:
        """Return the best texts, best first; ties by position."""
        scores: defaultdict[int, float] = defaultdict(float)
        for term in set(terms(query)):
            postings = self._postings.get(term, [])
            idf = math.log(1 + (self._size - len(postings) + 0.5) / (len(postings) + 0.5))
            for doc, weight in postings:
                scores[doc] += idf * weight
        return sorted(scores, key=lambda doc: (-scores[doc], doc))[:limit]
