"""Texts for load measurements: the same for the same seed, from no file but the product's own.

Words are those of the embedding model's vocabulary, which lists them by how common they are, drawn with
Zipf's law: so a few words are in nearly every memory and most in few, as in real text, and all of them have
a meaning to the model. It must never look at the clock or at a random source other than the seed.
"""

import itertools
import json
import math
import random
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "sidecar/recalld_sidecar/data/static-256"

WORDS = 4_000
"""Size of the vocabulary."""
SENTENCE_WORDS = (8, 14)
MEMORY_SENTENCES = 4
"""Makes about 60 tokens."""
QUERY_WORDS = 10
PAUSES = "\uff0c\uff0c\u3002"
"""Full-width commas and a full stop."""
REFERENCE_SHARE = 0.3
"""Share of memories that name something by a number that no other has: an order, a ticket, a room."""


def vocabulary() -> list[tuple[str, float]]:
    """Read the model's vocabulary: pieces with the logarithm of their probability, 0 where none is said."""
    pieces = []
    for line in (MODEL / "vocab.txt").read_text("utf8").splitlines():
        piece, _, weight = line.partition("\t")
        pieces.append((piece, float(weight) if weight else 0.0))
    return pieces


class Texts:
    """An endless source of memories and queries."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        words = (word for word, _ in vocabulary() if word.isascii() and word.isalpha() and len(word) > 1)
        self._words = list(itertools.islice(words, WORDS))
        # Mandelbrot's form of the law; the offset keeps the very first words from being half of the text.
        self._weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(self._words))))

    def words(self, count: int) -> list[str]:
        """Draw words."""
        return self._random.choices(self._words, cum_weights=self._weights, k=count)

    def sentence(self) -> str:
        """Write a sentence."""
        return " ".join(self.words(self._random.randint(*SENTENCE_WORDS))).capitalize() + "."

    def memory(self) -> str:
        """Write a memory of about 60 tokens."""
        sentences = [self.sentence() for _ in range(MEMORY_SENTENCES)]
        if self._random.random() < REFERENCE_SHARE:
            sentences[-1] = f"Reference {self._random.choice('ABCDEF')}-{self._random.randrange(10**6):06d}."
        return " ".join(sentences)

    def memories(self, count: int) -> list[str]:
        """Write memories."""
        return [self.memory() for _ in range(count)]

    def query(self, memory: str) -> str:
        """Ask, in ten words, for a memory: half of them are its own, in another order, and half are not."""
        own = memory.replace(".", "").lower().split()
        words = self._random.sample(own, QUERY_WORDS // 2) + self.words(QUERY_WORDS - QUERY_WORDS // 2)
        self._random.shuffle(words)
        return " ".join(words) + "?"

    def queries(self, memories: list[str], count: int) -> list[str]:
        """Ask for memories that are there."""
        return [self.query(self._random.choice(memories)) for _ in range(count)]


def english(length: int) -> str:
    """English prose: what the demonstration's people and their agent say."""
    return _repeated(" ".join(_said()), length)


def chinese(length: int) -> str:
    """Chinese words as often as the model's vocabulary says that they are, with punctuation."""
    words = [(piece, weight) for piece, weight in vocabulary() if weight and _is_han(piece)]
    weights = list(itertools.accumulate(math.exp(weight) for _, weight in words))
    source = random.Random(1)
    text: list[str] = []
    while len(text) < length:
        drawn = source.choices([word for word, _ in words], cum_weights=weights, k=source.randint(4, 12))
        text.extend("".join(drawn))
        text.append(source.choice(PAUSES))
    return "".join(text[:length])


def json_records(length: int) -> str:
    """JSON as a tool would return it."""
    texts = Texts(2)
    source = random.Random(2)
    records = [
        {
            "id": f"ord_{source.getrandbits(64):016x}",
            "status": source.choice(["shipped", "pending", "cancelled"]),
            "price": round(source.uniform(1, 500), 2),
            "note": texts.sentence(),
            "tags": texts.words(3),
            "updated_at": f"2026-03-{source.randint(10, 28)}T10:{source.randint(10, 59)}:00Z",
        }
        for _ in range(length // 200)
    ]
    return _repeated(json.dumps(records, indent=2), length)


def code(length: int) -> str:
    """Source code: the product's own Python and Rust."""
    files = sorted(
        [*(ROOT / "sidecar/recalld_sidecar").glob("*.py"), *(ROOT / "core_rs/engine/src").glob("*.rs")]
    )
    return _repeated("\n".join(file.read_text("utf8") for file in files), length)


def _said() -> Iterator[str]:
    with (ROOT / "sidecar/recalld_sidecar/data/demo/example.jsonl").open(encoding="utf8") as lines:
        for line in lines:
            for doc in json.loads(line).get("docs", []):
                yield doc["text"]


def _is_han(piece: str) -> bool:
    return all("\u4e00" <= character <= "\u9fff" for character in piece)


def _repeated(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]
