"""The client of recalld, the memory daemon that LLM agents keep beside them.

    from recalld import Client

    with Client("unix:/run/recalld.sock") as client:
        alice = client.namespace("acme", "user", "alice")
        alice.write("Alice prefers aisle seats.", key="seat", kind="preference")
        for hit in alice.search("which seat does she like?"):
            print(hit.score, hit.summary)

`AsyncClient` is the same for asyncio. Conditions for searches are made with `recalld.filters`; everything
that fails raises a `RecalldError`. The generated messages and stubs of the contract are in `recalld.v1`.
"""

from . import filters
from ._aio import AsyncClient, AsyncNamespace
from ._client import Client, Namespace
from ._errors import (
    AlreadyExists,
    Conflict,
    DataLoss,
    DeadlineExceeded,
    FailedPrecondition,
    Internal,
    InvalidArgument,
    NotFound,
    RecalldError,
    ResourceExhausted,
    Unavailable,
    Unimplemented,
    Violation,
)
from ._types import (
    Arm,
    Brief,
    BriefForm,
    BriefFormat,
    BriefSection,
    ContentFormat,
    Degradation,
    Deleted,
    Details,
    Explanation,
    FactorScore,
    IncludedMemory,
    Item,
    Memory,
    NamespaceStats,
    OmissionReason,
    OmittedMemory,
    Outcome,
    Receipt,
    Search,
    SearchStage,
    SignalScore,
    Signature,
    Source,
    StoreStats,
    TimeRange,
    Tls,
    TokenCounts,
    Weights,
    WhyNot,
)
from ._version import __version__

__all__ = [
    "AlreadyExists",
    "Arm",
    "AsyncClient",
    "AsyncNamespace",
    "Brief",
    "BriefForm",
    "BriefFormat",
    "BriefSection",
    "Client",
    "Conflict",
    "ContentFormat",
    "DataLoss",
    "DeadlineExceeded",
    "Degradation",
    "Deleted",
    "Details",
    "Explanation",
    "FactorScore",
    "FailedPrecondition",
    "IncludedMemory",
    "Internal",
    "InvalidArgument",
    "Item",
    "Memory",
    "Namespace",
    "NamespaceStats",
    "NotFound",
    "OmissionReason",
    "OmittedMemory",
    "Outcome",
    "RecalldError",
    "Receipt",
    "ResourceExhausted",
    "Search",
    "SearchStage",
    "SignalScore",
    "Signature",
    "Source",
    "StoreStats",
    "TimeRange",
    "Tls",
    "TokenCounts",
    "Unavailable",
    "Unimplemented",
    "Violation",
    "Weights",
    "WhyNot",
    "__version__",
    "filters",
]


def __dir__() -> list[str]:
    return __all__
