"""Question sets: gzip JSON lines, one corpus a line, as described in the README of the benchmark data."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Doc:
    """One message."""

    id: str
    text: str
    time: str | None
    speaker: str
    session: str


@dataclass(frozen=True, slots=True)
class Question:
    """One question. `groups`: each inner set states one needed fact, one of its documents is enough."""

    id: str
    text: str
    groups: tuple[frozenset[str], ...]
    kind: str
    abstain: bool


@dataclass(frozen=True, slots=True)
class Corpus:
    """Documents in time order and questions about them."""

    id: str
    docs: tuple[Doc, ...]
    questions: tuple[Question, ...]


def instant(time: str | None) -> datetime | None:
    """Read an ISO 8601 time or date as UTC."""
    if time is None:
        return None
    parsed = datetime.fromisoformat(time)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed


def load(path: Path) -> Iterator[Corpus]:
    """Read a set, one corpus at a time."""
    opener: Any = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf8") as lines:
        for line in lines:
            yield _corpus(json.loads(line))


def _corpus(raw: dict[str, Any]) -> Corpus:
    docs = tuple(
        Doc(d["id"], d["text"], d.get("time"), d.get("speaker") or "", d.get("session") or "")
        for d in raw["docs"]
    )
    questions = tuple(
        Question(
            q["id"],
            q["text"],
            tuple(frozenset(group) for group in q.get("groups") or [[doc] for doc in q["relevant"]]),
            q.get("kind") or "",
            bool(q.get("abstain")),
        )
        for q in raw["queries"]
    )
    return Corpus(raw["corpus"], docs, questions)
