"""Searches and writes by many clients for a long time: whether anything fails, is lost, is late to be found, or grows.

The rate is a share of the highest that holds the SLO with the same mixture, found first on the same process.
"""

import threading
from dataclasses import dataclass

from recalld import Client, RecalldError
from recalld.v1.types_pb2 import Namespace
from recalld_sidecar import _core
from recalld_sidecar._core import LoadReport, load
from recalld_sidecar.load import report as load_report
from recalld_sidecar.load.rate import highest_rate
from recalld_sidecar.load.texts import MODEL, Texts

from tests.load.report import Figures, at_most
from tests.load.scale import Scale
from tests.load.served import SLO, note_failures, served
from tests.load.stores import SERVICE, Workshop, search_requests, write_requests
from tests.support.sidecar import RunningSidecar

CLIENTS = 64
"""Connections, each of which calls without waiting for its answers."""
WRITES = 0.1
"""Share of the calls."""
SHARE = 0.8
"""Of the highest rate."""
QUERIES = 1_000
FIRST = 500.0
"""Calls a second at which the highest rate is looked for first."""
PROBED, WRITTEN, OWN = "probed", "written", "own"
"""Namespaces: of the writes while the rate is looked for, of those that are counted, and of who reads what it wrote."""
PAUSE = 0.05
"""Seconds between two writes of that one."""
TIMEOUT = 5.0


@dataclass(frozen=True)
class Sample:
    """What the process takes at a moment."""

    memories: int
    own_bytes: int
    file_bytes: int

    @classmethod
    def of(cls, sidecar: RunningSidecar) -> "Sample":
        """Look now."""
        with Client(sidecar.address, timeout=TIMEOUT) as client:
            return cls(client.stats().memories, sidecar.own_bytes, sidecar.file_bytes)


class OwnReader(threading.Thread):
    """A client that looks for each of its writes as soon as it is acknowledged."""

    def __init__(self, address: str) -> None:
        """Prepare to call the sidecar at `address`."""
        super().__init__(name="own-reader")
        self._address = address
        self._ended = threading.Event()
        self.looked, self.stale, self.failed = 0, 0, 0

    def run(self) -> None:
        """Write and look until the end."""
        with Client(self._address, timeout=TIMEOUT) as client:
            namespace = client.namespace(OWN)
            while not self._ended.wait(PAUSE):
                mark = f"mark{self.looked:07d}x"
                self.looked += 1
                try:
                    written = namespace.write(f"{mark} was written and is looked for.")
                    found = namespace.search(mark, limit=1)
                except RecalldError:
                    self.failed += 1
                    continue
                self.stale += [hit.id for hit in found] != [written.id]

    def end(self) -> None:
        """Return once it has stopped."""
        self._ended.set()
        self.join()


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Find the rate, and hold it."""
    seconds = scale.endurance_seconds
    figures = Figures(
        f"{CLIENTS} clients for {seconds:,g} s, searches with one write in {1 / WRITES:g} calls"
    )
    searches = search_requests(workshop.memories(scale.memories), QUERIES)
    data_dir = workshop.copy(scale.memories)
    with served(data_dir, "--front", "native") as sidecar:
        highest = _highest_rate(sidecar, searches, scale)
        figures.add("highest rate with p99 < 50 ms, with writes", highest, "1/s")
        rate = max(SHARE * highest, 1.0)
        # More than will be sent: one that came again would be a duplicate.
        writes = _writes(WRITTEN, 31, round(2 * WRITES * rate * seconds) + 100)
        reader = OwnReader(sidecar.address)
        warm: list[Sample] = []
        sampler = threading.Timer(seconds / 3, lambda: warm.append(Sample.of(sidecar)))
        sampler.start()
        reader.start()
        report = _load(sidecar, searches, writes, rate, seconds)
        reader.end()
        sampler.join()
        (before,), after = warm, Sample.of(sidecar)
        with Client(sidecar.address, timeout=TIMEOUT) as client:
            kept = client.namespace(WRITTEN).stats().memories
    (_, searched), (_, written) = report.methods
    assert written.calls <= len(writes)
    held = f"at {SHARE:.0%} of it"
    for name, stats in (("searches", searched), ("writes", written)):
        figures.add(f"{held}: {name} answered a second", stats.ok / report.elapsed, "1/s")
        figures.add(f"{held}: p99 of {name}", stats.quantile(0.99) * 1e3, "ms")
    failed = report.total.calls - report.total.ok + reader.failed
    figures.add(f"{held}: calls that failed", failed, "", at_most(0))
    figures.add(f"{held}: acknowledged writes that are lost", max(written.ok - kept, 0), "", at_most(0))
    figures.add(f"{held}: own writes not found at once", reader.stale, "", at_most(0))
    found = _core.verify(str(data_dir), str(MODEL))
    figures.add("what `recalld verify` finds wrong afterwards", len(found), "", at_most(0))
    more = max(after.memories - before.memories, 1) * 1024
    figures.add("own memory, growth a memory", (after.own_bytes - before.own_bytes) / more, "KiB")
    figures.add("data file, growth a memory", (after.file_bytes - before.file_bytes) / more, "KiB")
    note_failures(figures, held, report.total)
    figures.notes.append(
        f"Searches are in {scale.memories:,} memories, writes go to another namespace. {written.ok:,} were "
        f"acknowledged, and a further client looked for each of its {reader.looked:,} writes at once. Growth is from "
        f"the end of the first third, {before.memories:,} memories and {before.own_bytes / 2**20:,.0f} MiB of the "
        f"process's own, to {after.memories:,} and {after.own_bytes / 2**20:,.0f} MiB: the store keeps what is "
        "written, the index holds vectors of it, and the journal is kept whole."
    )
    return figures


def _highest_rate(sidecar: RunningSidecar, searches: list[bytes], scale: Scale) -> float:
    writes = _writes(PROBED, 29, scale.memories)

    def held(rate: float, seconds: float) -> bool:
        return load_report.within(_load(sidecar, searches, writes, rate, seconds), SLO)

    short = scale.probe_seconds
    return highest_rate(held, first=FIRST, short=short, long=4 * short, precision=0.1)


def _load(
    sidecar: RunningSidecar, searches: list[bytes], writes: list[bytes], rate: float, seconds: float
) -> LoadReport:
    calls = [(SERVICE + "Search", searches, 1 - WRITES), (SERVICE + "Write", writes, WRITES)]
    return load(sidecar.address, calls, rate=rate, seconds=seconds, connections=CLIENTS, timeout=TIMEOUT)


def _writes(namespace: str, seed: int, count: int) -> list[bytes]:
    return write_requests(Texts(seed).memories(count), Namespace(segments=[namespace]))
