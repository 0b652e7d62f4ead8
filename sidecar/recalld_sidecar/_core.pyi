"""The Rust core. Every call releases the GIL; a panic inside becomes a CoreError with code INTERNAL (13)."""

from collections.abc import Mapping, Sequence
from typing import final

__all__ = [
    "Core",
    "CoreError",
    "MethodMetrics",
    "NamespaceStats",
    "Problem",
    "StoreStats",
    "__version__",
    "build_profile",
    "count_tokens",
    "embed",
    "ranking_defaults",
    "verify",
]

class CoreError(Exception):
    """A call failed. `args` is (code, message, status)."""

    @property
    def code(self) -> int:
        """The canonical gRPC status code."""

    @property
    def message(self) -> str:
        """What happened, for a person."""

    @property
    def status(self) -> bytes:
        """The serialised google.rpc.Status with its details."""

@final
class StoreStats:
    """Counts of a store."""

    @property
    def store_id(self) -> str: ...
    @property
    def format_version(self) -> int: ...
    @property
    def embedder(self) -> str: ...
    @property
    def embedder_fingerprint(self) -> str: ...
    @property
    def dimensions(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def namespaces(self) -> int: ...
    @property
    def memories(self) -> int: ...
    @property
    def bytes_used(self) -> int: ...

@final
class NamespaceStats:
    """Counts of a namespace."""

    @property
    def memories(self) -> int: ...
    @property
    def versions(self) -> int: ...
    @property
    def passages(self) -> int: ...
    @property
    def content_tokens(self) -> int: ...
    @property
    def indexed_passages(self) -> int: ...

@final
class MethodMetrics:
    """What one method did since the start."""

    @property
    def method(self) -> str:
        """Full name, `/recalld.v1.MemoryService/Search`."""

    @property
    def codes(self) -> dict[int, int]:
        """Calls by gRPC status code."""

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """Latency histogram: (upper bound in seconds, calls at or below it), the last bound infinite."""

    @property
    def seconds(self) -> float:
        """Sum of all latencies."""

@final
class Core:
    """An open data directory and the calls that are answered in Rust. One process a directory."""

    def __new__(
        cls,
        data_dir: str,
        model_dir: str,
        *,
        address: str = "",
        max_store_bytes: int = 1 << 40,
        max_in_flight: int = 128,
        max_queued_writes: int = 4096,
        index_after: int = 20_000,
        tokenizers: Mapping[str, str] = ...,
        ranking: Mapping[str, float] = ...,
    ) -> Core:
        """Open or create `data_dir`.

        `address` is written into the lock file, for the error that a second process gets. `index_after` is the number
        of passages from which a namespace gets an approximate index. `tokenizers` adds counters of tokens: names and
        the `tokenizer.json` files of each. `ranking` changes weights of the ranking, for measurements: 0 switches a
        feature off. Raises CoreError, and ValueError for a weight that does not exist.
        """

    @staticmethod
    def methods() -> list[str]:
        """Full names of the methods that `dispatch` answers."""

    def dispatch(self, method: str, identity: str, request: bytes, timeout: float | None) -> bytes:
        """Answer one call: serialised request in, serialised response out; `timeout` in seconds. Raises CoreError."""

    def store_stats(self) -> StoreStats: ...
    def namespace_stats(self, namespace: Sequence[str]) -> NamespaceStats:
        """Counts of a namespace, all zero when it does not exist. Raises CoreError for an invalid namespace."""

    def metrics(self) -> list[MethodMetrics]: ...
    def in_flight(self) -> int:
        """Calls being answered now."""

    def refuse(self) -> None:
        """Answer every later call with UNAVAILABLE (NOT_SERVING); calls in hand go on."""

    def close(self) -> None:
        """Finish acknowledged work, stop the background threads and release the directory."""

@final
class Problem:
    """Something wrong with a data directory."""

    @property
    def where(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def fix(self) -> str: ...

def verify(data_dir: str, model_dir: str) -> list[Problem]:
    """Read everything in a data directory that no process holds and check it. Raises CoreError when it cannot open."""

def count_tokens(text: str, encoding: str, tokenizers: Mapping[str, str] = ...) -> int:
    """Tokens of a text by a counter, of which `tokenizers` may add some, as for Core.

    Raises ValueError for an unknown encoding and CoreError for a file that cannot be counted with.
    """

def embed(model_dir: str, texts: Sequence[str]) -> list[list[float] | None]:
    """Unit vectors of texts by the model in `model_dir`; None where nothing in the text is known."""

def ranking_defaults() -> dict[str, float]:
    """Weights of the ranking by relevance, by name, as Core has them when nothing is said."""

def build_profile() -> str:
    """Cargo profile kind of this build: `release` or `debug` (checks on)."""

__version__: str
