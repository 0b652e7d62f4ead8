"""Reads what the Rust micro-benchmarks measured and writes the report docs/reports/bench.

`make bench` runs them. Criterion leaves a folder for each benchmark, with what it is called and what it took.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.load.report import about, table


@dataclass(frozen=True)
class Benchmark:
    """What one benchmark took, in nanoseconds a call."""

    name: str
    median: float
    low: float
    high: float
    """Bounds of the median, with a confidence of 95 %."""
    bytes_a_call: float | None

    def as_json(self, command: str) -> dict[str, object]:
        """Return it as a row of the report's file."""
        row = {
            "name": self.name,
            "value": _microseconds(self.median),
            "unit": "µs",
            "goal": None,
            "met": None,
        }
        return row | {
            "command": command,
            "low": _microseconds(self.low),
            "high": _microseconds(self.high),
        }

    def line(self) -> tuple[str, str, str, str]:
        """Return it as a line of the table."""
        spread = f"{_microseconds(self.low):,g} to {_microseconds(self.high):,g}"
        speed = f"{_four(self.bytes_a_call / self.median * 1e3):,g}" if self.bytes_a_call else ""
        return (self.name, f"{_microseconds(self.median):,g}", spread, speed)


def _microseconds(nanoseconds: float) -> float:
    return _four(nanoseconds / 1e3)


def _four(value: float) -> float:
    """Keep four digits."""
    return float(f"{value:.4g}")


def read(folder: Path) -> Iterator[Benchmark]:
    """Read all benchmarks below a folder of criterion's."""
    for file in sorted(folder.rglob("new/estimates.json")):
        about_it = json.loads(file.with_name("benchmark.json").read_text("utf8"))
        estimate = json.loads(file.read_text("utf8"))["median"]
        interval = estimate["confidence_interval"]
        yield Benchmark(
            name=about_it["full_id"],
            median=estimate["point_estimate"],
            low=interval["lower_bound"],
            high=interval["upper_bound"],
            bytes_a_call=(about_it["throughput"] or {}).get("Bytes"),
        )


def write(path: Path, benchmarks: Sequence[Benchmark]) -> None:
    """Write `path`.md and `path`.json."""
    context = about()
    rows = [benchmark.as_json("make bench") for benchmark in benchmarks]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(context | {"rows": rows}, indent=1, ensure_ascii=False)
    path.with_suffix(".json").write_text(content + "\n", "utf8")
    intro = (
        f"# Benchmarks\n\nCommit {context['commit']}, {context['date']}, on {context['machine']}. Made by "
        "`make bench`: one thread, short samples. A time is the median of a call, with the bounds of its 95 % "
        "confidence interval.\n\n"
    )
    lines = [benchmark.line() for benchmark in benchmarks]
    path.with_suffix(".md").write_text(intro + table(("what", "µs", "between", "MB/s"), lines) + "\n", "utf8")


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where criterion left its results")
    parser.add_argument(
        "--report", type=Path, required=True, metavar="FILE", help="write FILE.md and FILE.json"
    )
    arguments = parser.parse_args(argv)
    benchmarks = list(read(arguments.folder))
    if not benchmarks:
        print(f"no results in {arguments.folder}", file=sys.stderr)
        return 1
    write(arguments.report, benchmarks)
    return 0


if __name__ == "__main__":
    sys.exit(main())
