"""Texts to measure with: the same for the same seed, from no file but the product's own.

Words are those of the embedding model's vocabulary, English ones by Zipf's law in the order in which it lists them
and Chinese ones as often as it says that they are: so a few words are in nearly every memory and most in few, as
in real text, and all of them have a meaning to the model. It must never look at the clock or at a random source
other than the seed.
"""

import itertools
import math
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

MODEL = Path(__file__).parent.parent / "data/static-256"

WORDS = 4_000
"""Size of the English vocabulary."""
SENTENCE_WORDS = (8, 14)
MEMORY_SENTENCES = 4
"""Makes about 60 tokens."""
QUERY_WORDS = 10
REFERENCE_SHARE = 0.3
"""Share of memories that name something by a number that no other has: an order, a ticket, a room."""

_COMMA, _STOP, _QUESTION = "\uff0c", "\u3002", "\uff1f"
_LETTERS = 4
"""Of a part of a Chinese memory that a query repeats."""


@cache
def vocabulary() -> Sequence[tuple[str, float]]:
    """Read the model's vocabulary: pieces with the logarithm of their probability, 0 where none is said."""
    pieces = []
    for line in (MODEL / "vocab.txt").read_text("utf8").splitlines():
        piece, _, weight = line.partition("\t")
        pieces.append((piece, float(weight) if weight else 0.0))
    return pieces


@cache
def chinese_words() -> tuple[Sequence[str], Sequence[float]]:
    """Chinese words of the model, with their cumulative probabilities."""
    words = [(piece, weight) for piece, weight in vocabulary() if weight and all(map(_is_han, piece))]
    return [word for word, _ in words], list(itertools.accumulate(math.exp(weight) for _, weight in words))


class Texts:
    """An endless source of memories and queries."""

    def __init__(self, seed: int, *, chinese: float = 0.0) -> None:
        """Write with this seed; `chinese` is the share of memories in Chinese, and the others are in English."""
        self._random = random.Random(seed)  # noqa: S311  nothing is kept secret with it
        self._chinese = chinese
        words = (word for word, _ in vocabulary() if word.isascii() and word.isalpha() and len(word) > 1)
        self._words = list(itertools.islice(words, WORDS))
        # Mandelbrot's form of the law; the offset keeps the very first words from being half of the text.
        self._weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(self._words))))

    def words(self, count: int) -> list[str]:
        """Draw English words."""
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def sentence(self) -> str:
        """Write an English sentence."""
        return " ".join(self.words(self._random.randint(*SENTENCE_WORDS))).capitalize() + "."

    def memory(self) -> str:
        """Write a memory of about 60 tokens."""
        if self._chinese and self._random.random() < self._chinese:
            return "".join(self._chinese_sentence() for _ in range(MEMORY_SENTENCES))
        sentences = [self.sentence() for _ in range(MEMORY_SENTENCES)]
        if self._random.random() < REFERENCE_SHARE:
            sentences[-1] = f"Reference {self._random.choice('ABCDEF')}-{self._random.randrange(10**6):06d}."
        return " ".join(sentences)

    def memories(self, count: int) -> list[str]:
        """Write memories."""
        return [self.memory() for _ in range(count)]

    def query(self, memory: str) -> str:
        """Ask for a memory: half of the words are its own, in another order, and half are not."""
        if _is_han(memory[0]):
            starts = self._random.sample(range(len(memory) - _LETTERS), QUERY_WORDS // 4)
            parts = [memory[start : start + _LETTERS] for start in starts]
            return "".join(parts + self._chinese_part(QUERY_WORDS // 4)) + _QUESTION
        own = memory.replace(".", "").lower().split()
        words = self._random.sample(own, QUERY_WORDS // 2) + self.words(QUERY_WORDS - QUERY_WORDS // 2)
        self._random.shuffle(words)
        return " ".join(words) + "?"

    def queries(self, memories: Sequence[str], count: int) -> list[str]:
        """Ask for memories that are there."""
        return [self.query(self._random.choice(memories)) for _ in range(count)]

    def _chinese_part(self, count: int) -> list[str]:
        words, weights = chinese_words()
        return self._random.choices(words, cum_weights=weights, k=count)

    def _chinese_sentence(self) -> str:
        half = self._random.randint(*SENTENCE_WORDS) // 2
        return "".join([*self._chinese_part(half), _COMMA, *self._chinese_part(half), _STOP])


def _is_han(letter: str) -> bool:
    return "\u4e00" <= letter <= "\u9fff"
