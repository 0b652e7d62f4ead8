"""What comes out: immutable records with the names of the contract.

Instants are timezone-aware datetimes in UTC and lengths of time are timedeltas, to the microsecond. Text that
the contract leaves empty ("none") is empty here too; `None` stands for a time or number that is not there.
This module must never know of protobuf or gRPC.
"""

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar, overload

from ._arguments import ContentFormat, Source

T_co = TypeVar("T_co", covariant=True)


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
class PlannedMethod:
    """A way of looking that a search could have taken."""

    method: str
    """As in `Arm`."""
    cost: int
    """About how many vectors would be compared in order; a comparison out of order counts as several."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way in which a search found candidates."""

    name: str
    """`dense` (by meaning) or `lexical` (by words)."""
    candidates: int
    """Memories it proposed."""
    method: str
    """How it looked: `scan`, `filtered_scan`, `hnsw` or `bm25`."""
    plan: tuple[PlannedMethod, ...]
    """With `explain`, the ways of looking that were open, the cheapest of which was taken; empty for `bm25`."""


@dataclass(frozen=True, slots=True)
class Degradation:
    """An arm that could not take part in a search."""

    arm: str
    """The arm's name; or `words`, the comparison of the best candidates with the query word by word."""
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
