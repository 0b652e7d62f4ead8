"""The way to a sidecar: a channel of gRPC, in either of its interfaces.

This module must never repeat a call, nor look into a message.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import grpc.aio

from ._channel import Connection
from ._transport import AsyncStream, CallFailed, Stream

# ruff: noqa: ASYNC109 - the server is told the deadline, which a timeout around the call could not do
_DETAILS_TRAILER = "grpc-status-details-bin"


class GrpcTransport:
    """Connects with the first call."""

    def __init__(self, connection: Connection) -> None:
        self._metadata = connection.metadata
        self._channel = connection.channel(grpc)
        self._callables: dict[str, Any] = {}

    def open(self) -> None:
        """Do nothing: connecting belongs to a call."""

    def call(self, path: str, request: bytes, timeout: float) -> bytes:
        """Make one attempt of a call."""
        call = self._callables.get(path)
        if call is None:
            call = self._callables.setdefault(path, self._channel.unary_unary(path))
        try:
            answer: bytes = call(request, timeout=timeout, metadata=self._metadata)
        except grpc.RpcError as failed:
            raise _call_failed(failed) from failed
        except ValueError:
            raise _closed() from None
        return answer

    def stream(self, path: str, requests: Iterator[bytes]) -> Stream:
        """Open a stream."""
        try:
            return _GrpcStream(self._channel.stream_stream(path)(requests, metadata=self._metadata))
        except ValueError:
            raise _closed() from None

    def close(self) -> None:
        """Close the channel and end the calls in flight."""
        self._channel.close()


class AsyncGrpcTransport:
    """Connects with the first call, and belongs to its event loop."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._channel: Any = None
        self._callables: dict[str, Any] = {}

    async def open(self) -> None:
        """Do nothing: connecting belongs to a call."""

    async def call(self, path: str, request: bytes, timeout: float) -> bytes:
        """Make one attempt of a call."""
        call = self._callables.get(path)
        if call is None:
            call = self._callables[path] = self._connected().unary_unary(path)
        try:
            answer: bytes = await call(request, timeout=timeout, metadata=self._connection.metadata)
        except grpc.RpcError as failed:
            raise _call_failed(failed) from failed
        except asyncio.CancelledError:
            if _task_is_cancelled():
                raise
            raise _cancelled() from None
        except grpc.aio.UsageError:
            raise _closed() from None
        return answer

    def stream(self, path: str, requests: AsyncIterator[bytes]) -> AsyncStream:
        """Open a stream."""
        try:
            call = self._connected().stream_stream(path)
            return _AsyncGrpcStream(call(requests, metadata=self._connection.metadata))
        except grpc.aio.UsageError:
            raise _closed() from None

    async def close(self) -> None:
        """Close the channel and end the calls in flight."""
        if self._channel is not None:
            await self._channel.close()

    def _connected(self) -> Any:
        # A channel belongs to the event loop in which it is made; a client may be made before there is one.
        if self._channel is None:
            self._channel = self._connection.channel(grpc.aio)
        return self._channel


class _GrpcStream:
    def __init__(self, call: Any) -> None:
        self._call = call

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._call
        except grpc.RpcError as failed:
            raise _call_failed(failed) from failed

    def cancel(self) -> None:
        self._call.cancel()


class _AsyncGrpcStream:
    def __init__(self, call: Any) -> None:
        self._call = call

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for message in self._call:
                yield message
        except grpc.RpcError as failed:
            raise _call_failed(failed) from failed
        except asyncio.CancelledError:
            if _task_is_cancelled():
                raise
            raise _cancelled() from None

    def cancel(self) -> None:
        self._call.cancel()


def _task_is_cancelled() -> bool:
    """Tell a cancellation of the task from one of the call alone, for which gRPC raises the same."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _closed() -> RuntimeError:
    """Say what gRPC means when somebody else closed its channel meanwhile."""
    return RuntimeError("this client is closed")


def _cancelled() -> CallFailed:
    return CallFailed(grpc.StatusCode.CANCELLED, "the call was cancelled", b"")


def _call_failed(failed: Any) -> CallFailed:
    # The two interfaces of gRPC give trailers of different types; both are pairs.
    trailers = dict(failed.trailing_metadata() or ())
    return CallFailed(failed.code(), failed.details() or "", trailers.get(_DETAILS_TRAILER, b""))
