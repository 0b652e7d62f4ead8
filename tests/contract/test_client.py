"""The client's calls on every way to a store, with both clients: what goes in comes out, and errors are the same."""

import asyncio
import inspect
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import recalld
from recalld import AsyncClient, Client, Item, Outcome, Query
from recalld.filters import field

from tests.contract.ways import WAYS, target_of

SECONDS = 60
MAY = datetime(2026, 5, 12, 9, 30, tzinfo=UTC)
SEAT = "Alice prefers aisle seats on long flights."


@pytest.fixture(scope="module", params=WAYS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with target_of(request.param, tmp_path_factory.mktemp("store") / "data") as reached:
        yield reached


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
async def client(request: pytest.FixtureRequest, target: str) -> AsyncIterator[Any]:
    made = request.param(target, timeout=SECONDS)
    yield made
    closing = made.close()
    if closing is not None:
        await closing


@pytest.fixture
def fresh(client: Any, request: pytest.FixtureRequest) -> Any:
    """A namespace of the test's own."""
    return client.namespace("contract", request.node.name)


@pytest.fixture
def answer() -> Callable[[Any], Any]:
    """Give the answer of a call or a stream, whichever client made it."""

    async def resolve(made: Any) -> Any:
        if isinstance(made, Future):
            return await asyncio.wrap_future(made)
        return await made if inspect.isawaitable(made) else made

    return resolve


async def test_a_memory_comes_back_as_it_was_written(fresh: Any, answer: Any) -> None:
    metadata = {"whole": 2**53 + 1, "real": 1.0, "yes": True, "when": MAY, "deep": {"list": [1, "x"]}}
    written = await answer(
        fresh.write(
            {"seat": "12A"},
            key="seat",
            kind="preference",
            summary="The seat.",
            tags=["b", "a"],
            metadata=metadata,
            importance=0.75,
            confidence=0.5,
            occurred_at=MAY,
            expires_at=datetime(2100, 1, 1, tzinfo=UTC),
            sources=[recalld.Source(uri="mail:7", speaker="Alice")],
            origin="agent:planner",
        )
    )
    assert (written.outcome, written.version) == (Outcome.STORED, 1)
    (memory,) = await answer(fresh.get([written.id]))
    assert memory.json() == {"seat": "12A"}
    assert memory.metadata == metadata
    assert {type(memory.metadata[name]) for name in ("whole", "real", "yes")} == {int, float, bool}
    assert (memory.key, memory.kind, memory.summary, memory.tags) == (
        "seat",
        "preference",
        "The seat.",
        ("a", "b"),
    )
    assert (memory.importance, memory.confidence, memory.occurred_at) == (0.75, 0.5, MAY)
    assert memory.sources == (recalld.Source(uri="mail:7", speaker="Alice"),)
    assert (memory.origin, memory.content_tokens) == ("agent:planner", written.content_tokens)


async def test_an_agent_reads_its_own_writes(client: Any, fresh: Any, answer: Any) -> None:
    receipts = await answer(fresh.write_many([Item(SEAT, key="seat"), Item("Alice is allergic to nuts.")]))
    assert [receipt.outcome for receipt in receipts] == [Outcome.STORED] * 2
    assert (await answer(fresh.write(SEAT, key="seat"))).outcome is Outcome.DUPLICATE
    found = await answer(fresh.search("which seat does she like?", limit=1))
    assert (found[0].key, found.degraded) == ("seat", ())
    brief = await answer(fresh.brief("seats", budget_tokens=200))
    assert "aisle" in brief.text
    assert (await answer(client.count_tokens([brief.text]))).total == brief.tokens <= 200
    assert (await answer(fresh.stats())).memories == 2
    assert (await answer(client.stats())).server_version
    deleted = await answer(fresh.delete(keys=["seat", "none"]))
    assert (deleted.deleted, deleted.missing_keys) == (1, ("none",))
    assert "seat" not in {hit.key for hit in await answer(fresh.search("seat"))}


async def test_a_filter_is_what_it_says(fresh: Any, answer: Any) -> None:
    await answer(
        fresh.write_many([Item(f"Flight {price}", metadata={"price": price}) for price in (90, 300)])
    )
    cheap = await answer(fresh.search("flight", filter=field("metadata.price").range(lt=100)))
    assert [hit.summary for hit in cheap] == ["Flight 90"]


async def test_errors_have_their_reasons(fresh: Any, answer: Any) -> None:
    with pytest.raises(recalld.InvalidArgument) as wrong:
        await answer(fresh.write("x", importance=2))
    assert (wrong.value.field, wrong.value.reason) == ("importance", "INVALID_FIELD")
    await answer(fresh.write(SEAT, key="seat"))
    with pytest.raises(recalld.Conflict) as conflict:
        await answer(fresh.write("Alice prefers windows.", key="seat", if_version=7))
    assert (conflict.value.current_version, conflict.value.reason) == (1, "VERSION_CONFLICT")
    await answer(fresh.write("once", idempotency_key="k"))
    with pytest.raises(recalld.AlreadyExists) as reused:
        await answer(fresh.write("other", idempotency_key="k"))
    assert reused.value.metadata == {"idempotency_key": "k"}
    with pytest.raises(recalld.InvalidArgument) as token:
        await answer(fresh.search("seat", at_least_as_fresh="no token"))
    assert token.value.field == "at_least_as_fresh"


async def test_many_searches_have_each_their_answer(client: Any, fresh: Any, answer: Any) -> None:
    team = client.namespace(*fresh.segments, "team")
    await answer(fresh.write(SEAT, key="seat"))
    await answer(team.write("The team meets on Mondays.", key="meeting"))
    queries = ["which seat?", Query("which seat?", limit=0), Query("when?", namespace=team.segments)]
    seat, wrong, meeting = await answer(fresh.search_many(queries))
    assert [hit.key for hit in seat] == ["seat"]
    assert isinstance(wrong, recalld.InvalidArgument)
    assert (wrong.field, wrong.reason) == ("limit", "INVALID_FIELD")
    assert [hit.key for hit in meeting] == ["meeting"]
    assert seat.token == meeting.token
    many = await answer(fresh.search_many(["which seat?"] * 300))
    assert [[hit.id for hit in found] for found in many] == [[seat[0].id]] * 300


async def test_searches_on_a_stream_find_their_answers(fresh: Any, answer: Any) -> None:
    names = [f"item{number}" for number in range(100)]
    await answer(fresh.write_many([Item(f"The {name} is on a shelf.", key=name) for name in names]))
    stream = fresh.search_stream()
    futures = [stream.submit(Query(name, limit=1)) for name in names[:40]]
    wrong = stream.submit(Query("x", limit=0))
    assert [(await answer(future))[0].key for future in futures] == names[:40]
    with pytest.raises(recalld.InvalidArgument) as caught:
        await answer(wrong)
    assert (caught.value.field, caught.value.reason) == ("limit", "INVALID_FIELD")
    # An own write is seen by what is asked after it.
    await answer(fresh.write("The lamp is on the floor.", key="lamp"))
    assert (await answer(stream.submit(Query("lamp", limit=1))))[0].key == "lamp"
    given = stream.search_many(Query(name, limit=1) for name in names)
    many = [one async for one in given] if isinstance(given, AsyncIterator) else list(given)
    assert [found[0].key for found in many] == names
    await answer(stream.close())


async def test_a_plan_says_what_ways_would_have_cost(fresh: Any, answer: Any) -> None:
    await answer(fresh.write_many([Item(f"Memory number {number}.") for number in range(20)]))
    plain, explained = await answer(fresh.search_many(["memory", Query("memory", explain=True)]))
    dense = {arm.name: arm for arm in explained.arms}["dense"]
    assert {arm.plan for arm in plain.arms} == {()}
    assert min(dense.plan, key=lambda way: way.cost).method == dense.method


async def test_a_budget_bounds_the_work(fresh: Any, answer: Any) -> None:
    await answer(fresh.write(SEAT, key="seat"))
    ample = timedelta(seconds=SECONDS)
    assert [hit.key for hit in await answer(fresh.search("seat", latency_budget=ample))] == ["seat"]
    assert "aisle" in (await answer(fresh.brief("seat", latency_budget=ample))).text
    (hurried,) = await answer(fresh.search_many([Query("seat", latency_budget=timedelta(microseconds=1))]))
    if isinstance(hurried, recalld.RecalldError):
        assert hurried.reason == "DEADLINE_EXCEEDED"
    else:
        assert {one.reason for one in hurried.degraded} == {"deadline"}
    with pytest.raises(recalld.InvalidArgument) as caught:
        await answer(fresh.search("seat", latency_budget=timedelta(0)))
    assert caught.value.field == "latency_budget"


async def test_calls_overlap(fresh: Any, answer: Any) -> None:
    if isinstance(fresh, recalld.Namespace):
        with ThreadPoolExecutor(16) as threads:
            receipts = list(threads.map(lambda number: fresh.write(f"Number {number}."), range(64)))
    else:
        receipts = await asyncio.gather(*(fresh.write(f"Number {number}.") for number in range(64)))
    assert len({receipt.id for receipt in receipts}) == 64
    assert (await answer(fresh.stats())).memories == 64


@pytest.mark.parametrize("way", WAYS)
def test_a_deadline_ends_a_wait(way: str, tmp_path: Path) -> None:
    """A copy of a store never reaches the token of what was written after it."""
    with Client(f"dir:{tmp_path / 'data'}", timeout=SECONDS) as client:
        client.namespace("a").write(SEAT)
    shutil.copytree(tmp_path / "data", tmp_path / "behind")
    with Client(f"dir:{tmp_path / 'data'}", timeout=SECONDS) as client:
        token = client.namespace("a").write("Alice moved to Lyon.").token
    with target_of(way, tmp_path / "behind") as reached, Client(reached, timeout=SECONDS) as client:
        alice = client.namespace("a")
        with pytest.raises(recalld.DeadlineExceeded) as caught:
            alice.search("seat", at_least_as_fresh=token, timeout=0.2)
        assert caught.value.reason in {"TOKEN_NOT_REACHED", ""}
        assert alice.search("seat", at_least_as_fresh="")[0].summary == SEAT


def test_a_client_that_another_thread_closes_says_so(target: str) -> None:
    client = Client(target, timeout=SECONDS)
    fresh = client.namespace("contract", "closing")
    started = threading.Event()

    def write() -> Exception:
        for number in range(1_000_000):
            try:
                fresh.write(f"Number {number}.")
            except (RuntimeError, recalld.RecalldError) as error:
                return error
            started.set()
        raise AssertionError("it was never told")

    with ThreadPoolExecutor(1) as threads:
        told = threads.submit(write)
        assert started.wait(SECONDS)
        client.close()
        error = told.result(SECONDS)
    if isinstance(error, recalld.RecalldError):
        assert error.code.name == "CANCELLED"
    else:
        assert str(error) == "this client is closed"
