"""Many searches at once: what becomes of each, in a batch or on a stream.

One search never loses the others: what cannot be sent, and what the server refuses, stands as an error in the
place of its answer. Nothing here sends or waits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from ._arguments import Query
from ._calls import Call, NamespaceCalls
from ._convert import duration_from_proto, put_duration
from ._errors import DeadlineExceeded, Internal, RecalldError, Unavailable, invalid
from ._methods import METHODS
from ._tokens import Tokens
from ._transport import CallFailed
from ._types import Search
from .v1 import memory_service_pb2

MOST_IN_A_CALL = 256
"""Searches that one BatchSearch takes."""

# The budget of a search on a stream: not nothing, and not more than a timedelta and the wire can hold.
_LEAST_SECONDS = 1e-6
_MOST_SECONDS = 86_400.0

Outcome = Search | RecalldError
"""What became of one search of several."""


@dataclass(slots=True)
class Batch:
    """Many searches, in as many calls as they need."""

    calls: list[Call[None]] = field(default_factory=list)
    """The calls. Reading the answer of each fills its part of `outcomes`."""
    outcomes: list[Outcome] = field(default_factory=list)
    """One outcome a search, in order; complete when every call was answered."""


def batch(calls: NamespaceCalls, queries: Iterable[str | Query], tokens: Tokens) -> Batch:
    """Put searches into calls."""
    made = Batch()
    sendable: list[tuple[int, Call[Search]]] = []
    for place, query in enumerate(several(queries)):
        try:
            sendable.append((place, search(calls, query)))
        except RecalldError as error:
            made.outcomes.append(error)
        else:
            made.outcomes.append(_unanswered())
    for start in range(0, len(sendable), MOST_IN_A_CALL):
        made.calls.append(_call(sendable[start : start + MOST_IN_A_CALL], made.outcomes, tokens))
    return made


def several(queries: Iterable[str | Query]) -> Iterable[str | Query]:
    """Refuse one text where several searches belong: each of its letters would be one."""
    if isinstance(queries, str):
        raise invalid("queries", "must be several texts or queries, not one text")
    return queries


def search(calls: NamespaceCalls, query: str | Query) -> Call[Search]:
    """Make one search of several; text alone is a query with nothing else."""
    return calls.search(Query(query) if isinstance(query, str) else query)


def outcome(search: Call[Search], result: memory_service_pb2.SearchResult, tokens: Tokens) -> Outcome:
    """Read what became of one search of several."""
    match result.WhichOneof("result"):
        case "response":
            try:
                return search.take(result.response, tokens)
            except RecalldError as unreadable:
                return unreadable
        case "failure":
            told = result.failure
            return search.error(CallFailed.of(told.code, told.message, told.status), tokens)
    return _unanswered()


def stream_request(tag: int, search: Call[Search], seconds: float) -> bytes:
    """Make the message that asks a search on a stream.

    A stream has no deadline, so the search is told the seconds that are left to it as its budget, unless it
    has a smaller one.
    """
    request = memory_service_pb2.SearchStreamRequest(tag=tag, search=search.request)
    left = timedelta(seconds=min(max(seconds, _LEAST_SECONDS), _MOST_SECONDS))
    given = request.search.HasField("latency_budget")
    if not given or left < duration_from_proto(request.search.latency_budget):
        put_duration(request.search.latency_budget, "latency_budget", left)
    return request.SerializeToString()


def too_late() -> DeadlineExceeded:
    """Make the error of a search on a stream whose time is over."""
    return DeadlineExceeded("the search was not answered in time")


def stream_ended() -> Unavailable:
    """Make the error of a search whose stream the sidecar has ended."""
    return Unavailable("the sidecar ended the stream")


def unreadable_answer() -> Internal:
    """Make the error of a search whose stream carries something else than answers."""
    return Internal("an answer on the stream is not a SearchStreamResponse of the contract")


def _unanswered() -> Internal:
    return Internal("the sidecar did not say what became of this search")


def _call(
    searches: Sequence[tuple[int, Call[Search]]], outcomes: list[Outcome], tokens: Tokens
) -> Call[None]:
    request = memory_service_pb2.BatchSearchRequest(searches=[search.request for _, search in searches])

    def read(response: memory_service_pb2.BatchSearchResponse) -> None:
        # Each search has a token of its own, as it may have carried another than its neighbours.
        for (place, search), result in zip(searches, response.results, strict=False):
            outcomes[place] = outcome(search, result, tokens)

    return Call(METHODS["BatchSearch"], request, read)
