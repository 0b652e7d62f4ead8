"""The client for code that blocks.

Thin on purpose: every call is made in `_calls`, repeated by `_retry` and sent by a `_transport`, and the
asyncio client in `_async_client` is the same but for `await`. Nothing that both need may be written here.
"""

import time
from collections.abc import Callable, Collection, Iterable
from types import TracebackType
from typing import Self, TypeVar

from . import _calls
from ._arguments import Tls
from ._namespace import Namespace
from ._retry import Attempts, Policy
from ._status import error_from
from ._stream import Way
from ._targets import transport
from ._tokens import Tokens
from ._transport import CallFailed
from ._types import StoreStats, TokenCounts

T = TypeVar("T")


class Client:
    """A connection to a sidecar, for code that blocks. Safe to share between threads.

        with Client("unix:/run/recalld.sock") as client:
            alice = client.namespace("acme", "user", "alice")

    `target` is `unix:/path` or `host:port`; or `dir:/path`, which opens a data directory in this process, with
    the default settings of a sidecar, and needs the package `recalld-sidecar`. Only one process can have a
    directory; another gets Unavailable, with the address where the first serves it. Fork before it is opened.

    `timeout` is the deadline of a call in seconds, all its attempts together, when the call does not say its
    own. `retries` is how often a call is repeated, at most, when the sidecar is unavailable or asks to come
    back later; a write repeated so is still one write. Connects, or opens the directory, with the first call.

    A sidecar neither encrypts nor checks keys; these are for a proxy before one. `tls` encrypts: True, or a
    `Tls` with files of your own. `api_key` is sent with each call as `authorization: Bearer`; InvalidArgument
    where that would leave the host without TLS.
    """

    def __init__(
        self,
        target: str,
        *,
        timeout: float = 5.0,
        retries: int = 3,
        tls: bool | Tls = False,
        api_key: str | None = None,
    ) -> None:
        self._target = target
        self._policy = Policy(timeout=timeout, retries=retries)
        self._tokens = Tokens()
        self._sleep: Callable[[float], None] = time.sleep
        self._transport = transport(target, tls=tls, api_key=api_key)
        self._closed = False

    def namespace(self, *segments: str) -> Namespace:
        """Bind a namespace, such as `client.namespace("acme", "user", "alice")`; asks the server nothing."""
        return Namespace(self, _calls.NamespaceCalls(segments, self._tokens))

    def count_tokens(
        self, texts: Collection[str], *, encoding: str | None = None, timeout: float | None = None
    ) -> TokenCounts:
        """Count the tokens of texts, up to 1,000 of them.

        `encoding` names the counter: `o200k_base` (default) or `cl100k_base`, which are exact; a tokenizer
        that the sidecar is configured with, exact too; or `approximate`, which reads no vocabulary and counts
        high rather than low.
        """
        return self._run(_calls.count_tokens(texts, encoding), timeout)

    def stats(self, *, timeout: float | None = None) -> StoreStats:
        """Count what the store holds."""
        return self._run(_calls.store_stats(), timeout)

    def close(self) -> None:
        """Close the connection and end the calls in flight. The client cannot be used again.

        A directory is let go of when the calls in hand have finished, and no other client of this process has
        it open.
        """
        if not self._closed:
            self._closed = True
            self._transport.close()

    def _run(self, call: _calls.Call[T], timeout: float | None) -> T:
        self._ready()
        return self._run_until(self._policy.deadline(timeout), call)

    def _run_all(self, calls: Iterable[_calls.Call[None]], timeout: float | None) -> None:
        """Make calls one after another, all within one deadline."""
        self._ready()
        deadline = self._policy.deadline(timeout)
        for call in calls:
            self._run_until(deadline, call)

    def _run_until(self, deadline: float, call: _calls.Call[T]) -> T:
        attempts = Attempts(call, self._policy, self._tokens, deadline)
        while True:
            self._check_open()
            try:
                response = self._transport.call(attempts.path, attempts.request, attempts.remaining())
            except CallFailed as failed:
                self._sleep(attempts.pause(failed))
            else:
                return attempts.answer(response)

    def _way(self) -> Way:
        return Way(self._transport, self._policy, self._tokens, self._ready)

    def _ready(self) -> None:
        """Open what must be open, in time that belongs to no call."""
        self._check_open()
        try:
            self._transport.open()
        except CallFailed as failed:
            raise error_from(failed) from failed.__cause__

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this client is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Client({self._target!r})"
