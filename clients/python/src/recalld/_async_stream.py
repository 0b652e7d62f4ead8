"""A stream of searches for asyncio: as `_stream`, with tasks in the place of threads."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

from google.protobuf.message import DecodeError

from . import _searches
from ._arguments import Query
from ._calls import Call, NamespaceCalls
from ._errors import RecalldError
from ._methods import METHODS
from ._retry import Policy
from ._status import error_from
from ._stream import MOST_IN_HAND
from ._tokens import Tokens
from ._transport import AsyncStream, AsyncTransport, CallFailed
from ._types import Search
from .v1 import memory_service_pb2


@dataclass(frozen=True, slots=True)
class AsyncWay:
    """What a stream needs of its client."""

    transport: AsyncTransport
    policy: Policy
    tokens: Tokens
    ready: Callable[[], Awaitable[None]]
    """Opens what must be open; raises when the client is closed."""


@dataclass(frozen=True, slots=True)
class _InHand:
    search: Call[Search]
    answer: asyncio.Future[Search]


@dataclass(slots=True)
class _Link:
    """One call of SearchStream, from its start until it breaks or is done."""

    outbox: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    """None ends it."""
    in_hand: dict[int, _InHand] = field(default_factory=dict)
    """By tag."""
    answers: AsyncStream | None = None
    reader: asyncio.Task[None] | None = None


class AsyncSearchStream:
    """Searches over one long stream, without waiting for each answer. Made by `AsyncNamespace.search_stream`.

        async with alice.search_stream() as stream:
            seat, meal = stream.submit("which seat?"), stream.submit("which meal?")
            print((await seat)[0].summary, (await meal)[0].summary)
            async for found in stream.search_many(questions):
                ...

    Up to 32 searches are in hand at a time; the others wait for a place. When the stream breaks, the searches
    in hand fail, mostly with Unavailable, and the next one opens it anew; nothing is asked twice. Leaving the
    block waits for the answers that are due.
    """

    def __init__(self, calls: NamespaceCalls, way: AsyncWay, timeout: float | None) -> None:
        way.policy.deadline(timeout)
        self._calls = calls
        self._way = way
        self._timeout = timeout
        self._tags = itertools.count(1)
        self._room = asyncio.Semaphore(MOST_IN_HAND)
        self._tasks: set[asyncio.Task[Search]] = set()
        self._link: _Link | None = None
        self._closed = False

    def submit(self, query: str | Query) -> asyncio.Task[Search]:
        """Ask a search and return at once; the task has its answer, or raises what `search` would raise.

        Cancelling the task gives up the answer.
        """
        if self._closed:
            raise RuntimeError("this stream is closed")
        task = asyncio.get_running_loop().create_task(self._search(query))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def search_many(self, queries: Iterable[str | Query]) -> AsyncIterator[Search | RecalldError]:
        """Ask any number of searches, and give what became of each, in order; takes no more than it has room for.

        One that fails stands as its error and does not end the others.
        """
        asked: deque[asyncio.Task[Search]] = deque()
        for query in _searches.several(queries):
            asked.append(self.submit(query))
            if len(asked) == MOST_IN_HAND:
                yield await _outcome(asked.popleft())
        while asked:
            yield await _outcome(asked.popleft())

    async def close(self) -> None:
        """Take no more searches, and wait for the answers that are due, until their deadlines at most."""
        self._closed = True
        await asyncio.gather(*self._tasks, return_exceptions=True)
        link = self._link
        if link is not None:
            assert link.answers is not None
            assert link.reader is not None
            link.answers.cancel()
            await link.reader

    async def _search(self, query: str | Query) -> Search:
        policy = self._way.policy
        await self._way.ready()
        search = _searches.search(self._calls, query)
        deadline = policy.deadline(self._timeout)
        try:
            async with asyncio.timeout(policy.remaining(deadline)), self._room:
                link = self._link or self._connect()
                tag = next(self._tags)
                asked = _InHand(search, asyncio.get_running_loop().create_future())
                link.in_hand[tag] = asked
                link.outbox.put_nowait(_searches.stream_request(tag, search, policy.remaining(deadline)))
                try:
                    return await asked.answer
                finally:
                    link.in_hand.pop(tag, None)
        except TimeoutError:
            raise _searches.too_late() from None

    def _connect(self) -> _Link:
        link = _Link()
        link.answers = self._way.transport.stream(METHODS["SearchStream"].path, _requests(link))
        link.reader = asyncio.get_running_loop().create_task(self._read(link))
        self._link = link
        return link

    async def _read(self, link: _Link) -> None:
        assert link.answers is not None
        error: Callable[[], RecalldError] = _searches.stream_ended
        try:
            async for message in link.answers:
                self._answer(link, message)
        except CallFailed as failed:
            error = partial(error_from, failed)
        except DecodeError:
            error = _searches.unreadable_answer
        finally:
            # Also when the client is closed, which cancels what waits on its channel.
            if self._link is link:
                self._link = None
            link.answers.cancel()
            # Who takes the requests would wait for ever: a call that has ended does not end it.
            link.outbox.put_nowait(None)
            for asked in link.in_hand.values():
                if not asked.answer.done():
                    asked.answer.set_exception(error())

    def _answer(self, link: _Link, message: bytes) -> None:
        response = memory_service_pb2.SearchStreamResponse.FromString(message)
        asked = link.in_hand.get(response.tag)
        if asked is None or asked.answer.done():
            return  # Its deadline has passed, or nobody waits for it any more.
        outcome = _searches.outcome(asked.search, response.result, self._way.tokens)
        if isinstance(outcome, RecalldError):
            asked.answer.set_exception(outcome)
        else:
            asked.answer.set_result(outcome)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()


async def _requests(link: _Link) -> AsyncIterator[bytes]:
    while (message := await link.outbox.get()) is not None:
        yield message


async def _outcome(asked: asyncio.Task[Search]) -> Search | RecalldError:
    try:
        return await asked
    except RecalldError as error:
        return error
