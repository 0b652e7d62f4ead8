"""Searches on a stream: matched to their answers, bounded in number and time, and each with its own error."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from itertools import islice
from typing import Any

import grpc
import pytest
import recalld
from recalld import AsyncClient, Query
from recalld.v1 import memory_service_pb2 as pb

from .conftest import Failure
from .test_batches import failed

Code = grpc.StatusCode


def found(request: Any, **fields: Any) -> Any:
    """An answer whose hit has the query for its id."""
    response = pb.SearchResponse(hits=[{"id": request.search.query}], **fields)
    return pb.SearchStreamResponse(tag=request.tag, result=pb.SearchResult(response=response))


def each(requests: Iterator[Any]) -> Iterator[Any]:
    yield from map(found, requests)


@pytest.fixture
def listed() -> Callable[[Any], Any]:
    """Take everything from an iterator of either client."""

    async def take(given: Any) -> list[Any]:
        if isinstance(given, AsyncIterator):
            return [one async for one in given]
        return list(given)

    return take


@pytest.fixture
async def stream(alice: Any, answer: Any) -> AsyncIterator[Any]:
    opened = alice.search_stream()
    yield opened
    await answer(opened.close())


def ids(hits: Any) -> list[str]:
    return [hit.id for hit in hits]


async def test_answers_find_their_requests_in_any_order(stream: Any, sidecar: Any, answer: Any) -> None:
    def backwards(requests: Iterator[Any]) -> Iterator[Any]:
        asked = list(islice(requests, 3))
        yield pb.SearchStreamResponse(tag=999)
        yield from map(found, reversed(asked))
        yield found(asked[0])
        yield from each(requests)

    sidecar.will_stream(backwards)
    futures = [stream.submit(query) for query in ("a", Query("b"), "c")]
    assert [ids(await answer(future)) for future in futures] == [["a"], ["b"], ["c"]]
    assert ids(await answer(stream.submit("d"))) == ["d"]


async def test_one_error_is_one_searchs(stream: Any, sidecar: Any, answer: Any) -> None:
    def second_fails(requests: Iterator[Any]) -> Iterator[Any]:
        for number, request in enumerate(requests):
            answered = found(request)
            if number == 1:
                answered.result.CopyFrom(failed(Code.INVALID_ARGUMENT, "INVALID_FIELD"))
            yield answered

    sidecar.will_stream(second_fails)
    first, second, third, lone = [stream.submit(query) for query in ("a", "b", "c", "\ud800")]
    with pytest.raises(recalld.InvalidArgument) as caught:
        await answer(second)
    assert (caught.value.field, caught.value.reason) == ("limit", "INVALID_FIELD")
    with pytest.raises(recalld.InvalidArgument) as caught:
        await answer(lone)
    assert caught.value.field == "query"
    assert [ids(await answer(future)) for future in (first, third)] == [["a"], ["c"]]


async def test_many_are_answered_in_order_and_taken_as_there_is_room(
    stream: Any, sidecar: Any, listed: Any
) -> None:
    taken: list[str] = []
    in_hand: list[int] = []

    def queries() -> Iterator[str]:
        for number in range(96):
            taken.append(str(number))
            yield str(number)

    def by_32(requests: Iterator[Any]) -> Iterator[Any]:
        # It would wait for ever if there were not as many.
        while asked := list(islice(requests, 32)):
            in_hand.append(len(taken))
            yield from map(found, reversed(asked))

    sidecar.will_stream(by_32)
    assert [ids(hits) for hits in await listed(stream.search_many(queries()))] == [[name] for name in taken]
    assert in_hand[0] == 32
    assert len(in_hand) == 3


async def test_errors_stand_among_many(stream: Any, sidecar: Any, listed: Any) -> None:
    sidecar.will_stream(each)
    first, lone, last = await listed(stream.search_many(["a", "\ud800", "b"]))
    assert (ids(first), lone.field, ids(last)) == (["a"], "query", ["b"])


@pytest.mark.parametrize(
    ("budget", "sent"),
    [
        (None, (5, 0)),
        (timedelta(milliseconds=20), (0, 20_000_000)),
        (timedelta(seconds=9), (5, 0)),
        # The server refuses it.
        (timedelta(0), (0, 0)),
    ],
)
async def test_a_search_is_told_the_time_that_is_left(
    stream: Any, sidecar: Any, answer: Any, budget: timedelta | None, sent: tuple[int, int]
) -> None:
    asked: list[Any] = []

    def keep(requests: Iterator[Any]) -> Iterator[Any]:
        for request in requests:
            asked.append(request.search.latency_budget)
            yield found(request)

    sidecar.will_stream(keep)
    await answer(stream.submit(Query("q", latency_budget=budget)))
    assert [(length.seconds, length.nanos) for length in asked] == [sent]


async def test_a_search_without_an_answer_ends_with_its_time(sidecar: Any, client: Any, answer: Any) -> None:
    def first_too_late(requests: Iterator[Any]) -> Iterator[Any]:
        first, second = islice(requests, 2)
        yield from map(found, (first, second))

    client._policy = recalld._retry.Policy()
    sidecar.will_stream(first_too_late)
    stream = client.namespace("a").search_stream(timeout=0.2)
    with pytest.raises(recalld.DeadlineExceeded):
        await answer(stream.submit("a"))
    stream._timeout = 30
    assert ids(await answer(stream.submit("b"))) == ["b"]
    await answer(stream.close())


async def test_without_room_a_search_ends_with_its_time(sidecar: Any, client: Any, answer: Any) -> None:
    def never(requests: Iterator[Any]) -> Iterator[Any]:
        for _ in requests:
            yield from ()

    client._policy = recalld._retry.Policy()
    sidecar.will_stream(never)
    stream = client.namespace("a").search_stream(timeout=0.2)
    for future in [stream.submit("q") for _ in range(40)]:
        with pytest.raises(recalld.DeadlineExceeded):
            await answer(future)
    await answer(stream.close())


@pytest.mark.parametrize("end", [Failure(Code.UNAVAILABLE, "draining"), None], ids=["failed", "ended"])
async def test_a_broken_stream_fails_what_is_in_hand_and_is_opened_anew(
    stream: Any, sidecar: Any, answer: Any, end: Failure | None
) -> None:
    def breaks(requests: Iterator[Any]) -> Iterator[Any]:
        first, _, _ = islice(requests, 3)
        yield found(first)
        if end is not None:
            yield end

    sidecar.will_stream(breaks)
    first, second, third = [stream.submit(query) for query in "abc"]
    assert ids(await answer(first)) == ["a"]
    for lost in (second, third):
        with pytest.raises(recalld.Unavailable):
            await answer(lost)
    sidecar.will_stream(each)
    assert ids(await answer(stream.submit("d"))) == ["d"]


async def test_a_broken_stream_leaves_no_task(sidecar: Any) -> None:
    def breaks(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield Failure(Code.UNAVAILABLE, "draining")

    sidecar.will_stream(breaks)
    async with AsyncClient(sidecar.target) as client:
        before = asyncio.all_tasks()
        stream = client.namespace("a").search_stream()
        with pytest.raises(recalld.Unavailable):
            await stream.submit("a")
        await stream.close()
        if left := asyncio.all_tasks() - before:
            assert not (await asyncio.wait(left, timeout=10))[1]


async def test_an_answer_that_cannot_be_read_is_an_error_of_its_search(
    stream: Any, sidecar: Any, answer: Any
) -> None:
    def first_is_unreadable(requests: Iterator[Any]) -> Iterator[Any]:
        unreadable = found(next(requests))
        unreadable.result.response.hits[0].occurred_at.seconds = 10**15
        yield unreadable
        yield from each(requests)

    sidecar.will_stream(first_is_unreadable)
    with pytest.raises(recalld.Internal):
        await answer(stream.submit("a"))
    assert ids(await answer(stream.submit("b"))) == ["b"]


async def test_one_text_is_not_many(stream: Any, listed: Any) -> None:
    with pytest.raises(recalld.InvalidArgument) as caught:
        await listed(stream.search_many("which seat?"))
    assert caught.value.field == "queries"


async def test_what_ends_the_stream_is_said(stream: Any, sidecar: Any, answer: Any) -> None:
    def refuses(requests: Iterator[Any]) -> Iterator[Any]:
        next(requests)
        yield Failure(Code.UNIMPLEMENTED, "too old")

    sidecar.will_stream(refuses)
    with pytest.raises(recalld.Unimplemented, match="too old"):
        await answer(stream.submit("a"))


async def test_closing_waits_for_what_is_due(alice: Any, sidecar: Any, answer: Any) -> None:
    let_go = threading.Event()

    def late(requests: Iterator[Any]) -> Iterator[Any]:
        for request in requests:
            assert let_go.wait(30)
            yield found(request)

    sidecar.will_stream(late)
    stream = alice.search_stream()
    due = stream.submit("a")
    blocking = isinstance(stream, recalld.SearchStream)
    closing = asyncio.create_task(asyncio.to_thread(stream.close) if blocking else stream.close())
    while not stream._closed:  # noqa: ASYNC110 - a thread sets it
        await asyncio.sleep(0)
    assert not closing.done()
    with pytest.raises(RuntimeError, match="closed"):
        stream.submit("b")
    let_go.set()
    await closing
    assert ids(await answer(due)) == ["a"]
    await answer(stream.close())


async def test_a_closed_client_ends_its_streams(client: Any, alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will_stream(each)
    stream = alice.search_stream()
    await answer(stream.submit("a"))
    await answer(client.close())
    with pytest.raises(RuntimeError, match="client is closed"):
        await answer(stream.submit("b"))
    await answer(stream.close())


async def test_a_stream_that_is_not_used_asks_nothing(alice: Any, answer: Any) -> None:
    await answer(alice.search_stream().close())


async def test_a_timeout_is_checked_at_once(alice: Any) -> None:
    with pytest.raises(recalld.InvalidArgument) as caught:
        alice.search_stream(timeout=0)
    assert caught.value.field == "timeout"


async def test_tokens_go_with_each_search(alice: Any, stream: Any, sidecar: Any, answer: Any) -> None:
    carried: list[str] = []

    def tell(requests: Iterator[Any]) -> Iterator[Any]:
        for number, request in enumerate(requests):
            carried.append(request.search.at_least_as_fresh)
            yield found(request, token=f"r{number}")

    sidecar.will_stream(tell)
    await answer(stream.submit("a"))
    await answer(stream.submit("b"))
    sidecar.will(pb.WriteResponse(receipts=[pb.Receipt()], token="w1"))
    await answer(alice.write("x"))
    await answer(stream.submit(Query("c", at_least_as_fresh="theirs")))
    await answer(stream.submit("d"))
    assert carried == ["", "r0", "theirs", "w1"]


async def test_a_cancelled_task_gives_up_its_answer(sidecar: Any) -> None:
    asked = threading.Event()
    cancelled = threading.Event()

    def waits(requests: Iterator[Any]) -> Iterator[Any]:
        first = next(requests)
        asked.set()
        assert cancelled.wait(30)
        yield found(first)
        yield from each(requests)

    sidecar.will_stream(waits)
    async with AsyncClient(sidecar.target) as client, client.namespace("a").search_stream() as stream:
        task = stream.submit("a")
        await asyncio.to_thread(asked.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()
        assert ids(await stream.submit("b")) == ["b"]


async def test_futures_of_threads_cannot_be_cancelled(sidecar: Any) -> None:
    sidecar.will_stream(each)
    with recalld.Client(sidecar.target) as client, client.namespace("a").search_stream() as stream:
        future = stream.submit("a")
        assert not future.cancel()
        assert ids(future.result()) == ["a"]
