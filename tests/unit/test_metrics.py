"""Metrics: the counters of the core and the control plane come out as Prometheus families."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import Metric, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from recalld_sidecar import errors, metrics
from recalld_sidecar._core import CoreError


@dataclass
class Counts:
    method: str = "/recalld.v1.MemoryService/Search"
    codes: dict[int, int] = field(default_factory=lambda: {0: 5, 3: 2, 99: 1})
    buckets: list[tuple[float, int]] = field(default_factory=lambda: [(0.01, 3), (0.05, 6), (math.inf, 8)])
    seconds: float = 0.25
    slow: int = 2


class Requests(Collector):
    def __init__(self, *counts: metrics.MethodCounts) -> None:
        self.counts = counts

    def collect(self) -> Iterator[Metric]:
        return metrics.request_families(self.counts)


def scrape(*counts: metrics.MethodCounts) -> dict[tuple[str, ...], float]:
    text = generate_latest(metrics.registry(Requests(*counts))).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_method_is_a_histogram_and_a_counter() -> None:
    samples = scrape(Counts())
    search = "recalld.v1.MemoryService/Search"
    assert samples["recalld_request_seconds_bucket", "0.05", search] == 6
    assert samples["recalld_request_seconds_bucket", "+Inf", search] == 8
    assert samples["recalld_request_seconds_count", search] == 8
    assert samples["recalld_request_seconds_sum", search] == 0.25
    assert samples["recalld_requests_total", "OK", search] == 5
    assert samples["recalld_requests_total", "INVALID_ARGUMENT", search] == 2
    assert samples["recalld_requests_total", "99", search] == 1
    assert samples["recalld_slow_requests_total", search] == 2


def test_the_process_is_measured() -> None:
    assert scrape()["process_cpu_seconds_total",] > 0


def test_control_calls_are_counted_by_outcome() -> None:
    counts = metrics.ControlCounts("/recalld.v1.AdminService/GetStats", 0.05)

    def handler(_method: str, _identity: str, request: bytes, _timeout: float | None) -> bytes:
        match request:
            case b"refuse":
                raise errors.malformed_request("x")
            case b"fail":
                raise ZeroDivisionError
        return b"answer"

    measured = counts.measured(handler)
    assert measured("m", "unix", b"", None) == b"answer"
    with pytest.raises(CoreError):
        measured("m", "unix", b"refuse", None)
    with pytest.raises(ZeroDivisionError):
        measured("m", "unix", b"fail", None)

    assert counts.codes == {0: 1, 2: 1, 3: 1}
    assert counts.buckets[-1] == (math.inf, 3)
    assert counts.seconds > 0
    assert 0.05 in dict(counts.buckets)


@given(st.lists(st.floats(0, 100)))
def test_buckets_hold_what_is_at_or_below_their_bound(latencies: list[float]) -> None:
    counts = metrics.ControlCounts("/m", 0.03)
    for seconds in latencies:
        counts._count(0, seconds)
    for bound, calls in counts.buckets:
        assert calls == sum(seconds <= bound for seconds in latencies)
    assert 0.03 in dict(counts.buckets)
    assert counts.slow == sum(seconds > 0.03 for seconds in latencies)
