"""Metrics: what the core and the control plane have counted, as Prometheus families.

Nothing is counted twice and nothing is sampled: a scrape reads the counters where they are kept. Labels are
methods and status codes only, so that a scrape never grows with namespaces or callers.
"""

import math
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Protocol

from prometheus_client import CollectorRegistry, Metric, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from recalld_sidecar import __version__, _core
from recalld_sidecar._core import Core, CoreError
from recalld_sidecar.errors import STATUS_CODES
from recalld_sidecar.services import Handler

_OK = 0
_UNKNOWN = 2


class MethodCounts(Protocol):
    """What one method did since the start; the core's MethodMetrics is one."""

    @property
    def method(self) -> str:
        """Full name with the leading slash."""

    @property
    def codes(self) -> dict[int, int]:
        """Calls by gRPC status code."""

    @property
    def buckets(self) -> Sequence[tuple[float, int]]:
        """Latency histogram: (upper bound in seconds, calls at or below it), the last bound infinite."""

    @property
    def seconds(self) -> float:
        """Sum of all latencies."""

    @property
    def slow(self) -> int:
        """Calls that took longer than the SLA allows."""


class ControlCounts:
    """Counts of one method that Python answers."""

    def __init__(self, method: str, slo_seconds: float) -> None:
        self.method = method
        self._slo = slo_seconds
        # The same as the core's, so that both kinds of methods stand in one family.
        self._bounds = _core.latency_bounds(slo_seconds)
        self._lock = threading.Lock()
        self._codes: Counter[int] = Counter()
        self._calls = [0] * len(self._bounds)
        self._seconds = 0.0
        self._slow = 0

    def measured(self, handler: Handler) -> Handler:
        """Wrap a handler so that its calls are counted here."""

        def answer(method: str, identity: str, request: bytes, timeout: float | None) -> bytes:
            code = _UNKNOWN
            started = time.perf_counter()
            try:
                response = handler(method, identity, request, timeout)
                code = _OK
            except CoreError as error:
                code = error.code
                raise
            finally:
                self._count(code, time.perf_counter() - started)
            return response

        return answer

    def _count(self, code: int, seconds: float) -> None:
        with self._lock:
            self._codes[code] += 1
            self._calls[bisect_left(self._bounds, seconds)] += 1
            self._seconds += seconds
            self._slow += seconds > self._slo

    @property
    def codes(self) -> dict[int, int]:
        """As in MethodCounts."""
        with self._lock:
            return dict(self._codes)

    @property
    def buckets(self) -> list[tuple[float, int]]:
        """As in MethodCounts."""
        with self._lock:
            return list(zip(self._bounds, accumulate(self._calls), strict=True))

    @property
    def seconds(self) -> float:
        """As in MethodCounts."""
        return self._seconds

    @property
    def slow(self) -> int:
        """As in MethodCounts."""
        return self._slow


class SidecarCollector(Collector):
    """Reads the core and the control plane when it is scraped."""

    def __init__(self, core: Core, control: Iterable[MethodCounts]) -> None:
        self._core = core
        self._control = list(control)

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield from request_families([*self._core.metrics(), *self._control])
        parts = HistogramMetricFamily(
            "recalld_part_seconds",
            "Time that the parts of data-plane calls took, in seconds.",
            labels=["part"],
        )
        for timings in self._core.timings():
            parts.add_metric([timings.part], _buckets(timings.buckets), timings.seconds)
        yield parts
        yield GaugeMetricFamily(
            "recalld_requests_in_flight",
            "Calls of the data plane being answered now.",
            self._core.in_flight(),
        )
        store = self._core.store_stats()
        yield GaugeMetricFamily("recalld_store_namespaces", "Namespaces ever written to.", store.namespaces)
        yield GaugeMetricFamily("recalld_store_memories", "Live memories.", store.memories)
        yield GaugeMetricFamily("recalld_store_bytes", "Bytes of the data file in use.", store.bytes_used)
        yield GaugeMetricFamily(
            "recalld_store_position",
            "Operations applied since the store was made.",
            store.position,
        )
        build = GaugeMetricFamily(
            "recalld_build_info",
            "Versions of what is running; always 1.",
            labels=["version", "core_version", "profile", "format_version", "embedder"],
        )
        build.add_metric(
            [
                __version__,
                _core.__version__,
                _core.build_profile(),
                str(store.format_version),
                store.embedder,
            ],
            1,
        )
        yield build


def request_families(methods: Iterable[MethodCounts]) -> Iterator[Metric]:
    """Make the families that count calls, by method and by status code."""
    latency = HistogramMetricFamily(
        "recalld_request_seconds",
        "Time from the arrival of a call in its handler to its answer, in seconds.",
        labels=["method"],
    )
    requests = CounterMetricFamily(
        "recalld_requests",
        "Calls answered, by gRPC status code.",
        labels=["method", "code"],
    )
    slow = CounterMetricFamily(
        "recalld_slow_requests",
        "Calls that took longer than slo_ms allows.",
        labels=["method"],
    )
    for counts in methods:
        method = counts.method.removeprefix("/")
        latency.add_metric([method], _buckets(counts.buckets), counts.seconds)
        slow.add_metric([method], counts.slow)
        for code, calls in sorted(counts.codes.items()):
            name = STATUS_CODES[code].name if code in STATUS_CODES else str(code)
            requests.add_metric([method, name], calls)
    yield latency
    yield requests
    yield slow


def _buckets(buckets: Sequence[tuple[float, int]]) -> list[tuple[str, float]]:
    return [("+Inf" if math.isinf(bound) else str(bound), calls) for bound, calls in buckets]


def registry(collector: Collector) -> CollectorRegistry:
    """Make a registry of the sidecar's metrics and those of its process (CPU, memory, open files)."""
    made = CollectorRegistry()
    made.register(collector)
    ProcessCollector(registry=made)
    return made
