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

from google.protobuf.message import DecodeError

from . import _answers
from ._arguments import (
    BriefFormat,
    BriefSection,
    ContentFormat,
    Item,
    Query,
    Source,
    TimeRange,
    Weights,
)
from ._convert import entry, named, put, put_all, put_duration, put_metadata, put_times
from ._errors import Internal, RecalldError, invalid
from ._methods import METHODS, Method
from ._status import error_from
from ._tokens import Tokens
from ._transport import CallFailed
from ._types import (
    Brief,
    Deleted,
    Details,
    NamespaceStats,
    Receipt,
    Search,
    StoreStats,
    TokenCounts,
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

    method: Method
    """The method that is called."""
    request: Any
    """The generated message."""
    read: Callable[[Any], T]
    """Makes the answer that the user gets out of the generated one."""
    effect: Effect = Effect.NONE
    carried: str = ""
    """The consistency token in the request."""
    within: str = ""
    """What to cut from the paths of wrong fields: see `_status.error_from`."""

    def answer(self, response: bytes, tokens: Tokens) -> T:
        """Read an answer as it came."""
        try:
            message = self.method.answer.FromString(response)
        except DecodeError as error:
            name = self.method.answer.DESCRIPTOR.name
            raise Internal(f"the answer is not a {name} of the contract") from error
        return self.take(message, tokens)

    def take(self, message: Any, tokens: Tokens) -> T:
        """Read an answer, and remember how far the store has come; Internal if it cannot be read."""
        if self.effect is Effect.WRITE:
            tokens.wrote(message.token)
        elif self.effect is Effect.READ:
            tokens.read(self.carried, message.token)
        try:
            return self.read(message)
        except OverflowError as error:
            raise Internal("the answer has an instant or a length of time that Python cannot hold") from error

    def error(self, failed: CallFailed, tokens: Tokens) -> RecalldError:
        """Read why there is no answer, and forget a token that the store does not know."""
        error = error_from(failed, within=self.within)
        if self.effect is Effect.READ and error.reason == "TOKEN_OF_ANOTHER_STORE":
            tokens.refused(self.carried)
        return error


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
        return Call(METHODS["Write"], request, _answers.receipts, Effect.WRITE)

    def write_one(self, item: Item, idempotency_key: str | None) -> Call[Receipt]:
        """Write one item; errors name its fields, not those of a list that the user never made."""
        request = memory_service_pb2.WriteRequest(namespace=self._namespace)
        _put_item(request.items.add(), "", item)
        put(request, "", idempotency_key=idempotency_key or _new_key())
        return Call(METHODS["Write"], request, _answers.only_receipt, Effect.WRITE, within="items[0].")

    def search(self, query: Query) -> Call[Search]:
        """Search and read the hits."""
        if not isinstance(query, Query):
            raise invalid("query", f"must be text or a Query, not {type(query).__name__}")
        request = memory_service_pb2.SearchRequest(namespace=self._namespace)
        if query.namespace is not None:
            request.namespace.Clear()
            put_all(request.namespace, "namespace.", segments=query.namespace)
        put(
            request,
            "",
            query=query.query,
            limit=query.limit,
            min_score=query.min_score,
            min_relevance=query.min_relevance,
            explain=query.explain,
        )
        put_all(request, "", vector=query.vector, kinds=query.kinds, tags=query.tags)
        _put_conditions(request, query.filter, query.occurred, query.weights, query.half_lives)
        _put_budget(request, query.latency_budget)
        carried = self._put_token(request, query.at_least_as_fresh)
        return Call(METHODS["Search"], request, _answers.search, Effect.READ, carried)

    def why_not(self, search: Call[Search], *, id: str | None, key: str | None) -> Call[WhyNot]:
        """Ask why a search finds a memory or does not; errors name the arguments of the search."""
        request = memory_service_pb2.WhyNotRequest(search=search.request)
        put(request, "", id=id, key=key)
        return Call(
            METHODS["WhyNot"], request, _answers.why_not, Effect.READ, search.carried, within="search."
        )

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
        return Call(METHODS["Get"], request, _answers.details, Effect.READ, carried)

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
        return Call(METHODS["Delete"], request, _answers.deleted, Effect.NONE if dry_run else Effect.WRITE)

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
        latency_budget: timedelta | None,
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
        _put_budget(request, latency_budget)
        carried = self._put_token(request, at_least_as_fresh)
        return Call(METHODS["Brief"], request, _answers.brief, Effect.READ, carried)

    def stats(self) -> Call[NamespaceStats]:
        """Count what the namespace holds."""
        request = admin_service_pb2.GetStatsRequest(namespace=self._namespace)
        return Call(METHODS["GetStats"], request, _answers.namespace_stats)

    def _put_token(self, request: Any, at_least_as_fresh: str | None) -> str:
        chosen = self._tokens.newest if at_least_as_fresh is None else at_least_as_fresh
        put(request, "", at_least_as_fresh=chosen)
        return chosen


def count_tokens(texts: Collection[str], encoding: str | None) -> Call[TokenCounts]:
    """Count tokens."""
    request = memory_service_pb2.CountTokensRequest()
    put_all(request, "", texts=texts)
    put(request, "", encoding=encoding)
    return Call(METHODS["CountTokens"], request, _answers.token_counts)


def store_stats() -> Call[StoreStats]:
    """Count what the store holds."""
    return Call(METHODS["GetStats"], admin_service_pb2.GetStatsRequest(), _answers.store_stats)


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


def _put_budget(request: Any, latency_budget: timedelta | None) -> None:
    if latency_budget is not None:
        put_duration(request.latency_budget, "latency_budget", latency_budget)


def _put_filter(request: Any, filter: Filter | None) -> None:
    if filter is None:
        return
    if not isinstance(filter, Filter):
        raise invalid("filter", f"must be made with recalld.filters, not a {type(filter).__name__}")
    request.filter.CopyFrom(filter.proto)
