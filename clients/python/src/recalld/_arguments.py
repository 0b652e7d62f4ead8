"""What goes in: immutable records with the names of the contract.

`None` or empty stands for what is not given, and is not sent: defaults are the server's. This module must
never send anything, nor check what the server checks.
"""

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from os import PathLike
from typing import Any

from .filters import Filter


class ContentFormat(StrEnum):
    """What a content is."""

    TEXT = "text"
    """Plain text."""
    JSON = "json"
    """One JSON document, kept byte for byte."""
    UNRECOGNIZED = "unrecognized"
    """A format that this client is too old to know."""


class BriefFormat(StrEnum):
    """How a brief is written. Each says that what it quotes is data, and cites every memory."""

    MARKDOWN = "markdown"
    """List items between two tags."""
    JSON = "json"
    """One JSON object."""
    XML = "xml"
    """One XML element."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Paths of the PEM files of an encrypted connection, read when the client is made."""

    root_certificates: str | PathLike[str] | None = None
    """Certificates of the authorities that vouch for the server. Default: those that gRPC comes with."""
    private_key: str | PathLike[str] | None = None
    """Key of the client, for a server that asks who it is. Only together with `certificate_chain`."""
    certificate_chain: str | PathLike[str] | None = None
    """Certificate of the client and those that vouch for it. Only together with `private_key`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a memory came from. At least one field must be given."""

    uri: str = ""
    """A URI or your own id of the document, message or tool call."""
    session: str = ""
    """The conversation or task it belongs to."""
    speaker: str = ""
    """Who said it, by name or role."""


@dataclass(frozen=True, slots=True)
class TimeRange:
    """A half-open span of time, `start <= t < end`; a side that is not given has no bound."""

    start: datetime | None = None
    """First instant inside."""
    end: datetime | None = None
    """First instant outside."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """How the parts of a score are weighed, 0 to 1,000 each; they are divided by their sum."""

    relevance: float | None = None
    """Weight of the relevance to the query; 0.6 by default."""
    importance: float | None = None
    """Weight of the importance given with the write; 0.3 by default."""
    recency: float | None = None
    """Weight of the recency; 0.1 by default."""


@dataclass(frozen=True, slots=True)
class BriefSection:
    """A part of a brief under a heading. A memory stands in the first section that takes it."""

    title: str
    """The heading, one line; different for each section."""
    _: KW_ONLY
    kinds: Collection[str] = ()
    """The kinds of the memories that stand here. Default: every kind that no section before takes."""
    max_tokens: int | None = None
    """Most tokens of the section with its heading. Default: only the budget bounds it."""


@dataclass(frozen=True, slots=True)
class Item:
    """One memory to write with `write_many`."""

    content: str | dict[str, Any] | list[Any]
    """What to remember: text, or a dict or list, which is sent as compact JSON."""
    _: KW_ONLY
    key: str | None = None
    """A stable name in the namespace: writing to an existing key makes a new version."""
    content_format: ContentFormat | None = None
    """JSON when `content` is a text that is one JSON document. Default: TEXT; JSON for a dict or list."""
    kind: str | None = None
    """What the memory is, which sets its defaults: a built-in kind, such as `fact` (default), or your own."""
    summary: str | None = None
    """A summary of your own. Default: computed from the content."""
    tags: Collection[str] = ()
    """Tags; repeats count once."""
    metadata: Mapping[str, Any] | None = None
    """Free attributes: bool, int of 64 bits, float, str, datetime, and lists and dicts of these."""
    importance: float | None = None
    """How much it matters, 0..1. Default 0.5."""
    confidence: float | None = None
    """How sure it is, 0..1. Default 1."""
    occurred_at: datetime | None = None
    """When what it tells happened. Default: the time of the write."""
    ttl: timedelta | None = None
    """How long until it expires. Not together with `expires_at`. Default: by kind."""
    expires_at: datetime | None = None
    """First instant at which it is no longer returned."""
    sources: Collection[Source] = ()
    """Where it came from."""
    vector: Collection[float] = ()
    """The embedding, when you have your own. Default: computed from the content."""
    if_version: int | None = None
    """Write only when this is the current version of `key`; 0: only when the key does not exist."""
    origin: str | None = None
    """Who or what produced it, for example `agent:planner`."""


@dataclass(frozen=True, slots=True)
class Query:
    """One search of several, for `search_many` and `search_stream`: the arguments of `search`."""

    query: str | None = None
    """What to look for, in words."""
    _: KW_ONLY
    namespace: Collection[str] | None = None
    """Segments of another namespace to search. Default: the one that is asked."""
    vector: Collection[float] = ()
    """The embedding of what to look for, when you have your own. Default: computed from `query`."""
    limit: int | None = None
    """Most hits. Default 5."""
    filter: Filter | None = None
    """A condition made with `recalld.filters`."""
    kinds: Collection[str] = ()
    """Only memories of one of these kinds."""
    tags: Collection[str] = ()
    """Only memories that carry all of these tags."""
    occurred: TimeRange | None = None
    """Only memories that occurred in this span."""
    min_score: float | None = None
    """Only hits whose score is at least this, 0..1."""
    min_relevance: float | None = None
    """Only hits whose relevance is at least this, 0..1."""
    weights: Weights | None = None
    """How the parts of a score are weighed."""
    half_lives: Mapping[str, timedelta] | None = None
    """By kind, how long until the recency of a memory is half."""
    explain: bool = False
    """Also say how each score came about, and what each arm's ways of looking would have cost."""
    latency_budget: timedelta | None = None
    """Time to spend; what has not begun by then is left out and named in `degraded`. Default: the deadline."""
    at_least_as_fresh: str | None = None
    """A token to wait for in place of the remembered one; empty: wait for nothing."""
