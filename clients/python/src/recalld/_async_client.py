"""The client for asyncio.

The same as the one in `_client`, which a test holds it to, but for `await`. Nothing that both need may be
written here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable
from types import TracebackType
from typing import Self, TypeVar

from . import _calls
from ._arguments import Tls
from ._async_namespace import AsyncNamespace
from ._async_stream import AsyncWay
from ._retry import Attempts, Policy
from ._status import error_from
from ._targets import async_transport
from ._tokens import Tokens
from ._transport import CallFailed
from ._types import StoreStats, TokenCounts

# ruff: noqa: ASYNC109 - the server is told the deadline, which a timeout around the call could not do
T = TypeVar("T")


class AsyncClient:
    """A connection to a sidecar, for asyncio. Belongs to the event loop of its first call.

        async with AsyncClient("unix:/run/recalld.sock") as client:
            alice = client.namespace("acme", "user", "alice")

    `target` is `unix:/path` or `host:port`; or `dir:/path`, which opens a data directory in this process, with
    the default settings of a sidecar, and needs the package `recalld-sidecar`. Only one process can have a
    directory; another gets Unavailable, with the address where the first serves it. Fork before it is opened.

    `timeout` is the deadline of a call in seconds, all its attempts together, when the call does not say its
    own. `retries` is how often a call is repeated, at most, when the sidecar is unavailable or asks to come
    back later; a write repeated so is still one write. Connects, or opens the directory, with the first call.

    A sidecar neither encrypts nor checks keys; these are for a proxy before one. `tls` encrypts: True, or a
    `Tls` with files of your own. `api_key` is sent with each call as `authorization: Bearer`; InvalidArgument
    where that would leave the host without TLS.
    """

    def __init__(
        self,
        target: str,
        *,
        timeout: float = 5.0,
        retries: int = 3,
        tls: bool | Tls = False,
        api_key: str | None = None,
    ) -> None:
        self._target = target
        self._policy = Policy(timeout=timeout, retries=retries)
        self._tokens = Tokens()
        self._sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
        self._transport = async_transport(target, tls=tls, api_key=api_key)
        self._closed = False

    def namespace(self, *segments: str) -> AsyncNamespace:
        """Bind a namespace, such as `client.namespace("acme", "user", "alice")`; asks the server nothing."""
        return AsyncNamespace(self, _calls.NamespaceCalls(segments, self._tokens))

    async def count_tokens(
        self, texts: Collection[str], *, encoding: str | None = None, timeout: float | None = None
    ) -> TokenCounts:
        """Count the tokens of texts, up to 1,000 of them.

        `encoding` names the counter: `o200k_base` (default) or `cl100k_base`, which are exact; a tokenizer
        that the sidecar is configured with, exact too; or `approximate`, which reads no vocabulary and counts
        high rather than low.
        """
        return await self._run(_calls.count_tokens(texts, encoding), timeout)

    async def stats(self, *, timeout: float | None = None) -> StoreStats:
        """Count what the store holds."""
        return await self._run(_calls.store_stats(), timeout)

    async def close(self) -> None:
        """Close the connection and end the calls in flight. The client cannot be used again.

        A directory is let go of when the calls in hand have finished, and no other client of this process has
        it open.
        """
        if not self._closed:
            self._closed = True
            await self._transport.close()

    async def _run(self, call: _calls.Call[T], timeout: float | None) -> T:
        await self._ready()
        return await self._run_until(self._policy.deadline(timeout), call)

    async def _run_all(self, calls: Iterable[_calls.Call[None]], timeout: float | None) -> None:
        """Make calls one after another, all within one deadline."""
        await self._ready()
        deadline = self._policy.deadline(timeout)
        for call in calls:
            await self._run_until(deadline, call)

    async def _run_until(self, deadline: float, call: _calls.Call[T]) -> T:
        attempts = Attempts(call, self._policy, self._tokens, deadline)
        while True:
            self._check_open()
            try:
                response = await self._transport.call(attempts.path, attempts.request, attempts.remaining())
            except CallFailed as failed:
                await self._sleep(attempts.pause(failed))
            else:
                return attempts.answer(response)

    def _way(self) -> AsyncWay:
        return AsyncWay(self._transport, self._policy, self._tokens, self._ready)

    async def _ready(self) -> None:
        """Open what must be open, in time that belongs to no call."""
        self._check_open()
        try:
            await self._transport.open()
        except CallFailed as failed:
            raise error_from(failed) from failed.__cause__

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this client is closed")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"AsyncClient({self._target!r})"
