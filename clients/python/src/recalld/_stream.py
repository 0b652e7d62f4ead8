"""A stream of searches for code that blocks: many in hand at a time on one call, answered as they are ready.

The asyncio one is in `_async_stream`; what becomes of a search is in `_searches`. No lock may be held while a
future is settled: that runs code of the user's.
"""

import itertools
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
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
from ._tokens import Tokens
from ._transport import CallFailed, Stream, Transport
from ._types import Search
from .v1 import memory_service_pb2

MOST_IN_HAND = 32
"""Searches that are asked and not answered: what the server works on at a time, and as many on the way."""


@dataclass(frozen=True, slots=True)
class Way:
    """What a stream needs of its client."""

    transport: Transport
    policy: Policy
    tokens: Tokens
    ready: Callable[[], None]
    """Opens what must be open; raises when the client is closed."""


@dataclass(frozen=True, slots=True)
class _InHand:
    search: Call[Search]
    future: Future[Search]
    deadline: float


@dataclass(slots=True)
class _Link:
    """One call of SearchStream, from its start until it breaks or is done."""

    outbox: deque[bytes] = field(default_factory=deque)
    in_hand: dict[int, _InHand] = field(default_factory=dict)
    """By tag."""
    alarm: float = math.inf
    """When somebody will look next whether a deadline has passed."""
    ended: bool = False
    answers: Stream | None = None


class SearchStream:
    """Searches over one long stream, without waiting for each answer. Made by `Namespace.search_stream`.

        with alice.search_stream() as stream:
            seat, meal = stream.submit("which seat?"), stream.submit("which meal?")
            print(seat.result()[0].summary, meal.result()[0].summary)
            for found in stream.search_many(questions):
                ...

    Safe to share between threads. Up to 32 searches are in hand at a time; `submit` waits for a place. When the
    stream breaks, the searches in hand fail, mostly with Unavailable, and the next one opens it anew; nothing
    is asked twice. Leaving the block waits for the answers that are due.
    """

    def __init__(self, calls: NamespaceCalls, way: Way, timeout: float | None) -> None:
        way.policy.deadline(timeout)
        self._calls = calls
        self._way = way
        self._timeout = timeout
        self._tags = itertools.count(1)
        # One lock, and a condition for each that waits: they are woken for every search.
        self._lock = threading.Lock()
        self._room = threading.Condition(self._lock)
        self._outgoing = threading.Condition(self._lock)
        self._alarm = threading.Condition(self._lock)
        self._link: _Link | None = None
        self._closed = False

    def submit(self, query: str | Query) -> Future[Search]:
        """Ask a search and return at once; the future has its answer, or raises what `search` would raise.

        Waits only while 32 searches are in hand. The futures cannot be cancelled.
        """
        future: Future[Search] = Future()
        future.set_running_or_notify_cancel()
        try:
            self._way.ready()
            search = _searches.search(self._calls, query)
            self._send(_InHand(search, future, self._way.policy.deadline(self._timeout)))
        except RecalldError as error:
            future.set_exception(error)
        return future

    def search_many(self, queries: Iterable[str | Query]) -> Iterator[Search | RecalldError]:
        """Ask any number of searches, and give what became of each, in order; takes no more than it has room for.

        One that fails stands as its error and does not end the others.
        """
        asked: deque[Future[Search]] = deque()
        for query in _searches.several(queries):
            asked.append(self.submit(query))
            if len(asked) == MOST_IN_HAND:
                yield _outcome(asked.popleft())
        while asked:
            yield _outcome(asked.popleft())

    def close(self) -> None:
        """Take no more searches, and wait for the answers that are due, until their deadlines at most."""
        with self._lock:
            self._closed = True
            self._room.notify_all()
            link = self._link
            self._room.wait_for(lambda: link is None or not link.in_hand)
        if link is not None:
            self._end(link, _searches.stream_ended)

    def _send(self, search: _InHand) -> None:
        policy = self._way.policy
        with self._lock:
            has_room = self._room.wait_for(self._has_room, policy.remaining(search.deadline))
            if self._closed:
                raise RuntimeError("this stream is closed")
            if not has_room:
                raise _searches.too_late()
            link = self._link or self._connect()
            tag = next(self._tags)
            message = _searches.stream_request(tag, search.search, policy.remaining(search.deadline))
            link.in_hand[tag] = search
            link.outbox.append(message)
            self._outgoing.notify()
            if search.deadline < link.alarm:
                self._alarm.notify()

    def _has_room(self) -> bool:
        return self._closed or self._link is None or len(self._link.in_hand) < MOST_IN_HAND

    def _connect(self) -> _Link:
        link = _Link()
        link.answers = self._way.transport.stream(METHODS["SearchStream"].path, self._requests(link))
        self._link = link
        # Two threads: the one that waits for answers cannot look at the clock.
        for work in (self._read, self._watch):
            threading.Thread(target=work, args=(link,), name="recalld-search-stream", daemon=True).start()
        return link

    def _requests(self, link: _Link) -> Iterator[bytes]:
        """Give what is to be sent; the transport takes it, in a thread of its own."""
        while True:
            with self._lock:
                self._outgoing.wait_for(lambda: link.outbox or link.ended)
                if link.ended:
                    return
                message = link.outbox.popleft()
            yield message

    def _read(self, link: _Link) -> None:
        assert link.answers is not None
        error: Callable[[], RecalldError] = _searches.stream_ended
        try:
            for message in link.answers:
                self._answer(link, message)
        except CallFailed as failed:
            error = partial(error_from, failed)
        except DecodeError:
            error = _searches.unreadable_answer
        finally:
            self._end(link, error)

    def _answer(self, link: _Link, message: bytes) -> None:
        response = memory_service_pb2.SearchStreamResponse.FromString(message)
        with self._lock:
            asked = link.in_hand.pop(response.tag, None)
            self._room.notify_all()
        if asked is None:
            return  # Its deadline has passed.
        outcome = _searches.outcome(asked.search, response.result, self._way.tokens)
        if isinstance(outcome, RecalldError):
            asked.future.set_exception(outcome)
        else:
            asked.future.set_result(outcome)

    def _watch(self, link: _Link) -> None:
        """Fail each search whose deadline passes."""
        while True:
            with self._lock:
                if link.ended:
                    return
                now = self._way.policy.clock()
                late = [tag for tag, asked in link.in_hand.items() if asked.deadline <= now]
                if not late:
                    link.alarm = min((asked.deadline for asked in link.in_hand.values()), default=math.inf)
                    self._alarm.wait(None if link.alarm == math.inf else link.alarm - now)
                    continue
                overdue = [link.in_hand.pop(tag) for tag in late]
                self._room.notify_all()
            for asked in overdue:
                asked.future.set_exception(_searches.too_late())

    def _end(self, link: _Link, error: Callable[[], RecalldError]) -> None:
        with self._lock:
            link.ended = True
            if self._link is link:
                self._link = None
            lost = list(link.in_hand.values())
            link.in_hand.clear()
            for waiting in (self._room, self._outgoing, self._alarm):
                waiting.notify_all()
        assert link.answers is not None
        link.answers.cancel()
        for asked in lost:
            asked.future.set_exception(error())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _outcome(future: Future[Search]) -> Search | RecalldError:
    error = future.exception()
    if error is None:
        return future.result()
    if isinstance(error, RecalldError):
        return error
    raise error
