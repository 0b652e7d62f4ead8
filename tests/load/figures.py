"""Measures the product's speed and size and writes the report docs/reports/load.

Each group compares the product with the least that the same work could cost, in turns in this run.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from recalld_sidecar import _core

from tests.load import (
    algorithms,
    batches,
    embedding,
    endurance,
    interference,
    namespaces,
    report,
    restart,
    search,
    space,
    tokens,
    transport,
    writes,
)
from tests.load.report import Figures
from tests.load.scale import FULL, LARGE, QUICK, Scale
from tests.load.stores import Workshop

GROUPS: dict[str, Callable[[Workshop, Scale], Figures]] = {
    "search": search.measure,
    "transport": transport.measure,
    "interference": interference.measure,
    "endurance": endurance.measure,
    "batches": batches.measure,
    "namespaces": namespaces.measure,
    "writes": writes.measure,
    "tokens": lambda _, scale: tokens.measure(scale),
    "embedding": lambda _, scale: embedding.measure(scale),
    "space": space.measure,
    "restart": restart.measure,
    "algorithms": lambda _, _scale: algorithms.measure(),
}


def measure(workshop: Workshop, scale: Scale, groups: Sequence[str]) -> list[tuple[Figures, str]]:
    """Measure groups; each comes with the command that measures it again."""
    measured = []
    for group in groups:
        figures = GROUPS[group](workshop, scale)
        print(report.markdown(figures), flush=True)
        large = " --large" if scale is LARGE else ""
        measured.append((figures, f"{report.COMMAND} --only {group}{large}"))
    return measured


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--only", nargs="+", choices=list(GROUPS), default=list(GROUPS), help="groups to measure"
    )
    parser.add_argument(
        "--report", type=Path, default=None, metavar="FILE", help="write FILE.md and FILE.json"
    )
    parser.add_argument(
        "--folder", type=Path, default=None, help="where the data is put: on the disk to be measured"
    )
    parser.add_argument(
        "--keep", type=Path, default=None, metavar="DIR", help="keep filled stores here for later runs"
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--large", action="store_true", help="also what takes hours: a million memories, many namespaces"
    )
    size.add_argument(
        "--quick", action="store_true", help="only see that everything works; says nothing of speed"
    )
    arguments = parser.parse_args(argv)
    if _core.build_profile() != "release" and not arguments.quick:
        print(
            "this build has its checks on, so its times mean nothing: build the release, or use --quick",
            file=sys.stderr,
        )
        return 1
    if arguments.keep:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="recalld-load-", dir=arguments.folder) as folder:
        scale = QUICK if arguments.quick else LARGE if arguments.large else FULL
        measured = measure(Workshop(Path(folder), arguments.keep), scale, arguments.only)
    if arguments.report:
        conditions = [
            f"Build: {_core.build_profile()}.",
            *(["A quick run, which says nothing of speed."] if arguments.quick else []),
            f"Load average of the machine: {load_before:.1f} before, {os.getloadavg()[0]:.1f} after.",
        ]
        report.write(arguments.report, measured, conditions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
