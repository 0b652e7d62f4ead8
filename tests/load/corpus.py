"""Texts of the load measurements beyond those of `recalld load`: long ones of several kinds, to count tokens of."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

from recalld_sidecar.load.texts import Texts, chinese_words

ROOT = Path(__file__).resolve().parents[2]

PAUSES = "\uff0c\uff0c\u3002"
"""Full-width commas and a full stop."""


def english(length: int) -> str:
    """English prose: what the demonstration's people and their agent say."""
    return _repeated(" ".join(_said()), length)


def chinese(length: int) -> str:
    """Chinese words as often as the model's vocabulary says that they are, with punctuation."""
    words, weights = chinese_words()
    source = random.Random(1)
    text: list[str] = []
    while len(text) < length:
        drawn = source.choices(words, cum_weights=weights, k=source.randint(4, 12))
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


def _repeated(text: str, length: int) -> str:
    return (text * (length // len(text) + 1))[:length]
