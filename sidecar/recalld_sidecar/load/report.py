"""What a run found, for people, for programs, and as pictures."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import grpc

from recalld_sidecar._core import LoadReport, LoadStats
from recalld_sidecar.load.plot import Axis, Chart

GOAL = 0.99
"""Share of the planned calls that must be answered with OK within the SLO for it to be held."""

QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
"""Those that are listed."""

_BOTTLENECK = 0.9
"""Share of a core at which the generator, and not the server, may be what is measured."""
_DRAWN = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999)
_CODES = {int(code.value[0]): code.name for code in grpc.StatusCode}


@dataclass(frozen=True)
class Run:
    """A run with what was asked of it."""

    target: str
    about: str
    """What was there and what was called, in a line."""
    rate: float
    seconds: float
    slo: float
    """Seconds."""
    report: LoadReport

    @property
    def held(self) -> bool:
        """Whether the SLO was held."""
        return within(self.report, self.slo)

    def lines(self) -> Iterator[str]:
        """Render it for people."""
        report = self.report
        yield f"{self.target}: {self.about}"
        yield f"{self.rate:,.0f} calls a second for {self.seconds:g} s; latencies in ms, from the planned moment"
        yield ""
        header = ("", "calls", "ok", *QUANTILES, "max")
        rows = [header, *(_row(name, stats) for name, stats in _named(report))]
        yield from (
            "".join(cell.rjust(10) if at else cell.ljust(14) for at, cell in enumerate(row)) for row in rows
        )
        yield ""
        yield (
            f"{report.total.ok / report.elapsed:,.0f} answers a second; generator: {report.cpu:.0%} of a core, "
            f"calls sent {report.lag.quantile(0.99) * 1e3:.2f} ms after their moment (p99)"
        )
        if report.cpu > _BOTTLENECK:
            yield "the generator was busy all the time: the server may be faster than this says"
        yield from failures(report.total)
        share = report.total.share_within(self.slo)
        yield (
            f"SLO {'held' if self.held else 'NOT HELD'}: {share:.2%} answered within {self.slo * 1e3:g} ms, "
            f"goal {GOAL:.0%}"
        )

    def as_json(self) -> dict[str, Any]:
        """Return it for programs; latencies in milliseconds."""
        report = self.report
        return {
            "target": self.target,
            "about": self.about,
            "rate": self.rate,
            "seconds": self.seconds,
            "slo_ms": self.slo * 1e3,
            "held": self.held,
            "share_within_slo": report.total.share_within(self.slo),
            "answers_per_second": report.total.ok / report.elapsed,
            "generator_cpu": report.cpu,
            "sent_late_p99_ms": report.lag.quantile(0.99) * 1e3,
            "calls": {name: _stats(stats) for name, stats in _named(report)},
        }

    def chart(self) -> Chart:
        """Draw latency by percentile."""
        return by_percentile(f"{self.rate:,.0f} calls a second", dict(_named(self.report)), self.slo)


def within(report: LoadReport, slo: float) -> bool:
    """Whether enough calls were answered with OK within so many seconds."""
    return report.total.share_within(slo) >= GOAL


def failures(stats: LoadStats) -> Iterator[str]:
    """Say what failed, by code."""
    for code, count in sorted(stats.codes.items()):
        if code:
            yield f"{count:,} failed with {code_name(code)}: {stats.messages[code] or 'no message'}"
    if stats.unsent:
        yield f"{stats.unsent:,} were not sent before their deadline"


def code_name(code: int) -> str:
    """Name a gRPC status code."""
    return _CODES.get(code, f"code {code}")


def by_percentile(title: str, series: Mapping[str, LoadStats], slo: float | None = None) -> Chart:
    """Draw latencies by percentile, towards the rare long ones ever wider."""
    return Chart(
        title=title,
        x=Axis(
            "percentile",
            log=True,
            ticks={1 / (1 - share): f"{share * 100:g}" for share in (0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)},
        ),
        y=Axis("latency in ms", log=True),
        series={
            name: [(1 / (1 - share), stats.quantile(share) * 1e3) for share in _DRAWN if _told(stats, share)]
            for name, stats in series.items()
            if stats.ok
        },
        limit=None if slo is None else (f"SLO {slo * 1e3:g} ms", slo * 1e3),
    )


def by_rate(title: str, series: Mapping[str, Sequence[tuple[float, LoadStats]]], slo: float) -> Chart:
    """Draw the 99th percentile by rate of arrival; the median of the probes at a rate."""
    return Chart(
        title=title,
        x=Axis("calls a second", log=True),
        y=Axis("p99 in ms", log=True),
        series={name: _p99s(probes) for name, probes in series.items()},
        limit=(f"SLO {slo * 1e3:g} ms", slo * 1e3),
    )


def _p99s(probes: Sequence[tuple[float, LoadStats]]) -> list[tuple[float, float]]:
    by_rate: dict[float, list[float]] = {}
    for rate, stats in probes:
        if stats.ok:
            by_rate.setdefault(rate, []).append(stats.quantile(0.99) * 1e3)
    return [(rate, median(found)) for rate, found in sorted(by_rate.items())]


def _told(stats: LoadStats, share: float) -> bool:
    """Whether there are calls beyond a share."""
    return stats.ok * (1 - share) >= 1


def _named(report: LoadReport) -> list[tuple[str, LoadStats]]:
    named = [(method.rpartition("/")[2], stats) for method, stats in report.methods]
    return [*named, ("all", report.total)] if len(named) > 1 else named


def _row(name: str, stats: LoadStats) -> tuple[str, ...]:
    latencies = [stats.quantile(share) for share in QUANTILES.values()] + [stats.max]
    return (name, f"{stats.calls:,}", f"{stats.ok:,}", *(f"{latency * 1e3:,.2f}" for latency in latencies))


def _stats(stats: LoadStats) -> dict[str, Any]:
    return {
        "calls": stats.calls,
        "ok": stats.ok,
        "unsent": stats.unsent,
        "codes": {code_name(code): count for code, count in sorted(stats.codes.items())},
        "latency_ms": {name: stats.quantile(share) * 1e3 for name, share in QUANTILES.items()}
        | {"mean": stats.mean * 1e3, "max": stats.max * 1e3},
    }
