"""The calls of the contract: arguments in, a request and how to read its answer out.

Both clients make every call from here, so that they cannot differ. Nothing here sends, waits or retries, and
nothing here checks what the server checks.
"""

import json
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Any, Generic, TypeVar

from ._convert import (
    duration_from_proto,
    entry,
    metadata_from_proto,
    named,
    put,
    put_all,
    put_duration,
    put_metadata,
    put_times,
    time_from_proto,
)
from ._errors import invalid
from ._tokens import Tokens
from ._types import (
    Arm,
    Brief,
    BriefForm,
    BriefFormat,
    BriefSection,
    ContentFormat,
    Degradation,
    Deleted,
    Details,
    Explanation,
    FactorScore,
    IncludedMemory,
    Item,
    Memory,
    NamespaceStats,
    OmissionReason,
    OmittedMemory,
    Outcome,
    Receipt,
    Search,
    SearchStage,
    SignalScore,
    Signature,
    Source,
    StoreStats,
    TimeRange,
    TokenCounts,
    Weights,
    WhyNot,
)
from .filters import Filter
from .v1 import admin_service_pb2, memory_pb2, memory_service_pb2, types_pb2

# ruff: noqa: A002 - `filter`, `format` and `id` are what the contract calls them
T = TypeVar("T")


class Effect(Enum):
    """What a call means for the consistency token that its client remembers."""

    WRITE = auto()
    """It changed the store: the token of its answer is remembered."""
    READ = auto()
    """It saw the store: the token of its answer is remembered unless it may be the older."""
    NONE = auto()
    """It says nothing about the store."""


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    """A request, ready to be sent, and what its answer means."""

    method: str
    """Name of the method of the generated stubs."""
    request: Any
    """The generated message."""
    read: Callable[[Any], T]
    """Makes the answer that the user gets out of the generated one."""
    effect: Effect = Effect.NONE
    carried: str = ""
    """The consistency token in the request."""
    within: str = ""
    """What to cut from the paths of wrong fields: see `_status.error_from_rpc`."""


class NamespaceCalls:
    """The calls about one namespace. `segments` is the path that names it."""

    def __init__(self, segments: tuple[str, ...], tokens: Tokens) -> None:
        self.segments = segments
        self._namespace = types_pb2.Namespace()
        put_all(self._namespace, "namespace.", segments=segments)
        self._tokens = tokens

    def write(self, items: Iterable[Item], idempotency_key: str | None) -> Call[list[Receipt]]:
        """Write items and read their receipts."""
        request = memory_service_pb2.WriteRequest(namespace=self._namespace)
        for index, item in enumerate(items):
            if not isinstance(item, Item):
                raise invalid(f"items[{index}]", f"must be an Item, not {type(item).__name__}")
            _put_item(request.items.add(), f"items[{index}].", item)
        put(request, "", idempotency_key=idempotency_key or _new_key())
        return Call("Write", request, _receipts, Effect.WRITE)

    def write_one(self, item: Item, idempotency_key: str | None) -> Call[Receipt]:
        """Write one item; errors name its fields, not those of a list that the user never made."""
        request = memory_service_pb2.WriteRequest(namespace=self._namespace)
        _put_item(request.items.add(), "", item)
        put(request, "", idempotency_key=idempotency_key or _new_key())
        return Call("Write", request, _only_receipt, Effect.WRITE, within="items[0].")

    def search(
        self,
        query: str | None,
        *,
        vector: Collection[float],
        limit: int | None,
        filter: Filter | None,
        kinds: Collection[str],
        tags: Collection[str],
        occurred: TimeRange | None,
        min_score: float | None,
        min_relevance: float | None,
        weights: Weights | None,
        half_lives: Mapping[str, timedelta] | None,
        at_least_as_fresh: str | None,
        explain: bool = False,
    ) -> Call[Search]:
        """Search and read the hits."""
        request = memory_service_pb2.SearchRequest(namespace=self._namespace)
        put(
            request,
            "",
            query=query,
            limit=limit,
            min_score=min_score,
            min_relevance=min_relevance,
            explain=explain,
        )
        put_all(request, "", vector=vector, kinds=kinds, tags=tags)
        _put_conditions(request, filter, occurred, weights, half_lives)
        carried = self._put_token(request, at_least_as_fresh)
        return Call("Search", request, _search, Effect.READ, carried)

    def why_not(self, search: Call[Search], *, id: str | None, key: str | None) -> Call[WhyNot]:
        """Ask why a search finds a memory or does not; errors name the arguments of the search."""
        request = memory_service_pb2.WhyNotRequest(search=search.request)
        put(request, "", id=id, key=key)
        return Call("WhyNot", request, _why_not, Effect.READ, search.carried, within="search.")

    def get(
        self,
        ids: Collection[str],
        keys: Collection[str],
        *,
        max_tokens: int | None,
        encoding: str | None,
        as_of_version: int | None,
        at_least_as_fresh: str | None,
    ) -> Call[Details]:
        """Fetch memories in full."""
        request = memory_service_pb2.GetRequest(namespace=self._namespace)
        put_all(request, "", ids=ids, keys=keys)
        put(request, "", max_tokens=max_tokens, encoding=encoding, as_of_version=as_of_version)
        carried = self._put_token(request, at_least_as_fresh)
        return Call("Get", request, _details, Effect.READ, carried)

    def delete(
        self,
        ids: Collection[str],
        keys: Collection[str],
        *,
        filter: Filter | None,
        if_version: int | None,
        dry_run: bool,
        idempotency_key: str | None,
    ) -> Call[Deleted]:
        """Delete memories and read the counts."""
        request = memory_service_pb2.DeleteRequest(namespace=self._namespace)
        put_all(request, "", ids=ids, keys=keys)
        put(
            request,
            "",
            if_version=if_version,
            dry_run=dry_run,
            idempotency_key=idempotency_key or _new_key(),
        )
        _put_filter(request, filter)
        return Call("Delete", request, _deleted, Effect.NONE if dry_run else Effect.WRITE)

    def brief(
        self,
        query: str | None,
        *,
        vector: Collection[float],
        budget_tokens: int | None,
        encoding: str | None,
        format: BriefFormat | None,
        sections: Collection[BriefSection],
        pinned_ids: Collection[str],
        pinned_keys: Collection[str],
        limit: int | None,
        filter: Filter | None,
        kinds: Collection[str],
        tags: Collection[str],
        occurred: TimeRange | None,
        min_score: float | None,
        min_relevance: float | None,
        weights: Weights | None,
        half_lives: Mapping[str, timedelta] | None,
        if_fingerprint: str | None,
        at_least_as_fresh: str | None,
    ) -> Call[Brief]:
        """Ask for a brief."""
        request = memory_service_pb2.BriefRequest(namespace=self._namespace)
        put(
            request,
            "",
            query=query,
            budget_tokens=budget_tokens,
            encoding=encoding,
            limit=limit,
            min_score=min_score,
            min_relevance=min_relevance,
            if_fingerprint=if_fingerprint,
        )
        put_all(
            request,
            "",
            vector=vector,
            kinds=kinds,
            tags=tags,
            pinned_ids=pinned_ids,
            pinned_keys=pinned_keys,
        )
        _put_layout(request, format, sections)
        _put_conditions(request, filter, occurred, weights, half_lives)
        carried = self._put_token(request, at_least_as_fresh)
        return Call("Brief", request, _brief, Effect.READ, carried)

    def stats(self) -> Call[NamespaceStats]:
        """Count what the namespace holds."""
        request = admin_service_pb2.GetStatsRequest(namespace=self._namespace)
        return Call("GetStats", request, _namespace_stats)

    def _put_token(self, request: Any, at_least_as_fresh: str | None) -> str:
        chosen = self._tokens.newest if at_least_as_fresh is None else at_least_as_fresh
        put(request, "", at_least_as_fresh=chosen)
        return chosen


def count_tokens(texts: Collection[str], encoding: str | None) -> Call[TokenCounts]:
    """Count tokens."""
    request = memory_service_pb2.CountTokensRequest()
    put_all(request, "", texts=texts)
    put(request, "", encoding=encoding)
    return Call("CountTokens", request, _token_counts)


def store_stats() -> Call[StoreStats]:
    """Count what the store holds."""
    return Call("GetStats", admin_service_pb2.GetStatsRequest(), _store_stats)


# Requests.

_FORMATS_SENT = {
    ContentFormat.TEXT: memory_pb2.CONTENT_FORMAT_TEXT,
    ContentFormat.JSON: memory_pb2.CONTENT_FORMAT_JSON,
}
_BRIEF_FORMATS_SENT = {
    BriefFormat.MARKDOWN: memory_service_pb2.BRIEF_FORMAT_MARKDOWN,
    BriefFormat.JSON: memory_service_pb2.BRIEF_FORMAT_JSON,
    BriefFormat.XML: memory_service_pb2.BRIEF_FORMAT_XML,
}


def _new_key() -> str:
    return uuid.uuid4().hex


def _put_item(target: memory_service_pb2.WriteItem, path: str, item: Item) -> None:
    _put_content(target, path, item)
    put(
        target,
        path,
        key=item.key,
        kind=item.kind,
        summary=item.summary,
        importance=item.importance,
        confidence=item.confidence,
        if_version=item.if_version,
        origin=item.origin,
    )
    put_all(target, path, tags=item.tags, vector=item.vector)
    if item.metadata is not None:
        put_metadata(target.metadata, f"{path}metadata", item.metadata)
    put_times(target, path, occurred_at=item.occurred_at, expires_at=item.expires_at)
    if item.ttl is not None:
        put_duration(target.ttl, f"{path}ttl", item.ttl)
    for index, source in enumerate(item.sources):
        where = f"{path}sources[{index}]"
        if not isinstance(source, Source):
            raise invalid(where, f"must be a Source, not {type(source).__name__}")
        put(target.sources.add(), f"{where}.", uri=source.uri, session=source.session, speaker=source.speaker)


def _put_content(target: memory_service_pb2.WriteItem, path: str, item: Item) -> None:
    content, content_format = item.content, item.content_format
    if isinstance(content, dict | list):
        if content_format is None:
            content_format = ContentFormat.JSON
        elif content_format != ContentFormat.JSON:
            raise invalid(f"{path}content_format", "a dict or a list can only be sent as JSON")
        try:
            content = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        except (TypeError, ValueError, RecursionError) as error:
            raise invalid(f"{path}content", f"cannot be sent as JSON: {error}") from error
    put(target, path, content=content)
    if content_format is not None:
        if content_format not in _FORMATS_SENT:
            raise invalid(f"{path}content_format", "must be ContentFormat.TEXT or ContentFormat.JSON")
        target.content_format = _FORMATS_SENT[content_format]


def _put_layout(
    request: memory_service_pb2.BriefRequest, format: BriefFormat | None, sections: Collection[BriefSection]
) -> None:
    if format is not None:
        if format not in _BRIEF_FORMATS_SENT:
            raise invalid("format", "must be BriefFormat.MARKDOWN, BriefFormat.JSON or BriefFormat.XML")
        request.format = _BRIEF_FORMATS_SENT[format]
    for index, section in enumerate(sections):
        where = f"sections[{index}]"
        if not isinstance(section, BriefSection):
            raise invalid(where, f"must be a BriefSection, not {type(section).__name__}")
        target = request.sections.add()
        put(target, f"{where}.", title=section.title, max_tokens=section.max_tokens)
        put_all(target, f"{where}.", kinds=section.kinds)


def _put_conditions(
    request: Any,
    filter: Filter | None,
    occurred: TimeRange | None,
    weights: Weights | None,
    half_lives: Mapping[str, timedelta] | None,
) -> None:
    """Fill what Search and Brief have in common besides plain fields."""
    _put_filter(request, filter)
    if occurred is not None:
        request.occurred.SetInParent()
        put_times(request.occurred, "occurred.", start=occurred.start, end=occurred.end)
    if weights is not None:
        put(
            request.weights,
            "weights.",
            relevance=weights.relevance,
            importance=weights.importance,
            recency=weights.recency,
        )
    for kind, half_life in (half_lives or {}).items():
        put_duration(entry(request.half_lives, "half_lives", kind), named("half_lives", kind), half_life)


def _put_filter(request: Any, filter: Filter | None) -> None:
    if filter is None:
        return
    if not isinstance(filter, Filter):
        raise invalid("filter", f"must be made with recalld.filters, not a {type(filter).__name__}")
    request.filter.CopyFrom(filter.proto)


# Answers. A number of an enum that is not here was added after this client was made.

_FORMATS = {number: sent for sent, number in _FORMATS_SENT.items()}
_OUTCOMES = {
    memory_service_pb2.WRITE_OUTCOME_STORED: Outcome.STORED,
    memory_service_pb2.WRITE_OUTCOME_UPDATED: Outcome.UPDATED,
    memory_service_pb2.WRITE_OUTCOME_DUPLICATE: Outcome.DUPLICATE,
}
_FORMS = {
    memory_service_pb2.BRIEF_FORM_FULL: BriefForm.FULL,
    memory_service_pb2.BRIEF_FORM_PASSAGES: BriefForm.PASSAGES,
    memory_service_pb2.BRIEF_FORM_SUMMARY: BriefForm.SUMMARY,
    memory_service_pb2.BRIEF_FORM_HEADLINE: BriefForm.HEADLINE,
}
_REASONS = {
    memory_service_pb2.OMISSION_REASON_BUDGET: OmissionReason.BUDGET,
    memory_service_pb2.OMISSION_REASON_DUPLICATE: OmissionReason.DUPLICATE,
    memory_service_pb2.OMISSION_REASON_SECTION: OmissionReason.SECTION,
    memory_service_pb2.OMISSION_REASON_NOT_FOUND: OmissionReason.NOT_FOUND,
}
_STAGES = {
    memory_service_pb2.SEARCH_STAGE_NOT_FOUND: SearchStage.NOT_FOUND,
    memory_service_pb2.SEARCH_STAGE_EXPIRED: SearchStage.EXPIRED,
    memory_service_pb2.SEARCH_STAGE_FILTER: SearchStage.FILTER,
    memory_service_pb2.SEARCH_STAGE_CANDIDATES: SearchStage.CANDIDATES,
    memory_service_pb2.SEARCH_STAGE_THRESHOLD: SearchStage.THRESHOLD,
    memory_service_pb2.SEARCH_STAGE_DUPLICATE: SearchStage.DUPLICATE,
    memory_service_pb2.SEARCH_STAGE_LIMIT: SearchStage.LIMIT,
    memory_service_pb2.SEARCH_STAGE_RETURNED: SearchStage.RETURNED,
}


def _receipts(response: memory_service_pb2.WriteResponse) -> list[Receipt]:
    return [
        Receipt(
            outcome=_OUTCOMES.get(receipt.outcome, Outcome.UNRECOGNIZED),
            id=receipt.id,
            version=receipt.version,
            content_tokens=receipt.content_tokens,
            token=response.token,
        )
        for receipt in response.receipts
    ]


def _only_receipt(response: memory_service_pb2.WriteResponse) -> Receipt:
    (receipt,) = _receipts(response)
    return receipt


def _search(response: memory_service_pb2.SearchResponse) -> Search:
    return Search(
        hits=tuple(_signature(hit) for hit in response.hits),
        arms=tuple(Arm(name=arm.name, candidates=arm.candidates, method=arm.method) for arm in response.arms),
        degraded=_degradations(response.degraded),
        token=response.token,
        took=duration_from_proto(response.took),
    )


def _signature(hit: memory_pb2.Signature) -> Signature:
    return Signature(
        id=hit.id,
        key=hit.key,
        kind=hit.kind,
        score=hit.score,
        summary=hit.summary,
        age=duration_from_proto(hit.age),
        content_tokens=hit.content_tokens,
        version=hit.version,
        relevance=hit.relevance,
        occurred_at=time_from_proto(hit.occurred_at),
        tags=tuple(hit.tags),
        weak=hit.weak,
        duplicate_ids=tuple(hit.duplicate_ids),
        explanation=_explanation(hit),
    )


def _explanation(
    message: memory_pb2.Signature | memory_service_pb2.WhyNotResponse,
) -> Explanation | None:
    """Read the explanation of a hit, or of one that is none; None when it has none."""
    if not message.HasField("explanation"):
        return None
    explanation = message.explanation
    return Explanation(
        signals=tuple(
            SignalScore(
                name=signal.name,
                rank=signal.rank,
                raw=signal.raw,
                normalized=signal.normalized,
                weight=signal.weight,
                contribution=signal.contribution,
            )
            for signal in explanation.signals
        ),
        fused=explanation.fused,
        relevance=explanation.relevance,
        factors=tuple(
            FactorScore(
                name=factor.name,
                value=factor.value,
                weight=factor.weight,
                contribution=factor.contribution,
            )
            for factor in explanation.factors
        ),
        confidence=explanation.confidence,
        score=explanation.score,
        coverage=explanation.coverage,
    )


def _why_not(response: memory_service_pb2.WhyNotResponse) -> WhyNot:
    return WhyNot(
        stage=_STAGES.get(response.stage, SearchStage.UNRECOGNIZED),
        detail=response.detail,
        rank=response.rank,
        needed_rank=response.needed_rank,
        value=response.value,
        needed_value=response.needed_value,
        explanation=_explanation(response),
        id=response.id,
        degraded=_degradations(response.degraded),
        token=response.token,
    )


def _degradations(degraded: Iterable[memory_service_pb2.Degradation]) -> tuple[Degradation, ...]:
    return tuple(Degradation(arm=one.arm, reason=one.reason) for one in degraded)


def _details(response: memory_service_pb2.GetResponse) -> Details:
    return Details(
        memories=tuple(_memory(memory) for memory in response.memories),
        missing_ids=tuple(response.missing_ids),
        missing_keys=tuple(response.missing_keys),
        token=response.token,
    )


def _memory(memory: memory_pb2.Memory) -> Memory:
    return Memory(
        id=memory.id,
        key=memory.key,
        version=memory.version,
        kind=memory.kind,
        content=memory.content,
        content_format=_FORMATS.get(memory.content_format, ContentFormat.UNRECOGNIZED),
        summary=memory.summary,
        tags=tuple(memory.tags),
        metadata=metadata_from_proto(memory.metadata),
        importance=memory.importance,
        confidence=memory.confidence,
        occurred_at=time_from_proto(memory.occurred_at),
        created_at=time_from_proto(memory.created_at),
        updated_at=time_from_proto(memory.updated_at),
        expires_at=time_from_proto(memory.expires_at) if memory.HasField("expires_at") else None,
        sources=tuple(
            Source(uri=source.uri, session=source.session, speaker=source.speaker)
            for source in memory.sources
        ),
        origin=memory.origin,
        content_tokens=memory.content_tokens,
        truncated=memory.truncated,
    )


def _deleted(response: memory_service_pb2.DeleteResponse) -> Deleted:
    return Deleted(
        deleted=response.deleted,
        deleted_versions=response.deleted_versions,
        missing_ids=tuple(response.missing_ids),
        missing_keys=tuple(response.missing_keys),
        token=response.token,
    )


def _brief(response: memory_service_pb2.BriefResponse) -> Brief:
    return Brief(
        text=response.text,
        tokens=response.tokens,
        encoding=response.encoding,
        included=tuple(
            IncludedMemory(
                id=memory.id,
                key=memory.key,
                version=memory.version,
                form=_FORMS.get(memory.form, BriefForm.UNRECOGNIZED),
                tokens=memory.tokens,
                citation=memory.citation,
                section=memory.section,
                pinned=memory.pinned,
                weak=memory.weak,
            )
            for memory in response.included
        ),
        omitted=tuple(
            OmittedMemory(
                id=memory.id,
                reason=_REASONS.get(memory.reason, OmissionReason.UNRECOGNIZED),
                tokens=memory.tokens,
                key=memory.key,
            )
            for memory in response.omitted
        ),
        fingerprint=response.fingerprint,
        not_modified=response.not_modified,
        degraded=_degradations(response.degraded),
        token=response.token,
        took=duration_from_proto(response.took),
    )


def _token_counts(response: memory_service_pb2.CountTokensResponse) -> TokenCounts:
    return TokenCounts(counts=tuple(response.counts), total=response.total, encoding=response.encoding)


def _store_stats(response: admin_service_pb2.GetStatsResponse) -> StoreStats:
    store = response.store
    return StoreStats(
        server_version=response.server_version,
        store_id=store.store_id,
        format_version=store.format_version,
        embedder=store.embedder,
        embedder_fingerprint=store.embedder_fingerprint,
        dimensions=store.dimensions,
        position=store.position,
        namespaces=store.namespaces,
        memories=store.memories,
        bytes_used=store.bytes_used,
    )


def _namespace_stats(response: admin_service_pb2.GetStatsResponse) -> NamespaceStats:
    counts = response.namespace
    return NamespaceStats(
        memories=counts.memories,
        versions=counts.versions,
        passages=counts.passages,
        content_tokens=counts.content_tokens,
        indexed_passages=counts.indexed_passages,
    )
