"""The ways to a store, as the calls see them: serialised requests in, serialised answers out.

There are two, a channel of gRPC (`_grpc`) and the engine in this process (`_embedded`), each for both clients.
Whatever fails on the way is a `CallFailed`; nothing here knows what a call means or when it is repeated.
"""

from collections.abc import AsyncIterator, Iterator
from typing import Protocol

import grpc

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class CallFailed(Exception):  # noqa: N818 - it is what happened, and never reaches a user
    """A call was not answered: its gRPC status code, what happened, and the serialised google.rpc.Status.

    The status is empty when nobody made one, as when a sidecar cannot be reached. The exception of what failed
    below is the cause.
    """

    def __init__(self, code: grpc.StatusCode, message: str, status: bytes) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status

    @classmethod
    def of(cls, number: int, message: str, status: bytes) -> "CallFailed":
        """Make it from the number of a code, as the contract has it."""
        return cls(_CODES.get(number, grpc.StatusCode.UNKNOWN), message, status)


class Stream(Protocol):
    """The answers of a call that sends and receives many messages; iterating may raise CallFailed."""

    def __iter__(self) -> Iterator[bytes]: ...
    def cancel(self) -> None:
        """End it now, from any thread."""


class Transport(Protocol):
    """A way to a store for code that blocks; safe to use from many threads."""

    def open(self) -> None:
        """Get ready where that takes time that belongs to no call; may be called often. Raises CallFailed."""

    def call(self, path: str, request: bytes, timeout: float) -> bytes:
        """Make one attempt of a call, of so many seconds at most. Raises CallFailed."""

    def stream(self, path: str, requests: Iterator[bytes]) -> Stream:
        """Open a stream. Another thread takes from `requests`, whose end lets the answers end."""

    def close(self) -> None:
        """Let go of everything; nothing can be called any more."""


class AsyncStream(Protocol):
    """As `Stream`, for asyncio."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...
    def cancel(self) -> None:
        """End it now."""


class AsyncTransport(Protocol):
    """As `Transport`, for asyncio; belongs to the event loop of its first call."""

    async def open(self) -> None:
        """Get ready, as in `Transport`."""

    async def call(self, path: str, request: bytes, timeout: float) -> bytes:  # noqa: ASYNC109
        """Make one attempt, as in `Transport`."""

    def stream(self, path: str, requests: AsyncIterator[bytes]) -> AsyncStream:
        """Open a stream; a task takes from `requests`, whose end lets the answers end."""

    async def close(self) -> None:
        """Let go of everything, as in `Transport`."""
