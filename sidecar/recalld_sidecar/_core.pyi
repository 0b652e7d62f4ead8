"""The Rust core. Every call releases the GIL; a panic inside becomes a CoreError with code INTERNAL (13)."""

from collections.abc import Callable, Mapping, Sequence
from typing import final

__all__ = [
    "Core",
    "CoreError",
    "Front",
    "LoadReport",
    "LoadStats",
    "MethodMetrics",
    "NamespaceStats",
    "PartTimings",
    "Problem",
    "StoreStats",
    "__version__",
    "build_profile",
    "count_tokens",
    "embed",
    "latency_bounds",
    "load",
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

    @property
    def slow(self) -> int:
        """Calls that took longer than `slo_seconds`."""

@final
class PartTimings:
    """How long one part of calls took since the start."""

    @property
    def part(self) -> str:
        """Name of the part, `dense`."""

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """As in MethodMetrics."""

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
        max_index_bytes: int = 1 << 32,
        slo_seconds: float = 0.05,
        tokenizers: Mapping[str, str] = ...,
        ranking: Mapping[str, float] = ...,
    ) -> Core:
        """Open or create `data_dir`.

        `address` is written into the lock file, for the error that a second process gets. `index_after` is
        the number of passages from which a namespace gets an approximate index, and what a search in it
        counts for when a way of looking is chosen; `max_index_bytes` bounds the memory of all of them.
        `slo_seconds` is the time within which a call should be answered. `tokenizers` adds counters of
        tokens: names and the `tokenizer.json` files of each. `ranking` changes weights of the ranking, for
        measurements: 0 switches a feature off. Raises CoreError, and ValueError for a weight that does not
        exist.
        """

    @staticmethod
    def methods() -> list[str]:
        """Full names of the unary methods that `dispatch` answers."""

    @staticmethod
    def stream_methods() -> list[str]:
        """Full names of the methods that are streams both ways: `dispatch` answers each message with one."""

    def dispatch(self, method: str, identity: str, request: bytes, timeout: float | None) -> bytes:
        """Answer one call: serialised request in, serialised response out; `timeout` in seconds. Raises CoreError."""

    def store_stats(self) -> StoreStats: ...
    def namespace_stats(self, namespace: Sequence[str]) -> NamespaceStats:
        """Counts of a namespace, all zero when it does not exist. Raises CoreError for an invalid namespace."""

    def metrics(self) -> list[MethodMetrics]: ...
    def timings(self) -> list[PartTimings]:
        """How long the parts of calls took since the start. Raises CoreError when the core is closed."""

    def in_flight(self) -> int:
        """Calls being answered now."""

    def refuse(self) -> None:
        """Answer every later call with UNAVAILABLE (NOT_SERVING); calls in hand go on."""

    def close(self) -> None:
        """Finish acknowledged work, stop the background threads and release the directory."""

@final
class Front:
    """The native front: serves gRPC in Rust until it is stopped, and passes on what it does not answer."""

    def __new__(
        cls,
        upstream: str,
        *,
        core: Core | None,
        control: Mapping[str, Callable[[str, bytes, float | None, str], bytes]],
        max_in_flight: int,
        log_level: str = "info",
        log_format: str = "json",
    ) -> Front:
        """Make a front for the methods of `core`, which it logs, and of `control`, and pass the others to `upstream`.

        `control` has the unary methods that Python answers: identity of the caller, serialised request, seconds left
        and request id in, serialised response out; they raise CoreError and nothing else. `upstream` is the path of a
        Unix socket where grpcio listens or will listen. Raises ValueError for a log level that does not exist.
        """

    def listen_unix(self, path: str) -> None:
        """Bind a Unix socket. Raises OSError."""

    def listen_tcp(self, host: str, port: int) -> int:
        """Bind a TCP port, 0 for any, and answer which. Raises OSError."""

    def start(self) -> None:
        """Begin to answer."""

    def drain(self) -> None:
        """Take no more connections and calls; those in hand go on."""

    def stop(self, drain_seconds: float) -> bool:
        """Drain for at most so long and end. False when calls were cut off."""

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

def latency_bounds(slo_seconds: float) -> list[float]:
    """Upper bounds of latency histograms in seconds, the last infinite, one at `slo_seconds`. Raises ValueError."""

def ranking_defaults() -> dict[str, float]:
    """Weights of the ranking by relevance, by name, as Core has them when nothing is said."""

@final
class LoadStats:
    """What became of the calls of a run, of one method or of all. Latencies are those of calls answered with OK."""

    @property
    def calls(self) -> int:
        """Calls that were planned."""

    @property
    def ok(self) -> int:
        """Calls that were answered with OK."""

    @property
    def unsent(self) -> int:
        """Calls that were not sent before their deadline, because too many were under way."""

    @property
    def codes(self) -> dict[int, int]:
        """The others by gRPC status code; 4 is also what the generator's own deadline makes."""

    @property
    def messages(self) -> dict[int, str]:
        """The first message of each code other than OK."""

    @property
    def mean(self) -> float:
        """Mean latency, in seconds."""

    @property
    def max(self) -> float:
        """Longest latency, in seconds."""

    def quantile(self, share: float) -> float:
        """The latency that this share (0 to 1) of the answers did not exceed, in seconds; 0 without answers."""

    def share_within(self, seconds: float) -> float:
        """Share of all planned calls that were answered with OK within so many seconds: a failure is never fast."""

@final
class LoadReport:
    """What a run of `load` found."""

    @property
    def elapsed(self) -> float:
        """Seconds from the beginning of the measurement to its end, or to the last answer to a measured call."""

    @property
    def total(self) -> LoadStats:
        """All calls together."""

    @property
    def methods(self) -> list[tuple[str, LoadStats]]:
        """By method, in the order in which they were given."""

    @property
    def lag(self) -> LoadStats:
        """How much later than planned calls were sent: large with a server that answers, the generator was too slow."""

    @property
    def cpu(self) -> float:
        """Share of one core that the generator used; near 1 it was the bottleneck."""

def load(
    address: str,
    calls: Sequence[tuple[str, Sequence[bytes], float]],
    *,
    rate: float | None = None,
    callers: int | None = None,
    seconds: float,
    warmup: float = 0.0,
    connections: int = 1,
    timeout: float = 10.0,
    max_in_flight: int = 1_024,
    seed: int = 0,
) -> LoadReport:
    """Call the gRPC server at `address` (`unix:PATH` or `HOST:PORT`, without TLS), and report what became of it.

    `calls` are methods (`/package.Service/Method`) with serialised requests, which are sent round and round, and a
    weight beside the other methods. Exactly one of `rate` and `callers` is given: open loop, so many calls a second
    at moments fixed before, from which their latency counts; or closed loop, so many callers that wait for their
    answers. Calls of the first `warmup` seconds are not in the report. `timeout` is the deadline of a call; beyond
    `max_in_flight` calls wait in the generator, and the wait counts. `seed` chooses how methods are mixed.

    Raises ValueError for what cannot be planned, ConnectionError when nobody answers at the address, and whatever a
    signal's handler raises.
    """

def build_profile() -> str:
    """Cargo profile kind of this build: `release` or `debug` (checks on)."""

__version__: str
