"""Histories with questions about them, read from JSON lines, optionally gzipped: one corpus a line.

    {"corpus": id,
     "docs": [{"id", "text", "time", "speaker", "session", "kind", "key"}],
     "queries": [{"id", "text", "relevant": [doc id], "groups": [[doc id]], "superseded": [doc id],
                  "answer", "kind", "abstain"}]}

Docs need `id` and `text`, queries `id`, `text` and `relevant`. A `time` is an ISO 8601 time or date, UTC when
it has no offset. The docs of one inner list of `groups` state the same fact, and one of them is enough;
without `groups` each relevant doc is a fact of its own. `superseded` docs state an older value of what is
asked. Nothing answers a query with `abstain`. Names that are not listed here are ignored.

Everything is checked here, so that a wrong file is one error that names the line and the field, and never a
failure in the middle of a run. This module must know nothing of recalld.
"""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any


class CorpusError(Exception):
    """A file cannot be read as corpora; the message names the file and, if there is one, line and field."""


@dataclass(frozen=True, slots=True)
class Doc:
    """One message, note or tool result of a history. What is not known is empty."""

    id: str
    """Unique in the corpus."""
    text: str
    """What it says."""
    time: str | None
    """When, as the file has it; see `instant`."""
    speaker: str
    """Who said it."""
    session: str
    """The conversation it belongs to."""
    kind: str
    """What kind of memory it is."""
    key: str
    """Stable name of what it states: a later doc with the same key replaces it."""

    @property
    def line(self) -> str:
        """The doc as a prompt that replays the history carries it: `[time] speaker: text`."""
        time = f"[{self.time}] " if self.time else ""
        speaker = f"{self.speaker}: " if self.speaker else ""
        return time + speaker + self.text


@dataclass(frozen=True, slots=True)
class Question:
    """One question, with what a good answer has to rest on."""

    id: str
    """Unique in the corpus."""
    text: str
    """What is asked."""
    relevant: tuple[str, ...]
    """Ids of the docs that help to answer; none when nothing does."""
    groups: tuple[frozenset[str], ...]
    """The facts that the answer needs, each as the docs that state it."""
    superseded: frozenset[str]
    """Ids of docs that state an older value."""
    answer: str
    """The answer in words."""
    kind: str
    """What kind of question it is."""
    abstain: bool
    """True when nothing in the history answers it."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """One history and the questions about it."""

    id: str
    """Unique in the file."""
    docs: tuple[Doc, ...]
    """The history, in the order in which it is to be written."""
    questions: tuple[Question, ...]
    """The questions."""


def instant(time: str | None) -> datetime | None:
    """Read an ISO 8601 time or date; one without an offset is UTC. Raises ValueError."""
    if time is None:
        return None
    parsed = datetime.fromisoformat(time)
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)


def load(path: Path) -> Iterator[Corpus]:
    """Read a file, one corpus at a time; a name that ends in `.gz` is unpacked. Raises CorpusError."""
    lines: dict[str, int] = {}
    try:
        with _open(path) as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    corpus = _corpus(_Fields.parse(line), lines)
                except _FieldError as error:
                    raise CorpusError(f"{path}: line {number}: {error}") from None
                lines[corpus.id] = number
                yield corpus
    except UnicodeDecodeError:
        raise CorpusError(f"{path}: not UTF-8 text; a gzip file's name ends in .gz") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise CorpusError(f"{path}: not a whole gzip file: {error}") from None
    except OSError as error:
        raise CorpusError(f"{path}: {error.strerror}") from None
    if not lines:
        raise CorpusError(f"{path}: no corpus in it")


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


class _FieldError(Exception):
    """A field is wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)


class _Fields:
    """A JSON object whose fields are taken with a check; errors name their path."""

    def __init__(self, value: object, path: str) -> None:
        if not isinstance(value, dict):
            raise _FieldError(path, "not a JSON object")
        self._values: dict[str, Any] = value
        self._prefix = f"{path}." if path else ""

    @classmethod
    def parse(cls, line: str) -> "_Fields":
        try:
            return cls(json.loads(line), "")
        except (json.JSONDecodeError, RecursionError) as error:
            raise _FieldError("", f"not JSON: {error}") from None

    def path(self, name: str) -> str:
        return self._prefix + name

    def required_text(self, name: str) -> str:
        text = self.text(name)
        if not text.strip():
            raise _FieldError(self.path(name), "missing or blank")
        return text

    def text(self, name: str) -> str:
        value = self._values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise _FieldError(self.path(name), "not a string")
        return value

    def time(self, name: str) -> str | None:
        text = self.text(name) or None
        try:
            instant(text)
        except (ValueError, OverflowError):
            raise _FieldError(self.path(name), f"{text!r} is not an ISO 8601 time or date") from None
        return text

    def flag(self, name: str) -> bool:
        value = self._values.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise _FieldError(self.path(name), "not true or false")
        return value

    def required_list(self, name: str) -> list[Any]:
        if self._values.get(name) is None:
            raise _FieldError(self.path(name), "missing")
        return self.optional_list(name)

    def optional_list(self, name: str) -> list[Any]:
        value = self._values.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise _FieldError(self.path(name), "not a list")
        return value

    def records(self, name: str) -> "Iterator[_Fields]":
        """Take a list of objects whose `id`s differ."""
        seen = set()
        for index, value in enumerate(self.required_list(name)):
            record = _Fields(value, f"{self.path(name)}[{index}]")
            identity = record.required_text("id")
            if identity in seen:
                raise _FieldError(record.path("id"), f"{identity!r} stands in an earlier one already")
            seen.add(identity)
            yield record


def _corpus(fields: _Fields, lines: Mapping[str, int]) -> Corpus:
    name = fields.required_text("corpus")
    if name in lines:
        raise _FieldError("corpus", f"{name!r} stands in line {lines[name]} already")
    docs = tuple(
        Doc(
            id=doc.required_text("id"),
            text=doc.required_text("text"),
            time=doc.time("time"),
            speaker=doc.text("speaker"),
            session=doc.text("session"),
            kind=doc.text("kind"),
            key=doc.text("key"),
        )
        for doc in fields.records("docs")
    )
    ids = frozenset(doc.id for doc in docs)
    return Corpus(name, docs, tuple(_question(question, ids) for question in fields.records("queries")))


def _question(fields: _Fields, ids: frozenset[str]) -> Question:
    abstain = fields.flag("abstain")
    relevant = _doc_ids(fields.required_list("relevant"), fields.path("relevant"), ids)
    if abstain and relevant:
        raise _FieldError(fields.path("relevant"), "not empty, although abstain says that nothing answers")
    groups = tuple(
        frozenset(_doc_ids(group, f"{fields.path('groups')}[{index}]", ids))
        for index, group in enumerate(fields.optional_list("groups"))
    )
    if not all(groups):
        raise _FieldError(fields.path("groups"), "a list in it is empty")
    return Question(
        id=fields.required_text("id"),
        text=fields.required_text("text"),
        relevant=relevant,
        groups=groups or tuple(frozenset([doc]) for doc in relevant),
        superseded=frozenset(_doc_ids(fields.optional_list("superseded"), fields.path("superseded"), ids)),
        answer=fields.text("answer"),
        kind=fields.text("kind"),
        abstain=abstain,
    )


def _doc_ids(value: object, path: str, ids: frozenset[str]) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _FieldError(path, "not a list")
    for doc in value:
        if not isinstance(doc, str) or doc not in ids:
            raise _FieldError(path, f"{doc!r} is no id of a doc")
    return tuple(value)
