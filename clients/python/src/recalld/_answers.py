"""What answers mean: from the messages of the contract to the records of `_types`.

A pure function for each kind of answer. Nothing here remembers, repeats or raises.
"""

from collections.abc import Iterable

from ._arguments import ContentFormat, Source
from ._convert import duration_from_proto, metadata_from_proto, time_from_proto
from ._types import (
    Arm,
    Brief,
    BriefForm,
    Degradation,
    Deleted,
    Details,
    Explanation,
    FactorScore,
    IncludedMemory,
    Memory,
    NamespaceStats,
    OmissionReason,
    OmittedMemory,
    Outcome,
    PlannedMethod,
    Receipt,
    Search,
    SearchStage,
    SignalScore,
    Signature,
    StoreStats,
    TokenCounts,
    WhyNot,
)
from .v1 import admin_service_pb2, memory_pb2, memory_service_pb2

# A number of an enum that is not here was added after this client was made.

_FORMATS = {
    memory_pb2.CONTENT_FORMAT_TEXT: ContentFormat.TEXT,
    memory_pb2.CONTENT_FORMAT_JSON: ContentFormat.JSON,
}
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


def receipts(response: memory_service_pb2.WriteResponse) -> list[Receipt]:
    """Read what happened to the items of a write."""
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


def only_receipt(response: memory_service_pb2.WriteResponse) -> Receipt:
    """Read what happened to the one item of a write."""
    (receipt,) = receipts(response)
    return receipt


def search(response: memory_service_pb2.SearchResponse) -> Search:
    """Read the hits of a search."""
    return Search(
        hits=tuple(_signature(hit) for hit in response.hits),
        arms=tuple(_arm(arm) for arm in response.arms),
        degraded=_degradations(response.degraded),
        token=response.token,
        took=duration_from_proto(response.took),
    )


def _arm(arm: memory_service_pb2.Arm) -> Arm:
    return Arm(
        name=arm.name,
        candidates=arm.candidates,
        method=arm.method,
        plan=tuple(PlannedMethod(method=way.method, cost=way.cost) for way in arm.plan),
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


def why_not(response: memory_service_pb2.WhyNotResponse) -> WhyNot:
    """Read why a memory is or is not among the hits."""
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


def details(response: memory_service_pb2.GetResponse) -> Details:
    """Read memories in full."""
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


def deleted(response: memory_service_pb2.DeleteResponse) -> Deleted:
    """Read the counts of a delete."""
    return Deleted(
        deleted=response.deleted,
        deleted_versions=response.deleted_versions,
        missing_ids=tuple(response.missing_ids),
        missing_keys=tuple(response.missing_keys),
        token=response.token,
    )


def brief(response: memory_service_pb2.BriefResponse) -> Brief:
    """Read a brief."""
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


def token_counts(response: memory_service_pb2.CountTokensResponse) -> TokenCounts:
    """Read counts of tokens."""
    return TokenCounts(counts=tuple(response.counts), total=response.total, encoding=response.encoding)


def store_stats(response: admin_service_pb2.GetStatsResponse) -> StoreStats:
    """Read the counts of the store."""
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


def namespace_stats(response: admin_service_pb2.GetStatsResponse) -> NamespaceStats:
    """Read the counts of the namespace."""
    counts = response.namespace
    return NamespaceStats(
        memories=counts.memories,
        versions=counts.versions,
        passages=counts.passages,
        content_tokens=counts.content_tokens,
        indexed_passages=counts.indexed_passages,
    )
