"""A client reads its own writes, and never goes back."""

from typing import Any

import grpc
import pytest
import recalld
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from recalld._tokens import Tokens
from recalld.v1 import memory_service_pb2


def wrote(token: str) -> memory_service_pb2.WriteResponse:
    return memory_service_pb2.WriteResponse(receipts=[memory_service_pb2.Receipt()], token=token)


def found(token: str) -> memory_service_pb2.SearchResponse:
    return memory_service_pb2.SearchResponse(token=token)


def sent(sidecar: Any) -> list[str]:
    requests = [asked.request for asked in sidecar.asked if asked.method != "Write"]
    return [getattr(request, "search", request).at_least_as_fresh for request in requests]


async def test_every_read_carries_the_token_of_the_write(
    client: Any, alice: Any, sidecar: Any, answer: Any
) -> None:
    sidecar.will(found(""), wrote("w1"))
    await answer(alice.search("q"))
    await answer(alice.write("x"))
    bob = client.namespace("acme", "user", "bob")
    sidecar.will(
        found("w1"),
        memory_service_pb2.GetResponse(token="w1"),
        memory_service_pb2.BriefResponse(token="w1"),
        memory_service_pb2.WhyNotResponse(token="r2"),
    )
    await answer(alice.search("q"))
    await answer(bob.get(["i"]))
    await answer(alice.brief("q"))
    await answer(alice.why_not("q", key="k"))
    await answer(alice.search("q"))
    assert sent(sidecar) == ["", "w1", "w1", "w1", "w1", "r2"]


async def test_reads_do_not_go_back(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will(found("r1"), found("r2"))
    for _ in range(3):
        await answer(alice.search("q"))
    assert sent(sidecar) == ["", "r1", "r2"]


async def test_a_delete_counts_as_a_write_unless_dry(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will(
        memory_service_pb2.DeleteResponse(token="d1"),
        memory_service_pb2.DeleteResponse(token="dry"),
        found("d1"),
    )
    await answer(alice.delete(["i"]))
    await answer(alice.delete(["i"], dry_run=True))
    await answer(alice.search("q"))
    assert sidecar.asked[-1].request.at_least_as_fresh == "d1"


async def test_a_token_of_ones_own_is_sent_and_not_remembered(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will(wrote("w1"), found("older"), found("other"))
    await answer(alice.write("x"))
    await answer(alice.search("q", at_least_as_fresh=""))
    await answer(alice.search("q", at_least_as_fresh="theirs"))
    await answer(alice.search("q"))
    assert sent(sidecar) == ["", "theirs", "w1"]


async def test_a_token_of_another_store_is_said_once_and_forgotten(
    alice: Any, sidecar: Any, answer: Any
) -> None:
    sidecar.will(wrote("w1"))
    await answer(alice.write("x"))
    sidecar.fail(
        grpc.StatusCode.FAILED_PRECONDITION,
        "another store",
        error_details_pb2.ErrorInfo(domain="recalld", reason="TOKEN_OF_ANOTHER_STORE"),
    )
    with pytest.raises(recalld.FailedPrecondition):
        await answer(alice.search("q"))
    await answer(alice.search("q"))
    assert sent(sidecar) == ["w1", ""]


async def test_a_failed_call_is_not_remembered(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will(wrote("w1"))
    await answer(alice.write("x"))
    sidecar.fail(grpc.StatusCode.INTERNAL, "no")
    with pytest.raises(recalld.Internal):
        await answer(alice.write("y"))
    await answer(alice.search("q"))
    assert sent(sidecar) == ["w1"]


def test_a_read_that_began_before_a_write_does_not_replace_its_token() -> None:
    tokens = Tokens()
    before = tokens.newest
    tokens.wrote("w1")
    tokens.read(before, "r1")
    assert tokens.newest == "w1"
    tokens.refused(before)
    assert tokens.newest == "w1"
