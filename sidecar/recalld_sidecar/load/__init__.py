"""`recalld load`: measures whether a running sidecar holds an SLO on this machine, and up to which rate.

It fills namespaces of its own, calls at a constant rate that does not wait for answers, says how long the answers
took, and deletes what it wrote. Exit status: 0 the SLO was held, 1 it was not, 2 it could not be measured.
"""

import argparse
import json
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recalld import Client, RecalldError, Unavailable

from recalld_sidecar._core import load
from recalld_sidecar.demo.progress import Progress
from recalld_sidecar.load import report
from recalld_sidecar.load.rate import highest_rate
from recalld_sidecar.load.workload import Mix, Workload

_HELD, _NOT_HELD, _NOT_MEASURED = 0, 1, 2

_CALL_SECONDS = 60.0
"""Deadline of a call that fills or clears."""
_WARMUP = 0.2
"""Time before the measurement, as a share of it."""
_PROBE = 0.1
"""Length of a probe of `--find-rate`, as a share of the whole run."""
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's flags."""
    parser.add_argument(
        "--target", metavar="ADDRESS", help="unix:PATH or HOST:PORT (where `recalld serve` listens)"
    )
    parser.add_argument("--rate", type=_positive, default=1_000.0, metavar="N", help="calls a second (1000)")
    parser.add_argument(
        "--duration",
        type=_length,
        default=30.0,
        metavar="LENGTH",
        help="time that is measured, as 30s or 2m (30s)",
    )
    parser.add_argument(
        "--slo",
        type=_length,
        default=0.05,
        metavar="LENGTH",
        help="99 %% of the calls must be answered in it (50ms)",
    )
    parser.add_argument(
        "--find-rate",
        action="store_true",
        help="find the highest rate that holds the SLO, beginning at --rate",
    )
    parser.add_argument("--namespaces", type=_count, default=10, metavar="N", help="namespaces to fill (10)")
    parser.add_argument("--memories", type=_count, default=1_000, metavar="N", help="memories in each (1000)")
    parser.add_argument("--writes", type=_share, default=0.1, metavar="SHARE", help="calls that write (10%%)")
    parser.add_argument(
        "--briefs", type=_share, default=0.1, metavar="SHARE", help="calls for a brief (10%%)"
    )
    parser.add_argument("--connections", type=_count, default=4, metavar="N", help="connections (4)")
    parser.add_argument(
        "--timeout", type=_length, default=5.0, metavar="LENGTH", help="deadline of a call (5s)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="makes other texts and another order (0)"
    )
    parser.add_argument("--keep", action="store_true", help="leave the namespaces there")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="also write FILE.md and FILE.json, with pictures"
    )
    parser.add_argument("--json", action="store_true", help="answer in JSON")


def run(args: argparse.Namespace, target: str) -> int:
    """Measure the sidecar at `target` and return the exit status."""
    if Mix(args.writes, args.briefs).searches < 0:
        return _failed("--writes and --briefs are more than all calls")
    try:
        with Client(target, timeout=_CALL_SECONDS) as client, _filled(client, args) as workload:
            runs = _measure(target, workload, args)
    except Unavailable as error:
        if error.reason:
            return _failed(str(error))
        return _failed(
            f"no sidecar answers at {target}: start one with `recalld serve`, or give another --target"
        )
    except (RecalldError, OSError, ValueError) as error:
        return _failed(str(error))
    measured = runs[-1]
    if args.json:
        print(json.dumps(measured.as_json(), indent=2))
    else:
        print(*measured.lines(), sep="\n")
    if args.report:
        try:
            _write(args.report, runs)
        except OSError as error:
            return _failed(f"cannot write {error.filename}: {error.strerror}")
    return _HELD if measured.held else _NOT_HELD


def _measure(target: str, workload: Workload, args: argparse.Namespace) -> list[report.Run]:
    """Run at the given rate, or at the highest that is held; all runs, of which the last is what was asked for."""
    mix = Mix(args.writes, args.briefs)
    shares = {"Search": mix.searches, "Write": mix.writes, "Brief": mix.briefs}
    about = (
        f"{args.namespaces:,} namespaces of {args.memories:,} memories; "
        f"{', '.join(f'{share:.0%} {name}' for name, share in shares.items() if share)}; "
        f"{args.connections} connections"
    )
    runs: list[report.Run] = []

    def probe(rate: float, seconds: float) -> bool:
        warmup = seconds * _WARMUP
        found = load(
            target,
            # Of each probe's own: what another has written would be found to be a duplicate.
            workload.calls(mix, rate * (seconds + warmup)),
            rate=rate,
            seconds=seconds,
            warmup=warmup,
            connections=args.connections,
            timeout=args.timeout,
            seed=args.seed,
        )
        run = report.Run(target, about, rate, seconds, args.slo, found)
        runs.append(run)
        if args.find_rate:
            p99 = found.total.quantile(0.99) * 1e3
            verdict = "held" if run.held else "not held"
            print(f"{rate:,.0f} a second for {seconds:g} s: p99 {p99:.1f} ms, {verdict}", file=sys.stderr)
        return run.held

    if args.find_rate:
        highest_rate(probe, first=args.rate, short=args.duration * _PROBE, long=args.duration)
    else:
        probe(args.rate, args.duration)
    return runs


@contextmanager
def _filled(client: Client, args: argparse.Namespace) -> Iterator[Workload]:
    """Fill the namespaces of a run, and clear them in the end, whatever happens between."""
    workload = Workload(
        secrets.token_hex(4), namespaces=args.namespaces, memories=args.memories, seed=args.seed
    )
    try:
        workload.fill(client, Progress("writing memories", args.namespaces * args.memories).advance)
        yield workload
    finally:
        if args.keep:
            print(f"kept in namespaces {workload.name}/...", file=sys.stderr)
        else:
            workload.clear(client)


def _write(path: Path, runs: list[report.Run]) -> None:
    measured = runs[-1]
    charts = {"": measured.chart()}
    if len(runs) > 1:
        probes = [(run.rate, run.report.total) for run in runs]
        charts["-rates"] = report.by_rate("p99 by rate", {"all calls": probes}, measured.slo)
    text = "\n".join(measured.lines())
    pictures = [f"![{chart.title}]({path.name}{name}.svg)" for name, chart in charts.items()]
    files = {
        ".json": json.dumps(measured.as_json(), indent=1) + "\n",
        ".md": "\n\n".join(["# Load", f"```text\n{text}\n```", *pictures]) + "\n",
        **{f"{name}.svg": chart.svg() for name, chart in charts.items()},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    for ending, content in files.items():
        path.with_name(path.name + ending).write_text(content, "utf8")


def _failed(message: str) -> int:
    print("recalld:", " ".join(message.split()), file=sys.stderr)
    return _NOT_MEASURED


def _count(argument: str) -> int:
    number = int(argument)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{argument} is not at least 1")
    return number


def _positive(argument: str) -> float:
    number = float(argument)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{argument} is not above 0")
    return number


def _share(argument: str) -> float:
    text, _, rest = argument.partition("%")
    share = float(text) / (100 if "%" in argument else 1)
    if rest or not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a share such as 10% or 0.1")
    return share


def _length(argument: str) -> float:
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s|m)", argument)
    seconds = float(match[1]) * _UNITS[match[2]] if match else 0.0
    if not seconds:
        raise argparse.ArgumentTypeError(f"{argument!r} is not a length of time such as 50ms, 30s or 2m")
    return seconds
