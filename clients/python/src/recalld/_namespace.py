"""The calls of one namespace, for code that blocks.

Every call is made in `_calls`; the asyncio namespace in `_async_namespace` is the same but for `await`.
Nothing that both need may be written here.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from . import _calls, _searches
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
from ._errors import RecalldError
from ._stream import SearchStream
from ._types import Brief, Deleted, Details, NamespaceStats, Receipt, Search, WhyNot
from .filters import Filter

if TYPE_CHECKING:
    from ._client import Client

# ruff: noqa: A002 - `filter`, `format` and `id` are what the contract calls them
# ruff: noqa: SLF001 - a namespace is a part of its client
T = TypeVar("T")


class Namespace:
    """The memories of one namespace. Made by `Client.namespace`.

    A read waits until the store has come as far as this client last heard, so that an agent reads its own
    writes, even through another sidecar. `at_least_as_fresh` replaces that: give the token of an answer that
    another process got, or an empty text to wait for nothing. `timeout` is in seconds. What fails raises a
    `RecalldError`.
    """

    def __init__(self, client: "Client", calls: _calls.NamespaceCalls) -> None:
        self._client = client
        self._calls = calls

    @property
    def segments(self) -> tuple[str, ...]:
        """The path that names it."""
        return self._calls.segments

    def write(
        self,
        content: str | dict[str, Any] | list[Any],
        *,
        key: str | None = None,
        content_format: ContentFormat | None = None,
        kind: str | None = None,
        summary: str | None = None,
        tags: Collection[str] = (),
        metadata: Mapping[str, Any] | None = None,
        importance: float | None = None,
        confidence: float | None = None,
        occurred_at: datetime | None = None,
        ttl: timedelta | None = None,
        expires_at: datetime | None = None,
        sources: Collection[Source] = (),
        vector: Collection[float] = (),
        if_version: int | None = None,
        origin: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Receipt:
        """Write one memory; when this returns it is durable, and the next search sees it.

        The arguments are the fields of `Item`. `idempotency_key` makes the call safe to repeat for 24 hours,
        by another process too; each call has one of its own when it is not given. Raises Conflict when
        `if_version` was not the current version; then nothing was written.
        """
        item = Item(
            content,
            key=key,
            content_format=content_format,
            kind=kind,
            summary=summary,
            tags=tags,
            metadata=metadata,
            importance=importance,
            confidence=confidence,
            occurred_at=occurred_at,
            ttl=ttl,
            expires_at=expires_at,
            sources=sources,
            vector=vector,
            if_version=if_version,
            origin=origin,
        )
        return self._run(self._calls.write_one(item, idempotency_key), timeout)

    def write_many(
        self,
        items: Iterable[Item],
        *,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> list[Receipt]:
        """Write up to 1,000 memories, all of them or, when this raises, none; one receipt an item, in order.

        `idempotency_key` and errors are as in `write`.
        """
        return self._run(self._calls.write(items, idempotency_key), timeout)

    def search(
        self,
        query: str | None = None,
        *,
        vector: Collection[float] = (),
        limit: int | None = None,
        filter: Filter | None = None,
        kinds: Collection[str] = (),
        tags: Collection[str] = (),
        occurred: TimeRange | None = None,
        min_score: float | None = None,
        min_relevance: float | None = None,
        weights: Weights | None = None,
        half_lives: Mapping[str, timedelta] | None = None,
        explain: bool = False,
        latency_budget: timedelta | None = None,
        at_least_as_fresh: str | None = None,
        timeout: float | None = None,
    ) -> Search:
        """Find the memories that fit a query best, by words and by meaning: their signatures, best first.

        Give `query`, or its `vector`, or both: then the words come from the query and the meaning from the
        vector. At most `limit` hits (default 5) whose score is at least `min_score` and whose relevance is at
        least `min_relevance`; a hit under the store's own threshold is `weak`. `filter` is made with
        `recalld.filters`; `kinds` keeps memories of one of these kinds, `tags` those that carry all of these
        tags, and `occurred` those that occurred in this span. `weights` and `half_lives` (by kind) change how
        hits are scored. `explain` adds to each hit how its score came about, and to each arm what its ways of
        looking would have cost. `latency_budget` is the time to spend: what has not begun by then is left out
        and named in the answer's `degraded`.
        """
        asked = Query(
            query,
            vector=vector,
            limit=limit,
            filter=filter,
            kinds=kinds,
            tags=tags,
            occurred=occurred,
            min_score=min_score,
            min_relevance=min_relevance,
            weights=weights,
            half_lives=half_lives,
            explain=explain,
            latency_budget=latency_budget,
            at_least_as_fresh=at_least_as_fresh,
        )
        return self._run(self._calls.search(asked), timeout)

    def search_many(
        self, queries: Iterable[str | Query], *, timeout: float | None = None
    ) -> list[Search | RecalldError]:
        """Ask many searches at once, each text alone or a `Query`, and give what became of each, in order.

        One that fails stands as its error and does not lose the others; this raises only when a whole call
        fails. Up to 256 searches see one state of the store; more are asked in several calls.
        """
        batch = _searches.batch(self._calls, queries, self._client._tokens)
        self._client._run_all(batch.calls, timeout)
        return batch.outcomes

    def search_stream(self, *, timeout: float | None = None) -> SearchStream:
        """Open a long stream for searches, to ask without waiting for each answer; see `SearchStream`.

        `timeout` is for each search on it.
        """
        return SearchStream(self._calls, self._client._way(), timeout)

    def why_not(
        self,
        query: str | None = None,
        *,
        id: str | None = None,
        key: str | None = None,
        vector: Collection[float] = (),
        limit: int | None = None,
        filter: Filter | None = None,
        kinds: Collection[str] = (),
        tags: Collection[str] = (),
        occurred: TimeRange | None = None,
        min_score: float | None = None,
        min_relevance: float | None = None,
        weights: Weights | None = None,
        half_lives: Mapping[str, timedelta] | None = None,
        latency_budget: timedelta | None = None,
        at_least_as_fresh: str | None = None,
        timeout: float | None = None,
    ) -> WhyNot:
        """Say why a memory is, or is not, among the hits of a search: the stage that dropped it, with numbers.

        Name the memory by `id` or `key`. The other arguments are those of the `search` that is asked about.
        """
        search = Query(
            query,
            vector=vector,
            limit=limit,
            filter=filter,
            kinds=kinds,
            tags=tags,
            occurred=occurred,
            min_score=min_score,
            min_relevance=min_relevance,
            weights=weights,
            half_lives=half_lives,
            latency_budget=latency_budget,
            at_least_as_fresh=at_least_as_fresh,
        )
        call = self._calls.why_not(self._calls.search(search), id=id, key=key)
        return self._run(call, timeout)

    def get(
        self,
        ids: Collection[str] = (),
        keys: Collection[str] = (),
        *,
        max_tokens: int | None = None,
        encoding: str | None = None,
        as_of_version: int | None = None,
        at_least_as_fresh: str | None = None,
        timeout: float | None = None,
    ) -> Details:
        """Fetch memories in full, by id or key; those that do not exist are named in the answer.

        `max_tokens` cuts each content, counted by `encoding` (`o200k_base` by default; see `count_tokens`).
        `as_of_version` fetches an earlier version; only with one id or key.
        """
        call = self._calls.get(
            ids,
            keys,
            max_tokens=max_tokens,
            encoding=encoding,
            as_of_version=as_of_version,
            at_least_as_fresh=at_least_as_fresh,
        )
        return self._run(call, timeout)

    def delete(
        self,
        ids: Collection[str] = (),
        keys: Collection[str] = (),
        *,
        filter: Filter | None = None,
        if_version: int | None = None,
        dry_run: bool = False,
        idempotency_key: str | None = None,
        timeout: float | None = None,
    ) -> Deleted:
        """Delete memories with all their versions, by id, key or filter; none of them never means all.

        `if_version` deletes only when it is the current version (with one id or key), and raises Conflict
        when it is not. `dry_run` only counts. `idempotency_key` is as in `write`.
        """
        call = self._calls.delete(
            ids,
            keys,
            filter=filter,
            if_version=if_version,
            dry_run=dry_run,
            idempotency_key=idempotency_key,
        )
        return self._run(call, timeout)

    def brief(
        self,
        query: str | None = None,
        *,
        vector: Collection[float] = (),
        budget_tokens: int | None = None,
        encoding: str | None = None,
        format: BriefFormat | None = None,
        sections: Collection[BriefSection] = (),
        pinned_ids: Collection[str] = (),
        pinned_keys: Collection[str] = (),
        limit: int | None = None,
        filter: Filter | None = None,
        kinds: Collection[str] = (),
        tags: Collection[str] = (),
        occurred: TimeRange | None = None,
        min_score: float | None = None,
        min_relevance: float | None = None,
        weights: Weights | None = None,
        half_lives: Mapping[str, timedelta] | None = None,
        if_fingerprint: str | None = None,
        latency_budget: timedelta | None = None,
        at_least_as_fresh: str | None = None,
        timeout: float | None = None,
    ) -> Brief:
        """Pack the best forms of the best memories into a text for the prompt, never over its budget.

        `budget_tokens` (default 1,200) counts all of the text, by the counter `encoding` (`o200k_base` by
        default; see `count_tokens`). `format` is how the text is written (default Markdown). With `sections`
        it has a part for each of them, in their order, and a memory that no section takes is left out.
        `pinned_ids`, then `pinned_keys`, stand first whatever the query is. `limit` is how many memories are
        considered (default 64). `if_fingerprint` names a brief that you still hold: when the text would be
        the same, the answer is `not_modified` and has none. The other arguments are as in `search`. The same
        state and arguments give the same bytes.
        """
        call = self._calls.brief(
            query,
            vector=vector,
            budget_tokens=budget_tokens,
            encoding=encoding,
            format=format,
            sections=sections,
            pinned_ids=pinned_ids,
            pinned_keys=pinned_keys,
            limit=limit,
            filter=filter,
            kinds=kinds,
            tags=tags,
            occurred=occurred,
            min_score=min_score,
            min_relevance=min_relevance,
            weights=weights,
            half_lives=half_lives,
            if_fingerprint=if_fingerprint,
            latency_budget=latency_budget,
            at_least_as_fresh=at_least_as_fresh,
        )
        return self._run(call, timeout)

    def stats(self, *, timeout: float | None = None) -> NamespaceStats:
        """Count what the namespace holds."""
        return self._run(self._calls.stats(), timeout)

    def _run(self, call: _calls.Call[T], timeout: float | None) -> T:
        return self._client._run(call, timeout)

    def __repr__(self) -> str:
        return f"Namespace({', '.join(map(repr, self.segments))})"
