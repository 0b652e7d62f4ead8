"""A scripted sidecar behind a real gRPC server, and both clients to call it with.

The double answers what a test tells it to and keeps what it was asked, as it came over the wire. It knows no
rule of the product: those are tested against the real sidecar.
"""

import asyncio
import inspect
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message
from google.rpc import status_pb2  # type: ignore[import-untyped]
from recalld import AsyncClient, Client
from recalld.v1 import admin_service_pb2, admin_service_pb2_grpc, memory_service_pb2, memory_service_pb2_grpc


@dataclass
class Failure:
    """An error to answer with."""

    code: grpc.StatusCode
    message: str
    details: tuple[Message, ...] = ()
    trailer: bytes | None = None

    def abort(self, context: grpc.ServicerContext) -> NoReturn:
        trailer = self.trailer
        if trailer is None and self.details:
            status = status_pb2.Status(code=self.code.value[0], message=self.message)
            for detail in self.details:
                packed = AnyMessage()
                packed.Pack(detail)
                status.details.append(packed)
            trailer = status.SerializeToString()
        if trailer is not None:
            context.set_trailing_metadata((("grpc-status-details-bin", trailer),))
        context.abort(self.code, self.message)
        raise AssertionError


@dataclass
class Asked:
    """One attempt as the server saw it."""

    method: str
    request: Any
    remaining: float
    user_agent: str
    authorization: str


class Sidecar(memory_service_pb2_grpc.MemoryServiceServicer, admin_service_pb2_grpc.AdminServiceServicer):
    """Answers each attempt with the next of `answers`, or an empty message when there is none."""

    def __init__(self) -> None:
        self.target = ""
        self.asked: list[Asked] = []
        self.answers: deque[Message | Failure] = deque()
        self.streams: deque[Callable[[Iterator[Any]], Iterable[Message | Failure]]] = deque()

    def will(self, *answers: Message | Failure) -> None:
        self.answers.extend(answers)

    def fail(
        self, code: grpc.StatusCode, message: str, *details: Message, trailer: bytes | None = None
    ) -> None:
        self.answers.append(Failure(code, message, details, trailer))

    def will_stream(self, answers: Callable[[Iterator[Any]], Iterable[Message | Failure]]) -> None:
        """Answer the next stream with what this makes of its requests; a Failure ends it."""
        self.streams.append(answers)

    @property
    def requests(self) -> list[Any]:
        return [asked.request for asked in self.asked]

    def _answer(self, request: Message, context: grpc.ServicerContext, default: Any) -> Any:
        method = type(request).__name__.removesuffix("Request")
        headers = {key: str(value) for key, value in context.invocation_metadata()}
        agent, authorization = headers.get("user-agent", ""), headers.get("authorization", "")
        self.asked.append(Asked(method, request, context.time_remaining() or 0.0, agent, authorization))
        answer = self.answers.popleft() if self.answers else default
        if isinstance(answer, Failure):
            answer.abort(context)
        return answer

    def Write(self, request: Any, context: Any) -> Any:  # noqa: N802
        receipts = [memory_service_pb2.Receipt(id=f"id{index}") for index, _ in enumerate(request.items)]
        return self._answer(request, context, memory_service_pb2.WriteResponse(receipts=receipts))

    def Search(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, memory_service_pb2.SearchResponse())

    def BatchSearch(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, memory_service_pb2.BatchSearchResponse())

    def SearchStream(self, requests: Iterator[Any], context: Any) -> Any:  # noqa: N802
        for answer in self.streams.popleft()(requests):
            if isinstance(answer, Failure):
                answer.abort(context)
            yield answer

    def Get(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, memory_service_pb2.GetResponse())

    def Delete(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, memory_service_pb2.DeleteResponse())

    def Brief(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, memory_service_pb2.BriefResponse())

    def WhyNot(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, memory_service_pb2.WhyNotResponse())

    def CountTokens(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, memory_service_pb2.CountTokensResponse())

    def GetStats(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer(request, context, admin_service_pb2.GetStatsResponse())


@dataclass
class Clock:
    """Time that passes only while a client waits, and what it waited."""

    now: float = 0.0

    def __post_init__(self) -> None:
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def sleep_async(self, seconds: float) -> None:
        self.sleep(seconds)


def server_of(double: Sidecar) -> grpc.Server:
    """A server that asks the double, and has no port yet."""
    server = grpc.server(ThreadPoolExecutor(max_workers=2), options=[("grpc.max_receive_message_length", -1)])
    memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(double, server)
    admin_service_pb2_grpc.add_AdminServiceServicer_to_server(double, server)
    return server


@pytest.fixture
def sidecar() -> Iterator[Sidecar]:
    double = Sidecar()
    server = server_of(double)
    # Not pytest's own directory: a socket's path has at most 107 bytes.
    with tempfile.TemporaryDirectory() as directory:
        double.target = f"unix:{Path(directory) / 'socket'}"
        server.add_insecure_port(double.target)
        server.start()
        yield double
        server.stop(grace=None).wait()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[Client, AsyncClient], ids=["sync", "async"])
async def client(request: pytest.FixtureRequest, sidecar: Sidecar, clock: Clock) -> AsyncIterator[Any]:
    """Either client, whose time is `clock` and whose pauses are the longest that they may be."""
    made = request.param(sidecar.target)
    made._sleep = clock.sleep if request.param is Client else clock.sleep_async
    made._policy = replace(made._policy, clock=lambda: clock.now, spread=lambda _, most: most)
    yield made
    closing = made.close()
    if closing is not None:
        await closing


@pytest.fixture
def alice(client: Any) -> Any:
    return client.namespace("acme", "user", "alice")


@pytest.fixture
def answer() -> Callable[[Any], Any]:
    """Give the answer of a call or a stream, whichever client made it: `await answer(alice.get(...))`."""

    async def resolve(made: Any) -> Any:
        if isinstance(made, Future):
            return await asyncio.wrap_future(made)
        # The blocking client has already answered; the double has threads of its own.
        await asyncio.sleep(0)
        return await made if inspect.isawaitable(made) else made

    return resolve
