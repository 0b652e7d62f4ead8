"""What a user sees: the names, and that both clients are one."""

import asyncio
import inspect
import threading
import tomllib
from pathlib import Path
from typing import Any, get_type_hints

import grpc
import pytest
import recalld
from recalld import AsyncClient, AsyncNamespace, AsyncSearchStream, Client, Namespace, SearchStream
from recalld._channel import channel_options
from recalld.v1 import memory_service_pb2, memory_service_pb2_grpc

PAIRS = [(Client, AsyncClient), (Namespace, AsyncNamespace)]


def public(cls: type) -> dict[str, Any]:
    return {name: member for name, member in vars(cls).items() if not name.startswith("_")}


@pytest.mark.parametrize(("blocking", "awaited"), PAIRS)
def test_both_clients_are_the_same_but_for_await(blocking: type, awaited: type) -> None:
    assert public(blocking).keys() == public(awaited).keys()
    for name, member in public(blocking).items():
        other = public(awaited)[name]
        assert inspect.getdoc(member) == inspect.getdoc(other), name
        if isinstance(member, property):
            continue
        one, two = inspect.signature(member), inspect.signature(other)
        assert one.parameters == two.parameters, name
        if name in {"namespace", "search_stream"}:
            assert not inspect.iscoroutinefunction(other)
        else:
            assert one.return_annotation == two.return_annotation, name
            assert inspect.iscoroutinefunction(other), name
    assert inspect.signature(blocking).parameters.keys() == inspect.signature(awaited).parameters.keys()


def test_both_streams_are_the_same_but_for_await() -> None:
    blocking, awaited = public(SearchStream), public(AsyncSearchStream)
    assert blocking.keys() == awaited.keys()
    for name, member in blocking.items():
        assert inspect.signature(member).parameters == inspect.signature(awaited[name]).parameters, name


def test_dir_shows_what_is_exported_and_no_more() -> None:
    assert dir(recalld) == sorted(recalld.__all__)
    assert all(hasattr(recalld, name) for name in recalld.__all__)
    assert [name for name in recalld.__all__ if name.startswith("_")] == ["__version__"]


def test_everything_is_documented() -> None:
    for name in recalld.__all__:
        member = getattr(recalld, name)
        assert name == "__version__" or inspect.getdoc(member), name
        if inspect.isclass(member):
            for method in public(member).values():
                assert not callable(method) or inspect.getdoc(method), (name, method)


@pytest.mark.parametrize(
    "name", [name for name in recalld.__all__ if inspect.isclass(getattr(recalld, name))]
)
def test_annotations_can_be_resolved(name: str) -> None:
    get_type_hints(getattr(recalld, name))


def test_the_version_is_that_of_the_distribution() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert recalld.__version__ == project["project"]["version"]


async def test_the_user_agent_names_the_client(client: Any, sidecar: Any, answer: Any) -> None:
    await answer(client.stats())
    assert sidecar.asked[0].user_agent.startswith(f"recalld-python/{recalld.__version__} ")


def test_the_authority_is_not_the_path_of_the_socket() -> None:
    # gRPC does not show the authority to a servicer.
    authority = ("grpc.default_authority", "localhost")
    assert authority in channel_options("unix:/run/recalld.sock")
    assert authority not in channel_options("localhost:7777")


@pytest.mark.parametrize(
    "target",
    ["unix:/run/x.sock", "unix:///run/x.sock", "unix:x.sock", "localhost:1", "[::1]:7777", "dir:/run/x"],
)
async def test_targets(target: str) -> None:
    for made in (Client(target), AsyncClient(target)):
        assert repr(made) == f"{type(made).__name__}({target!r})"
        closing = made.close()
        if closing is not None:
            await closing


@pytest.mark.parametrize(
    "target",
    [
        "",
        "localhost",
        "unix:",
        "unix://run/x.sock",
        "http://localhost:1",
        "dns:///localhost:1",
        "::1:80",
        "/run/x",
        "dir:",
        "dir:~no-such-user/data",
        "dir:/a\0b",
    ],
)
@pytest.mark.parametrize("made", [Client, AsyncClient])
def test_other_targets_are_refused(made: Any, target: str) -> None:
    with pytest.raises(recalld.InvalidArgument) as caught:
        made(target)
    assert caught.value.field == "target"


@pytest.mark.parametrize("made", [Client, AsyncClient])
@pytest.mark.parametrize(("argument", "value"), [("timeout", 0), ("timeout", -1), ("retries", -1)])
def test_settings_are_checked(made: Any, argument: str, value: float) -> None:
    with pytest.raises(recalld.InvalidArgument) as caught:
        made("localhost:1", **{argument: value})
    assert caught.value.field == argument


async def test_a_namespace_shows_its_path(alice: Any) -> None:
    assert alice.segments == ("acme", "user", "alice")
    assert repr(alice).endswith("Namespace('acme', 'user', 'alice')")


def test_a_namespace_is_made_of_texts() -> None:
    with Client("localhost:1") as client, pytest.raises(recalld.InvalidArgument) as caught:
        client.namespace(["acme", "user"])  # type: ignore[arg-type]
    assert caught.value.field == "namespace.segments"


async def test_a_closed_client_says_so(client: Any, alice: Any, answer: Any) -> None:
    await answer(client.close())
    with pytest.raises(RuntimeError, match="closed"):
        await answer(alice.search("q"))


async def test_a_client_closes_with_its_block(sidecar: Any) -> None:
    with Client(sidecar.target) as blocking:
        blocking.stats()
    with pytest.raises(RuntimeError):
        blocking.stats()
    async with AsyncClient(sidecar.target) as awaited:
        await awaited.stats()
    with pytest.raises(RuntimeError):
        await awaited.stats()


async def test_closing_ends_the_calls_in_flight(sidecar: Any) -> None:
    asked = threading.Event()

    def never(requests: Any) -> Any:
        next(requests)
        asked.set()
        yield from requests

    for made in (Client, AsyncClient):
        asked.clear()
        sidecar.will_stream(never)
        client = made(sidecar.target)
        stream: Any = client.namespace("a").search_stream()
        lost = stream.submit("q")
        await asyncio.to_thread(asked.wait)
        closing = client.close()
        if closing is not None:
            await closing
        with pytest.raises(recalld.RecalldError) as caught:
            await (lost if isinstance(lost, asyncio.Task) else asyncio.wrap_future(lost))
        assert caught.value.code is grpc.StatusCode.CANCELLED


def test_an_async_client_may_be_made_before_the_loop(sidecar: Any) -> None:
    client = AsyncClient(sidecar.target)

    async def use() -> recalld.StoreStats:
        async with client:
            return await client.stats()

    assert asyncio.run(use()).memories == 0


async def test_calls_can_overlap(sidecar: Any) -> None:
    async with AsyncClient(sidecar.target) as client:
        answers = await asyncio.gather(*(client.namespace(str(n)).write("x") for n in range(20)))
    assert len(answers) == 20
    assert {request.namespace.segments[0] for request in sidecar.requests} == {str(n) for n in range(20)}


def test_the_generated_stubs_work_without_the_client(sidecar: Any) -> None:
    with grpc.insecure_channel(sidecar.target) as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        stub.Search(memory_service_pb2.SearchRequest(query="q"), timeout=5)
    assert sidecar.requests[0].query == "q"
