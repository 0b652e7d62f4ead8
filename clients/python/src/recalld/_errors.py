"""The tree of errors that a user catches.

Everything that the server refuses, and every argument that cannot be sent, is a `RecalldError`. This module
must never depend on how a call travels: `_status` makes these errors from the answers of gRPC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import grpc

# ruff: noqa: N818 - the names are those of gRPC's codes, in every language


class RecalldError(Exception):
    """A call failed. Raised itself only for gRPC codes that have no class below, such as CANCELLED.

    `code` is the gRPC status code. `reason` is the server's stable reason, a name of `recalld.v1.ErrorReason`
    without its prefix; it is empty when the server did not name one, for example when it could not be
    reached. `message` is a sentence for a person and may change. `metadata` is what the reason documents, as
    text.
    """

    code: grpc.StatusCode = grpc.StatusCode.UNKNOWN

    def __init__(self, message: str, *, reason: str = "", metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason
        self.metadata = dict(metadata or {})

    def __str__(self) -> str:
        return f"{self.reason or self.code.name}: {self.message}"


@dataclass(frozen=True, slots=True)
class Violation:
    """What is wrong with one argument: `field` is its path, for example `items[3].metadata.order`."""

    field: str
    description: str


class InvalidArgument(RecalldError):
    """An argument is wrong, and the same call will fail again.

    `violations` names each wrong field. Raised without asking the server when an argument cannot be sent at
    all, for example a datetime without a time zone.
    """

    code = grpc.StatusCode.INVALID_ARGUMENT

    def __init__(
        self,
        message: str,
        *,
        violations: Sequence[Violation] = (),
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, reason=reason, metadata=metadata)
        self.violations = tuple(violations)

    @property
    def field(self) -> str:
        """Path of the first wrong field; empty when none is named."""
        return self.violations[0].field if self.violations else ""


class NotFound(RecalldError):
    """A memory that the call names does not exist."""

    code = grpc.StatusCode.NOT_FOUND


class AlreadyExists(RecalldError):
    """The idempotency key was used within 24 hours with another body."""

    code = grpc.StatusCode.ALREADY_EXISTS


class Conflict(RecalldError):
    """`if_version` was not the current version; nothing was done."""

    code = grpc.StatusCode.ABORTED

    @property
    def current_version(self) -> int | None:
        """The version that is current: 0 when there is no such memory, None when the server did not say."""
        text = self.metadata.get("current_version", "")
        return int(text) if text.isdecimal() else None


class ResourceExhausted(RecalldError):
    """The sidecar is overloaded or its store is full; nothing of this call was kept.

    `retry_after` is how long the server asks to wait; None when waiting does not help.
    """

    code = grpc.StatusCode.RESOURCE_EXHAUSTED

    def __init__(
        self,
        message: str,
        *,
        retry_after: timedelta | None = None,
        reason: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message, reason=reason, metadata=metadata)
        self.retry_after = retry_after


class FailedPrecondition(RecalldError):
    """The store is not in the state that the call needs, as when a token is of another store."""

    code = grpc.StatusCode.FAILED_PRECONDITION


class Unavailable(RecalldError):
    """The sidecar could not be reached, is starting or draining, or cannot use its store."""

    code = grpc.StatusCode.UNAVAILABLE


class DeadlineExceeded(RecalldError):
    """The time for the call is over.

    A write may have been kept: repeat it with the same `idempotency_key`.
    """

    code = grpc.StatusCode.DEADLINE_EXCEEDED


class DataLoss(RecalldError):
    """A stored record is damaged. Run `recalld doctor`."""

    code = grpc.StatusCode.DATA_LOSS


class Internal(RecalldError):
    """A fault of the sidecar; its log has more."""

    code = grpc.StatusCode.INTERNAL


class Unimplemented(RecalldError):
    """This server does not know the method; it is older than the client."""

    code = grpc.StatusCode.UNIMPLEMENTED


def invalid(field: str, description: str) -> InvalidArgument:
    """Make the error of an argument that cannot be sent, as the server would have answered it."""
    return InvalidArgument(
        f"{field}: {description}", violations=[Violation(field, description)], reason="INVALID_FIELD"
    )
