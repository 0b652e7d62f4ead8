"""Many searches in one call: each has its own answer or error, and no more than a call takes are in one."""

from datetime import datetime
from typing import Any

import grpc
import pytest
import recalld
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from recalld import Query, TimeRange
from recalld.v1 import memory_service_pb2 as pb

Code = grpc.StatusCode
ALICE = ["acme", "user", "alice"]


def answered(token: str = "", **fields: Any) -> Any:
    return pb.SearchResult(response=pb.SearchResponse(token=token, **fields))


def failed(code: grpc.StatusCode, reason: str) -> Any:
    status = status_pb2.Status(code=code.value[0], message="no")
    status.details.add().Pack(error_details_pb2.ErrorInfo(domain="recalld", reason=reason))
    status.details.add().Pack(
        error_details_pb2.BadRequest(
            field_violations=[error_details_pb2.BadRequest.FieldViolation(field="limit", description="wrong")]
        )
    )
    failure = pb.SearchFailure(code=code.value[0], message="no", status=status.SerializeToString())
    return pb.SearchResult(failure=failure)


async def test_each_search_is_sent_as_by_itself(alice: Any, sidecar: Any, answer: Any) -> None:
    query = Query("q", limit=3, explain=True, kinds=["fact"], at_least_as_fresh="t")
    await answer(alice.search_many(["text", query, Query("far", namespace=["acme", "team"])]))
    await answer(alice.search("text"))
    await answer(alice.search("q", limit=3, explain=True, kinds=["fact"], at_least_as_fresh="t"))
    (batch, *single) = sidecar.requests
    assert list(batch.searches[:2]) == single
    assert batch.searches[2].namespace.segments == ["acme", "team"]
    assert batch.searches[2].query == "far"


async def test_each_has_its_own_answer_or_error(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will(
        pb.BatchSearchResponse(
            results=[
                answered(hits=[{"id": "a"}]),
                failed(Code.INVALID_ARGUMENT, "INVALID_FIELD"),
                answered(hits=[{"id": "b"}]),
                pb.SearchResult(),
            ]
        )
    )
    first, wrong, third, silent, missing = await answer(alice.search_many(list("abcde")))
    assert (first[0].id, third[0].id) == ("a", "b")
    assert isinstance(wrong, recalld.InvalidArgument)
    assert (wrong.field, wrong.reason, wrong.message) == ("limit", "INVALID_FIELD", "no")
    assert isinstance(silent, recalld.Internal)
    assert isinstance(missing, recalld.Internal)


async def test_an_answer_that_python_cannot_hold_is_an_error_of_its_search(
    alice: Any, sidecar: Any, answer: Any
) -> None:
    never = pb.SearchResult(response=pb.SearchResponse(hits=[{"occurred_at": {"seconds": 10**15}}]))
    sidecar.will(pb.BatchSearchResponse(results=[never, answered(hits=[{"id": "b"}])]))
    first, second = await answer(alice.search_many(["a", "b"]))
    assert isinstance(first, recalld.Internal)
    assert second[0].id == "b"


async def test_one_text_is_not_many(alice: Any, sidecar: Any, answer: Any) -> None:
    with pytest.raises(recalld.InvalidArgument) as caught:
        await answer(alice.search_many("which seat?"))
    assert caught.value.field == "queries"
    assert sidecar.asked == []


async def test_what_cannot_be_sent_does_not_lose_the_others(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will(pb.BatchSearchResponse(results=[answered(hits=[{"id": "a"}]), answered(hits=[{"id": "b"}])]))
    naive = TimeRange(start=datetime(2031, 5, 12))  # noqa: DTZ001
    queries = ["first", "\ud800", Query("q", occurred=naive), 7, "last"]
    first, lone, early, number, last = await answer(alice.search_many(queries))
    assert [search.query for search in sidecar.requests[0].searches] == ["first", "last"]
    assert (first[0].id, last[0].id) == ("a", "b")
    assert [error.field for error in (lone, early, number)] == ["query", "occurred.start", "query"]


@pytest.mark.parametrize("queries", [[], [7]])
async def test_nothing_to_ask_is_not_asked(alice: Any, sidecar: Any, answer: Any, queries: list[Any]) -> None:
    assert len(await answer(alice.search_many(queries))) == len(queries)
    assert sidecar.asked == []


async def test_more_than_a_call_takes_are_several_calls(alice: Any, sidecar: Any, answer: Any) -> None:
    sizes = [256, 256, 88]
    numbers = iter(range(600))
    for size in sizes:
        results = [answered(hits=[{"id": str(next(numbers))}]) for _ in range(size)]
        sidecar.will(pb.BatchSearchResponse(results=results))
    found = await answer(alice.search_many(str(number) for number in range(600)))
    assert [len(request.searches) for request in sidecar.requests] == sizes
    assert [hits[0].id for hits in found] == [str(number) for number in range(600)]
    assert [search.query for request in sidecar.requests for search in request.searches] == [
        hits[0].id for hits in found
    ]


async def test_all_calls_share_the_deadline(alice: Any, sidecar: Any, answer: Any, clock: Any) -> None:
    wait = error_details_pb2.RetryInfo(retry_delay=Duration(seconds=12))
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", wait)
    sidecar.will(pb.BatchSearchResponse())
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", wait)
    with pytest.raises(recalld.ResourceExhausted):
        await answer(alice.search_many(["q"] * 300, timeout=20))
    # The second call had 8 seconds left, less than its pause.
    assert clock.pauses == [12]
    assert len(sidecar.asked) == 3


async def test_a_call_that_fails_raises(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.fail(Code.UNIMPLEMENTED, "too old")
    with pytest.raises(recalld.Unimplemented):
        await answer(alice.search_many(["q"]))


async def test_tokens_go_with_each_search(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will(pb.WriteResponse(receipts=[pb.Receipt()], token="w1"))
    await answer(alice.write("x"))
    sidecar.will(pb.BatchSearchResponse(results=[answered(token="r2"), answered(token="other")]))
    await answer(alice.search_many(["q", Query("q", at_least_as_fresh="theirs")]))
    sidecar.will(pb.BatchSearchResponse(results=[failed(Code.FAILED_PRECONDITION, "TOKEN_OF_ANOTHER_STORE")]))
    (error,) = await answer(alice.search_many(["q"]))
    assert isinstance(error, recalld.FailedPrecondition)
    await answer(alice.search_many(["q"]))
    carried = [[search.at_least_as_fresh for search in request.searches] for request in sidecar.requests[1:]]
    assert carried == [["w1", "theirs"], ["r2"], [""]]
