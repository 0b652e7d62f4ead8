"""Decides what happens after each attempt of a call: its answer, another attempt after a pause, or its error.

An own loop and not gRPC's service config, which cannot wait as long as a RetryInfo says and knows nothing of
tokens. It is written once for both clients: this module must never send, sleep or await.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from ._calls import Call
from ._errors import RecalldError, ResourceExhausted, Unavailable, invalid
from ._tokens import Tokens
from ._transport import CallFailed

T = TypeVar("T")

_FIRST_PAUSE = 0.020
_GROWTH = 2


@dataclass(frozen=True, slots=True)
class Policy:
    """How long calls may take and how often they are repeated."""

    timeout: float = 5.0
    """Seconds for a call with all its attempts, when the call does not say its own."""
    retries: int = 3
    """Most attempts after the first."""
    clock: Callable[[], float] = time.monotonic
    """Seconds since any fixed point."""
    spread: Callable[[float, float], float] = random.uniform
    """Picks a pause between two bounds, so that clients who failed together do not come back together."""

    def __post_init__(self) -> None:
        _check_timeout(self.timeout)
        if self.retries < 0:
            raise invalid("retries", "must not be negative")

    def deadline(self, timeout: float | None) -> float:
        """Say when a call that begins now must end: after its own timeout, or else the client's."""
        return self.clock() + _check_timeout(self.timeout if timeout is None else timeout)

    def remaining(self, deadline: float) -> float:
        """Seconds that are left until a deadline."""
        return max(0.0, deadline - self.clock())


class Attempts(Generic[T]):
    """One call, from its first attempt to its answer or its error."""

    def __init__(self, call: Call[T], policy: Policy, tokens: Tokens, deadline: float) -> None:
        self._call = call
        self._policy = policy
        self._tokens = tokens
        self._deadline = deadline
        self._failed = 0
        self.path = call.method.path
        """How the way to the store names the method."""
        self.request: bytes = call.request.SerializeToString()
        """What each attempt sends."""

    def remaining(self) -> float:
        """Seconds that are left: the deadline of the attempt that is about to start."""
        return self._policy.remaining(self._deadline)

    def answer(self, response: bytes) -> T:
        """Read the answer of the attempt that succeeded."""
        return self._call.answer(response, self._tokens)

    def pause(self, failed: CallFailed) -> float:
        """Tell how many seconds to wait after a failed attempt; raises its error when it was the last."""
        self._failed += 1
        error = self._call.error(failed, self._tokens)
        pause = self._pause_after(error)
        if pause is None or self._failed > self._policy.retries or pause >= self.remaining():
            raise error from failed.__cause__
        return pause

    def _pause_after(self, error: RecalldError) -> float | None:
        """Tell how long to wait before repeating a call that failed so; None: it is not repeated."""
        if isinstance(error, Unavailable):
            return self._policy.spread(0.0, _FIRST_PAUSE * _GROWTH ** (self._failed - 1))
        if isinstance(error, ResourceExhausted) and error.retry_after is not None:
            return error.retry_after.total_seconds()
        return None


def _check_timeout(seconds: float) -> float:
    if not 0 < seconds < float("inf"):
        raise invalid("timeout", "must be a number of seconds greater than zero")
    return seconds
