"""What goes in and what comes out: immutable records with the names of the contract.

Instants are timezone-aware datetimes in UTC and lengths of time are timedeltas, to the microsecond. Text that
the contract leaves empty ("none") is empty here too; `None` stands for a time or number that is not there.
This module must never know of protobuf or gRPC.
"""

import json
from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from os import PathLike
from typing import Any, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)


class ContentFormat(StrEnum):
    """What a content is."""

    TEXT = "text"
    """Plain text."""
    JSON = "json"
    """One JSON document, kept byte for byte."""
    UNRECOGNIZED = "unrecognized"
    """A format that this client is too old to know."""


class Outcome(StrEnum):
    """What a write did with an item."""

    STORED = "stored"
    """A new memory was stored."""
    UPDATED = "updated"
    """The key existed: a new version was stored."""
    DUPLICATE = "duplicate"
    """The same memory, field for field, was there already: nothing was stored."""
    UNRECOGNIZED = "unrecognized"
    """An outcome that this client is too old to know."""


class BriefForm(StrEnum):
    """The form in which a brief carries a memory."""

    FULL = "full"
    """The whole content."""
    PASSAGES = "passages"
    """The passages of the content that fit the query best."""
    SUMMARY = "summary"
    """The sentences that answer the query, in 30 to 80 tokens."""
    HEADLINE = "headline"
    """The summary's beginning."""
    UNRECOGNIZED = "unrecognized"
    """A form that this client is too old to know."""


class BriefFormat(StrEnum):
    """How a brief is written. Each says that what it quotes is data, and cites every memory."""

    MARKDOWN = "markdown"
    """List items between two tags."""
    JSON = "json"
    """One JSON object."""
    XML = "xml"
    """One XML element."""


class OmissionReason(StrEnum):
    """Why a memory that was found or pinned is not in a brief."""

    BUDGET = "budget"
    """Others were worth more for the tokens that there are."""
    DUPLICATE = "duplicate"
    """A newer memory that says the same stands for it."""
    SECTION = "section"
    """No section takes its kind."""
    NOT_FOUND = "not_found"
    """It was pinned, and the namespace holds no such memory (any more)."""
    UNRECOGNIZED = "unrecognized"
    """A reason that this client is too old to know."""


class SearchStage(StrEnum):
    """A stage of a search that can drop a memory, in the order of the pipeline."""

    NOT_FOUND = "not_found"
    """The namespace holds no such memory (any more)."""
    EXPIRED = "expired"
    """It has expired."""
    FILTER = "filter"
    """A filter leaves it out; `detail` names the argument."""
    CANDIDATES = "candidates"
    """No arm proposed it: others fit the words and the meaning of the query better."""
    THRESHOLD = "threshold"
    """Its relevance or score lies under what the search asks for; `detail` names the argument."""
    DUPLICATE = "duplicate"
    """A newer memory says the same and stands for it; `detail` is that memory's id."""
    LIMIT = "limit"
    """It is ranked behind `limit`."""
    RETURNED = "returned"
    """None: it is among the hits."""
    UNRECOGNIZED = "unrecognized"
    """A stage that this client is too old to know."""


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
class Receipt:
    """What happened to one item of a write."""

    outcome: Outcome
    """What happened."""
    id: str
    """The memory's id; for a duplicate the id of the one that was there."""
    version: int
    """The version that now is current."""
    content_tokens: int
    """Tokens of the content (o200k_base)."""
    token: str
    """Consistency token of the state that holds the write; the same for all items of a call."""


@dataclass(frozen=True, slots=True)
class SignalScore:
    """One signal of relevance, and what it contributed."""

    name: str
    """`dense`, `lexical`, or a signal that refines them; the guide lists them."""
    rank: int
    """Place of the memory in this signal's own order, from 1; 0: it has no order or did not find the memory."""
    raw: float
    """The value as measured: a cosine, a BM25 score, a share."""
    normalized: float
    """The value made comparable: for the arms, deviations above the mean of the memories searched."""
    weight: float
    """Weight of the normalised value for this query."""
    contribution: float
    """`normalized` x `weight`."""


@dataclass(frozen=True, slots=True)
class FactorScore:
    """One factor of a score, and what it contributed."""

    name: str
    """`relevance`, `importance` or `recency`."""
    value: float
    """0..1."""
    weight: float
    """Its weight, all weights summing to 1."""
    contribution: float
    """confidence x `weight` x `value`."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """How a memory got its score for a query."""

    signals: tuple[SignalScore, ...]
    """What speaks for the memory: the arms of the search first, then what refines them."""
    fused: float
    """The sum of the signals' contributions: deviations above an average memory."""
    relevance: float
    """0..1: a fixed map of the fused value, times `coverage`."""
    factors: tuple[FactorScore, ...]
    """Relevance, importance and recency."""
    confidence: float
    """0..1: by which the weighted sum was multiplied; already inside the contributions of `factors`."""
    score: float
    """The sum of the factors' contributions."""
    coverage: float
    """0..1: how much of what the query asks for the best ten memories hold together; the same for all hits."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What a search returns for a hit: enough to decide whether the detail is wanted, never the content."""

    id: str
    """The memory's id."""
    key: str
    """The memory's key, empty when it has none."""
    kind: str
    """The memory's kind."""
    score: float
    """0..1, comparable within one search."""
    summary: str
    """One informative summary, at most 80 tokens."""
    age: timedelta
    """Time since it occurred, never negative."""
    content_tokens: int
    """Tokens of the full content (o200k_base)."""
    version: int
    """The current version."""
    relevance: float
    """0..1: the relevance part of the score."""
    occurred_at: datetime
    """When what it tells happened."""
    tags: tuple[str, ...]
    """Tags, sorted."""
    weak: bool
    """True when the relevance lies under the store's threshold: nothing in it may answer the query."""
    duplicate_ids: tuple[str, ...]
    """Older memories that say the same, folded into this one; newest first."""
    explanation: Explanation | None
    """How the score came about; None unless the search asked with `explain`."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One record in a namespace, in full."""

    id: str
    """Unique in the store and the same for all versions."""
    key: str
    """Your stable name for it, empty when it has none."""
    version: int
    """1 for the first version; each update adds 1."""
    kind: str
    """What the memory is."""
    content: str
    """The content, cut when `truncated`."""
    content_format: ContentFormat
    """What the content is."""
    summary: str
    """The summary given with the write, or else the one computed from the content."""
    tags: tuple[str, ...]
    """Tags, sorted."""
    metadata: dict[str, Any]
    """Free attributes, as they were written."""
    importance: float
    """0..1."""
    confidence: float
    """0..1."""
    occurred_at: datetime
    """When what it tells happened."""
    created_at: datetime
    """When the first version was written."""
    updated_at: datetime
    """When this version was written."""
    expires_at: datetime | None
    """First instant at which it is no longer returned; None: it does not expire."""
    sources: tuple[Source, ...]
    """Where it came from, in the order given."""
    origin: str
    """Who or what produced it, as given with the write."""
    content_tokens: int
    """Tokens of the full content by the counter asked for."""
    truncated: bool
    """True when `content` was cut to `max_tokens`."""

    def json(self) -> Any:
        """Parse the content as JSON. Raises ValueError when it is not, or is no longer because it was cut."""
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way in which a search found candidates."""

    name: str
    """`dense` (by meaning) or `lexical` (by words)."""
    candidates: int
    """Memories it proposed."""
    method: str
    """How it looked: `scan`, `filtered_scan`, `hnsw` or `bm25`."""


@dataclass(frozen=True, slots=True)
class Degradation:
    """An arm that could not take part in a search."""

    arm: str
    """The arm's name."""
    reason: str
    """Why: `no_query`, `no_known_words` or `deadline`."""


class _Listing(Sequence[T_co]):
    """An answer that is first of all a list, and carries what else the server said."""

    __slots__ = ()

    @abstractmethod
    def _listed(self) -> tuple[T_co, ...]: ...

    def __len__(self) -> int:
        return len(self._listed())

    @overload
    def __getitem__(self, index: int) -> T_co: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T_co, ...]: ...
    def __getitem__(self, index: int | slice) -> T_co | tuple[T_co, ...]:
        return self._listed()[index]


@dataclass(frozen=True, slots=True)
class Search(_Listing[Signature]):
    """The hits of a search, best first: iterate over it, take its length, index it."""

    hits: tuple[Signature, ...]
    """The hits, best first; ties by id."""
    arms: tuple[Arm, ...]
    """What each arm of the search contributed."""
    degraded: tuple[Degradation, ...]
    """Arms that could not take part; empty when the search was complete."""
    token: str
    """Consistency token of the state that was searched."""
    took: timedelta
    """Time the server spent."""

    def _listed(self) -> tuple[Signature, ...]:
        return self.hits


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a memory is, or is not, among the hits of a search."""

    stage: SearchStage
    """The stage that dropped the memory."""
    detail: str
    """What decided, as said at the stage."""
    rank: int
    """Its place when it was dropped, or among the hits, from 1. 0: it was not ranked."""
    needed_rank: int
    """The last place that would have been kept at that stage. 0: the stage does not go by place."""
    value: float
    """Its value at the stage: score, relevance or fused value, as `detail` or the stage says."""
    needed_value: float
    """The least value that would have been kept. 0 when there is none."""
    explanation: Explanation | None
    """How its score comes about; None when it was not found, has expired or was filtered out."""
    id: str
    """The memory's id, empty when it was not found."""
    degraded: tuple[Degradation, ...]
    """Arms that could not take part; empty when the search was complete."""
    token: str
    """Consistency token of the state that was searched."""


@dataclass(frozen=True, slots=True)
class Details(_Listing[Memory]):
    """Memories in full, first those asked for by id and then those by key, each in the order asked."""

    memories: tuple[Memory, ...]
    """The memories found."""
    missing_ids: tuple[str, ...]
    """Ids that do not exist (any more)."""
    missing_keys: tuple[str, ...]
    """Keys that do not exist (any more)."""
    token: str
    """Consistency token of the state that was read."""

    def _listed(self) -> tuple[Memory, ...]:
        return self.memories


@dataclass(frozen=True, slots=True)
class Deleted:
    """The exact counts of a delete."""

    deleted: int
    """Memories deleted (or, in a dry run, that would be)."""
    deleted_versions: int
    """Versions deleted with them, the current ones included."""
    missing_ids: tuple[str, ...]
    """Ids that did not exist."""
    missing_keys: tuple[str, ...]
    """Keys that did not exist."""
    token: str
    """Consistency token of the state without them."""


@dataclass(frozen=True, slots=True)
class IncludedMemory:
    """A memory that a brief carries."""

    id: str
    """The memory's id."""
    key: str
    """The memory's key, empty when it has none."""
    version: int
    """The version that is quoted."""
    form: BriefForm
    """The form in which it stands."""
    tokens: int
    """Tokens of its lines."""
    citation: str
    """The mark that stands in the text, for example `[m1]`."""
    section: str
    """The section's title, empty without sections and for pinned memories."""
    pinned: bool
    """True when the call pinned it."""
    weak: bool
    """As in `Signature`."""


@dataclass(frozen=True, slots=True)
class OmittedMemory:
    """A memory that was found or pinned and that a brief leaves out."""

    id: str
    """The memory's id, empty for a pinned key that does not exist."""
    reason: OmissionReason
    """Why."""
    tokens: int
    """Tokens of the smallest form in which it could have stood."""
    key: str
    """The memory's key, empty when it has none."""


@dataclass(frozen=True, slots=True)
class Brief:
    """A text for the prompt, never over its budget of tokens, and what it is made of."""

    text: str
    """The text, fenced as data. Empty when nothing fits or was found, or when `not_modified`."""
    tokens: int
    """Tokens of the text."""
    encoding: str
    """The counter by which they were counted."""
    included: tuple[IncludedMemory, ...]
    """What the text is made of, in the order of its lines."""
    omitted: tuple[OmittedMemory, ...]
    """What was found and left out, best first."""
    fingerprint: str
    """Names the text: the same fingerprint means the same bytes."""
    not_modified: bool
    """True when the text is the one that `if_fingerprint` named; `text` is then empty."""
    degraded: tuple[Degradation, ...]
    """Arms of the search that could not take part."""
    token: str
    """Consistency token of the state that was read."""
    took: timedelta
    """Time the server spent."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """How many tokens texts have."""

    counts: tuple[int, ...]
    """One count a text, in order."""
    total: int
    """Their sum."""
    encoding: str
    """The counter by which they were counted."""


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Counts of the store behind a sidecar."""

    server_version: str
    """Version of the sidecar."""
    store_id: str
    """Random id of the store, the same for its life."""
    format_version: int
    """Version of the data directory's format."""
    embedder: str
    """Name of the embedder whose vectors the store holds."""
    embedder_fingerprint: str
    """Fingerprint of that embedder."""
    dimensions: int
    """Dimensions of a vector."""
    position: int
    """Operations applied since the store was made."""
    namespaces: int
    """Namespaces that were ever written to."""
    memories: int
    """Live memories."""
    bytes_used: int
    """Bytes of the data file in use."""


@dataclass(frozen=True, slots=True)
class NamespaceStats:
    """Counts of a namespace, all zero when it does not exist."""

    memories: int
    """Live memories. Expired ones count until they are swept."""
    versions: int
    """Versions kept, the current ones included."""
    passages: int
    """Indexed passages of live memories."""
    content_tokens: int
    """Tokens of the content of live memories (o200k_base)."""
    indexed_passages: int
    """Passages in the approximate index; 0 when the namespace is scanned exactly."""
