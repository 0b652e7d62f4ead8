"""A call is repeated when that is safe and may help, within its deadline, and is still one call."""

from typing import Any

import grpc
import pytest
import recalld
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2  # type: ignore[import-untyped]
from recalld._retry import Policy

Code = grpc.StatusCode


def retry_after(milliseconds: int) -> Any:
    return error_details_pb2.RetryInfo(retry_delay=Duration(nanos=milliseconds * 1_000_000))


CALLS = {
    "write": lambda n: n.write("x"),
    "write_many": lambda n: n.write_many([recalld.Item("x")]),
    "search": lambda n: n.search("q"),
    "search_many": lambda n: n.search_many(["q"]),
    "get": lambda n: n.get(["i"]),
    "delete": lambda n: n.delete(["i"]),
    "brief": lambda n: n.brief("q"),
    "stats": lambda n: n.stats(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_unavailable_is_repeated_with_the_same_request(
    alice: Any, sidecar: Any, answer: Any, clock: Any, call: Any
) -> None:
    sidecar.fail(Code.UNAVAILABLE, "starting")
    await answer(call(alice))
    first, second = sidecar.asked
    assert first.request == second.request
    assert clock.pauses == [0.02]


@pytest.mark.parametrize(("call", "count"), [("write", 1), ("delete", 1), ("write_many", 2)])
async def test_every_write_has_its_own_idempotency_key(
    alice: Any, sidecar: Any, answer: Any, call: str, count: int
) -> None:
    for _ in range(1 + count):
        await answer(CALLS[call](alice))
    keys = [request.idempotency_key for request in sidecar.requests]
    assert len(set(keys)) == 1 + count
    assert all(len(key) == 32 for key in keys)


async def test_pauses_double_and_attempts_end(alice: Any, sidecar: Any, answer: Any, clock: Any) -> None:
    for number in range(5):
        sidecar.fail(Code.UNAVAILABLE, f"attempt {number}")
    with pytest.raises(recalld.Unavailable, match="attempt 3"):
        await answer(alice.search("q"))
    assert clock.pauses == [0.02, 0.04, 0.08]
    assert len(sidecar.asked) == 4


async def test_pauses_are_spread_from_zero(client: Any, alice: Any, sidecar: Any, answer: Any) -> None:
    bounds: list[tuple[float, float]] = []

    def spread(least: float, most: float) -> float:
        bounds.append((least, most))
        return least

    client._policy = Policy(spread=spread)
    for _ in range(2):
        sidecar.fail(Code.UNAVAILABLE, "starting")
    await answer(alice.search("q"))
    assert bounds == [(0.0, 0.02), (0.0, 0.04)]


async def test_exhausted_waits_as_long_as_it_is_told(
    alice: Any, sidecar: Any, answer: Any, clock: Any
) -> None:
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", retry_after(300))
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", retry_after(7))
    await answer(alice.write("x"))
    assert clock.pauses == [0.3, 0.007]
    assert len({request.idempotency_key for request in sidecar.requests}) == 1


@pytest.mark.parametrize(
    "code",
    [
        code
        for code in grpc.StatusCode
        if code not in (Code.OK, Code.UNAVAILABLE)  # RESOURCE_EXHAUSTED without a RetryInfo is in it
    ],
)
async def test_other_errors_are_not_repeated(
    alice: Any, sidecar: Any, answer: Any, clock: Any, code: grpc.StatusCode
) -> None:
    sidecar.fail(code, "no")
    with pytest.raises(recalld.RecalldError) as caught:
        await answer(alice.write("x"))
    assert caught.value.code is code
    assert (len(sidecar.asked), clock.pauses) == (1, [])


async def test_the_deadline_holds_all_attempts(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", retry_after(900))
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", retry_after(900))
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", retry_after(900))
    # The client's clock stands but for its pauses: 20, 19.1, 18.2 seconds; the fourth attempt is answered.
    await answer(alice.search("q", timeout=20))
    limits = [20.0, 19.1, 18.2, 17.3]
    assert [asked.remaining <= limit + 0.1 for asked, limit in zip(sidecar.asked, limits, strict=True)] == [
        True
    ] * 4
    assert sidecar.asked[0].remaining > limits[-1]


async def test_the_default_deadline_is_5_seconds(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(alice.search("q"))
    assert 0 < sidecar.asked[0].remaining <= 5.1


async def test_no_attempt_starts_after_the_deadline(
    alice: Any, sidecar: Any, answer: Any, clock: Any
) -> None:
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "busy", retry_after(600))
    sidecar.fail(Code.RESOURCE_EXHAUSTED, "still busy", retry_after(600))
    with pytest.raises(recalld.ResourceExhausted, match="still busy"):
        await answer(alice.search("q", timeout=1.2))
    assert clock.pauses == [0.6]


@pytest.mark.parametrize("made", [recalld.Client, recalld.AsyncClient])
async def test_retries_can_be_switched_off(sidecar: Any, answer: Any, made: Any) -> None:
    client = made(sidecar.target, retries=0)
    sidecar.fail(Code.UNAVAILABLE, "starting")
    with pytest.raises(recalld.Unavailable):
        await answer(client.namespace("a").get(["i"]))
    await answer(client.close())
    assert len(sidecar.asked) == 1


async def test_nobody_there_is_unavailable(tmp_path: Any) -> None:
    with recalld.Client(f"unix:{tmp_path}/none", retries=0) as client, pytest.raises(recalld.Unavailable):
        client.stats()
    async with recalld.AsyncClient(f"unix:{tmp_path}/none", retries=0) as client:
        with pytest.raises(recalld.Unavailable):
            await client.stats()
