"""The way to a store in this process: the engine of recalld-sidecar, without a server.

One engine a directory, shared by all clients of the process. The sidecar's package is imported only when a
directory is opened, so that a client of a server needs none of it. Nothing here may fork, nor use an engine
that a parent process opened: its threads have stayed there.
"""

import asyncio
import os
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakSet

import grpc

from ._transport import CallFailed

# ruff: noqa: ASYNC109 - the engine is told the deadline, which a timeout around the call could not do
_IDENTITY = "embedded"

_CALL_THREADS = 32
"""Calls of an asyncio client that are answered at a time; others wait within their deadlines."""
_STREAM_THREADS = 16
"""Searches of a stream that are answered at a time, as many as a sidecar works on."""


def needs_sidecar(what: str) -> ModuleNotFoundError:
    """Make the error for a missing package."""
    return ModuleNotFoundError(
        f"{what} needs the package recalld-sidecar, which is not installed: pip install recalld-sidecar",
        name="recalld_sidecar",
    )


@dataclass(slots=True)
class _Engine:
    handlers: Mapping[str, Callable[[str, str, bytes, float | None], bytes]]
    failure: type[Any]
    close: Callable[[], None]
    process: int
    users: int = 0


_lock = threading.Lock()
_engines: dict[Path, _Engine] = {}


def _take(directory: Path) -> _Engine:
    """Open a directory, or share it with those of this process who have it."""
    with _lock:
        engine = _engines.get(directory)
        if engine is None:
            engine = _engines[directory] = _open(directory)
        _check_process(engine)
        engine.users += 1
        return engine


def _give_back(directory: Path, engine: _Engine) -> None:
    with _lock:
        engine.users -= 1
        if engine.users == 0 and engine.process == os.getpid():
            del _engines[directory]
            engine.close()


def _open(directory: Path) -> _Engine:
    try:
        core = import_module("recalld_sidecar._core")
        config = import_module("recalld_sidecar.config")
        admin = import_module("recalld_sidecar.services.admin")
    except ModuleNotFoundError as error:
        raise needs_sidecar(f"a client of dir:{directory}") from error
    settings = config.Config(data_dir=str(directory))
    try:
        opened = core.Core(str(directory), str(settings.model_dir))
    except core.CoreError as failed:
        raise _call_failed(failed) from failed
    methods = [*core.Core.methods(), *core.Core.stream_methods()]
    return _Engine(
        handlers=dict.fromkeys(methods, opened.dispatch) | admin.AdminService(opened).handlers(),
        failure=core.CoreError,
        close=opened.close,
        process=os.getpid(),
    )


def _check_process(engine: _Engine) -> None:
    if engine.process != os.getpid():
        raise RuntimeError(
            "this process was forked from the one that opened the store: open it after forking, in one process"
        )


def _call_failed(failed: Any) -> CallFailed:
    return CallFailed.of(failed.code, failed.message, failed.status)


def _closed() -> RuntimeError:
    return RuntimeError("this client is closed")


def _cancelled() -> CallFailed:
    """Make what a stream ends with when its client is closed."""
    return CallFailed(grpc.StatusCode.CANCELLED, str(_closed()), b"")


class EmbeddedTransport:
    """Opens the directory before the first call, and holds it until it is closed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._engine: _Engine | None = None
        self._streams: WeakSet[_EmbeddedStream] = WeakSet()
        self._closed = False

    def open(self) -> None:
        """Open the directory."""
        with self._lock:
            if self._closed:
                raise _closed()
            if self._engine is None:
                self._engine = _take(self._directory)
            _check_process(self._engine)

    def call(self, path: str, request: bytes, timeout: float | None) -> bytes:
        """Answer a call in this thread."""
        engine = self._engine
        if engine is None:
            raise _closed()
        handler = engine.handlers.get(path)
        if handler is None:
            message = f"the recalld-sidecar that is installed is older than this client: it has no {path}"
            raise CallFailed(grpc.StatusCode.UNIMPLEMENTED, message, b"")
        try:
            return handler(path, _IDENTITY, request, timeout)
        except engine.failure as failed:
            raise _call_failed(failed) from failed

    def stream(self, path: str, requests: Iterator[bytes]) -> "_EmbeddedStream":
        """Open a stream."""
        stream = _EmbeddedStream(lambda request: self.call(path, request, None), requests)
        self._streams.add(stream)
        return stream

    def close(self) -> None:
        """Let the calls in hand finish, and let go of the directory when no other client has it."""
        with self._lock:
            self._closed = True
            engine, self._engine = self._engine, None
        if engine is not None:
            _give_back(self._directory, engine)
        for stream in tuple(self._streams):
            stream.end(_cancelled())


class AsyncEmbeddedTransport:
    """Answers calls in threads of its own, so that the event loop never waits for the engine."""

    def __init__(self, directory: Path) -> None:
        self._embedded = EmbeddedTransport(directory)
        self._threads = ThreadPoolExecutor(_CALL_THREADS, "recalld-call")
        self._streams: WeakSet[_AsyncEmbeddedStream] = WeakSet()
        self._opened = False

    async def open(self) -> None:
        """Open the directory."""
        if self._opened:
            # Takes no time now. In a fork it must not be asked of the threads, which have stayed with the parent.
            self._embedded.open()
        else:
            await self._in_thread(self._embedded.open)
            self._opened = True

    async def call(self, path: str, request: bytes, timeout: float | None) -> bytes:
        """Answer a call; the time that it waits for a thread counts."""
        ends = None if timeout is None else time.monotonic() + timeout

        def answer() -> bytes:
            left = None if ends is None else max(0.0, ends - time.monotonic())
            return self._embedded.call(path, request, left)

        answered: bytes = await self._in_thread(answer)
        return answered

    def stream(self, path: str, requests: AsyncIterator[bytes]) -> "_AsyncEmbeddedStream":
        """Open a stream."""
        stream = _AsyncEmbeddedStream(lambda request: self.call(path, request, None), requests)
        self._streams.add(stream)
        return stream

    async def close(self) -> None:
        """Let the calls in hand finish, and let go of the directory when no other client has it."""
        await self._in_thread(self._embedded.close)
        self._threads.shutdown(wait=False)
        for stream in tuple(self._streams):
            stream.end(_cancelled())

    async def _in_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class _EmbeddedStream:
    """Answers the requests of a stream in threads, each as soon as it is ready."""

    def __init__(self, answer: Callable[[bytes], bytes], requests: Iterator[bytes]) -> None:
        self._answer = answer
        self._answers: queue.SimpleQueue[bytes | CallFailed | None] = queue.SimpleQueue()
        self._slots = threading.Semaphore(_STREAM_THREADS)
        threading.Thread(target=self._feed, args=(requests,), name="recalld-stream", daemon=True).start()

    def __iter__(self) -> Iterator[bytes]:
        while (answer := self._answers.get()) is not None:
            if isinstance(answer, CallFailed):
                raise answer
            yield answer

    def cancel(self) -> None:
        """End the answers. Whoever gives the requests ends those."""
        self._answers.put(None)

    def end(self, failed: CallFailed) -> None:
        """End the answers with a failure."""
        self._answers.put(failed)

    def _feed(self, requests: Iterator[bytes]) -> None:
        with ThreadPoolExecutor(_STREAM_THREADS, "recalld-stream") as threads:
            for request in requests:
                self._slots.acquire()
                threads.submit(self._work, request)
        self._answers.put(None)

    def _work(self, request: bytes) -> None:
        try:
            self._answers.put(self._answer(request))
        except CallFailed as failed:
            self._answers.put(failed)
        except RuntimeError:
            self._answers.put(_cancelled())
        finally:
            self._slots.release()


class _AsyncEmbeddedStream:
    """As `_EmbeddedStream`, in the threads of its transport."""

    def __init__(self, answer: Callable[[bytes], Any], requests: AsyncIterator[bytes]) -> None:
        self._answer = answer
        self._answers: asyncio.Queue[bytes | CallFailed | None] = asyncio.Queue()
        self._slots = asyncio.Semaphore(_STREAM_THREADS)
        self._feeder = asyncio.get_running_loop().create_task(self._feed(requests))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (answer := await self._answers.get()) is not None:
            if isinstance(answer, CallFailed):
                raise answer
            yield answer

    def cancel(self) -> None:
        """End the requests and the answers."""
        self._feeder.cancel()

    def end(self, failed: CallFailed) -> None:
        """End the answers with a failure."""
        self._answers.put_nowait(failed)

    async def _feed(self, requests: AsyncIterator[bytes]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                async for request in requests:
                    await self._slots.acquire()
                    group.create_task(self._work(request))
        finally:
            self._answers.put_nowait(None)

    async def _work(self, request: bytes) -> None:
        try:
            self._answers.put_nowait(await self._answer(request))
        except CallFailed as failed:
            self._answers.put_nowait(failed)
        except RuntimeError:
            self._answers.put_nowait(_cancelled())
        finally:
            self._slots.release()
