"""Decides what happens after each attempt of a call: its answer, another attempt after a pause, or its error.

An own loop and not gRPC's service config, which cannot wait as long as a RetryInfo says and knows nothing of
tokens. It is written once for both clients: this module must never send, sleep or await.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import grpc

from ._calls import Call, Effect
from ._errors import RecalldError, ResourceExhausted, Unavailable, invalid
from ._status import error_from_rpc
from ._tokens import Tokens

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


class Attempts(Generic[T]):
    """One call, from its first attempt to its answer or its error."""

    def __init__(self, call: Call[T], policy: Policy, tokens: Tokens, timeout: float | None) -> None:
        self._call = call
        self._policy = policy
        self._tokens = tokens
        self._deadline = policy.clock() + _check_timeout(policy.timeout if timeout is None else timeout)
        self._failed = 0

    def remaining(self) -> float:
        """Seconds that are left: the deadline of the attempt that is about to start."""
        return max(0.0, self._deadline - self._policy.clock())

    def answer(self, response: Any) -> T:
        """Read the answer of the attempt that succeeded."""
        if self._call.effect is Effect.WRITE:
            self._tokens.wrote(response.token)
        elif self._call.effect is Effect.READ:
            self._tokens.read(self._call.carried, response.token)
        return self._call.read(response)

    def pause(self, failed: grpc.RpcError) -> float:
        """Tell how many seconds to wait after a failed attempt; raises its error when it was the last."""
        self._failed += 1
        error = error_from_rpc(failed, within=self._call.within)
        if self._call.effect is Effect.READ and error.reason == "TOKEN_OF_ANOTHER_STORE":
            self._tokens.refused(self._call.carried)
        pause = self._pause_after(error)
        if pause is None or self._failed > self._policy.retries or pause >= self.remaining():
            raise error from failed
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
