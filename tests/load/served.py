"""A sidecar process to measure, by the front that terminates its calls, and what calls of it cost."""

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
from recalld_sidecar import cli
from recalld_sidecar._core import LoadReport, LoadStats, load
from recalld_sidecar.load.report import failures

from tests.load.corpus import ROOT
from tests.load.report import Figures
from tests.support.sidecar import RunningSidecar, clean_environment

SLO = 0.05
"""Seconds within which 99 % of the calls must be answered."""
CONNECTIONS = 4

_BURNS, _RESTS = 0.005, 0.010
"""Seconds of the thread that burns the GIL: a third of the time."""


@dataclass(frozen=True)
class Target:
    """A method at an address, with its requests; the process that answers."""

    address: str
    pid: int
    method: str
    requests: Sequence[bytes]

    def call(
        self,
        *,
        seconds: float,
        rate: float | None = None,
        callers: int | None = None,
        warmup: float = 0.0,
    ) -> LoadReport:
        """Call it for a time, at a rate or by callers."""
        connections = CONNECTIONS if callers is None else min(callers, CONNECTIONS)
        return load(
            self.address,
            [(self.method, self.requests, 1.0)],
            rate=rate,
            callers=callers,
            seconds=seconds,
            warmup=warmup,
            connections=connections,
            timeout=5.0,
        )

    def answered(self, *, seconds: float, callers: int) -> LoadReport:
        """Call it by callers, who overload nothing: a call that fails would be no measurement, and ends the run."""
        report = self.call(seconds=seconds, callers=callers)
        failed = [*failures(report.total)]
        if failed or not report.total.calls:
            raise RuntimeError(f"{self.method} at {self.address}: {', '.join(failed) or 'no call was made'}")
        return report

    def cpu(self, *, seconds: float, callers: int) -> float:
        """Processor time of the answering process for a call, in seconds."""
        process = psutil.Process(self.pid)
        before = process.cpu_times()
        report = self.answered(seconds=seconds, callers=callers)
        after = process.cpu_times()
        return (after.user + after.system - before.user - before.system) / report.total.calls


@contextmanager
def served(data_dir: Path, *flags: str, burning: bool = False) -> Iterator[RunningSidecar]:
    """Serve a directory with these flags; `burning` adds a Python thread that holds the GIL a third of the time."""
    module = "tests.load.served" if burning else "recalld_sidecar"
    with tempfile.TemporaryDirectory(prefix="recalld-load-") as folder:
        command = [sys.executable, "-m", module, "serve", "--data-dir", str(data_dir)]
        command += ["--listen", f"unix:{folder}/recalld.sock", "--http", "off", *flags]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=clean_environment(),
        )
        sidecar = RunningSidecar(process, data_dir)
        try:
            sidecar.wait_until_serving()
            yield sidecar
        finally:
            sidecar.stop()


def note_failures(figures: Figures, what: str, stats: LoadStats) -> None:
    """Say what failed, if anything did: a figure of calls that fail is not what it seems."""
    figures.notes.extend(f"**{what}: {failure}.**" for failure in failures(stats))


def _burn() -> None:
    while True:
        end = time.perf_counter() + _BURNS
        while time.perf_counter() < end:
            pass
        time.sleep(_RESTS)


def main() -> int:
    """Run the `recalld` command beside a thread that burns the GIL."""
    # The sidecar waits for these in its main thread; one that this thread took would end the process.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    threading.Thread(target=_burn, daemon=True).start()
    return cli.main()


if __name__ == "__main__":
    sys.exit(main())
