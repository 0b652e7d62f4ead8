"""Callers in processes of their own, so that the server is measured and not one client's Python."""

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from tests.support.sidecar import connect

if TYPE_CHECKING:
    import grpc

SECONDS = 60
"""Deadline of a call."""


@dataclass(frozen=True)
class Target:
    """What is called: a method at an address, with these requests by turns."""

    address: str
    method: str
    requests: Sequence[bytes]


class Callers:
    """Processes that make calls when told, all at once."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        self._connections = connections

    def __len__(self) -> int:
        return len(self._connections)

    def calls_a_second(self, target: str, calls: int) -> float:
        """Let each caller make so many calls, one after the other, and return what all made a second."""
        start = time.perf_counter()
        for connection in self._connections:
            connection.send((target, calls))
        for connection in self._connections:
            connection.recv()
        return len(self._connections) * calls / (time.perf_counter() - start)


@contextmanager
def running_callers(count: int, targets: dict[str, Target]) -> Iterator[Callers]:
    """Run caller processes that know these targets."""
    context = multiprocessing.get_context("spawn")
    ends = [context.Pipe() for _ in range(count)]
    processes = [context.Process(target=_run, args=(theirs, targets), daemon=True) for _, theirs in ends]
    for process in processes:
        process.start()
    callers = Callers([ours for ours, _ in ends])
    try:
        for target in targets:
            # Connects, and waits for the process to be there.
            callers.calls_a_second(target, 1)
        yield callers
    finally:
        for ours, theirs in ends:
            ours.close()
            theirs.close()
        for process in processes:
            process.terminate()
            process.join()


def stub(channel: Any, method: str) -> "grpc.UnaryUnaryMultiCallable[bytes, bytes]":
    """Return a callable from the request's bytes to the answer's, as the generated stubs make them."""
    callable_: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(method)
    return callable_


def _run(connection: Connection, targets: dict[str, Target]) -> None:
    channels = {name: connect(target.address) for name, target in targets.items()}
    stubs = {name: stub(channels[name], target.method) for name, target in targets.items()}
    while True:
        name, calls = connection.recv()
        requests = targets[name].requests
        for index in range(calls):
            stubs[name](requests[index % len(requests)], timeout=SECONDS)
        connection.send(None)
