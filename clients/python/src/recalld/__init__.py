"""The client of recalld, the memory daemon that LLM agents keep beside them.

    from recalld import Client

    with Client("unix:/run/recalld.sock") as client:
        alice = client.namespace("acme", "user", "alice")
        alice.write("Alice prefers aisle seats.", key="seat", kind="preference")
        for hit in alice.search("which seat does she like?"):
            print(hit.score, hit.summary)

`AsyncClient` is the same for asyncio. `Client("dir:/path")` opens a store in this process, and `spawn` starts
a sidecar that ends with it. Conditions for searches are made with `recalld.filters`; everything that fails
raises a `RecalldError`. The generated messages and stubs of the contract are in `recalld.v1`.
"""

from . import filters
from ._arguments import (
    BriefFormat,
    BriefSection,
    ContentFormat,
    Item,
    Query,
    Source,
    TimeRange,
    Tls,
    Weights,
)
from ._async_client import AsyncClient
from ._async_namespace import AsyncNamespace
from ._async_stream import AsyncSearchStream
from ._client import Client
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
from ._namespace import Namespace
from ._spawn import Sidecar, spawn
from ._stream import SearchStream
from ._types import (
    Arm,
    Brief,
    BriefForm,
    Degradation,
    Deleted,
    Details,
    Explanation,
    FactorScore,
    IncludedMemory,
    Memory,
    NamespaceStats,
    OmissionReason,
    OmittedMemory,
    Outcome,
    PlannedMethod,
    Receipt,
    Search,
    SearchStage,
    SignalScore,
    Signature,
    StoreStats,
    TokenCounts,
    WhyNot,
)
from ._version import __version__

__all__ = [
    "AlreadyExists",
    "Arm",
    "AsyncClient",
    "AsyncNamespace",
    "AsyncSearchStream",
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
    "PlannedMethod",
    "Query",
    "RecalldError",
    "Receipt",
    "ResourceExhausted",
    "Search",
    "SearchStage",
    "SearchStream",
    "Sidecar",
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
    "spawn",
]


def __dir__() -> list[str]:
    return __all__
