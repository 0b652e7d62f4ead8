"""Search beside other work of the same process: a writer that saturates, an index being built, a backup."""

import multiprocessing
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median

import lmdb
from recalld import Client
from recalld.v1.types_pb2 import Namespace
from recalld_sidecar.load.texts import Texts

from tests.load.report import Figures, at_most
from tests.load.rounds import ratio, turns
from tests.load.scale import Scale
from tests.load.served import Target, note_failures, served
from tests.load.stores import INDEX_AFTER, NAMESPACE, SERVICE, Workshop, search_requests, write_requests
from tests.support.sidecar import RunningSidecar

RATE = 200
"""Searches a second, which leave room for the other work."""
BUILD_RATE = 50
"""The same in the larger store, which scans while it has no index."""
QUERIES = 1_000
WRITERS = 64
DIFFERENT_WRITES = 30_000
MAX_TABLES = 64
SECONDS = 60
"""Longest wait for the backup to begin, and deadline of a call."""


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure idle and beside each kind of work."""
    figures = Figures(f"Search beside other work, native front, {RATE} a second, {scale.memories:,} memories")
    _beside_writes_and_a_backup(figures, workshop, scale)
    _beside_a_build(figures, workshop, scale)
    figures.notes.append(
        f"The writer is kept busy by {WRITERS} callers that write one memory a call into another namespace. The backup "
        "is a copy of the data file in one read transaction, by another process, again and again."
    )
    return figures


def _beside_writes_and_a_backup(figures: Figures, workshop: Workshop, scale: Scale) -> None:
    requests = search_requests(workshop.memories(scale.memories), QUERIES)
    with served(workshop.copy(scale.memories), "--front", "native") as sidecar:
        search = Target(sidecar.address, sidecar.pid, SERVICE + "Search", requests)
        rates: list[float] = []

        def beside_writes() -> float:
            write = Target(sidecar.address, sidecar.pid, SERVICE + "Write", _writes(scale, len(rates)))
            # The writes begin before the searches are measured and end after them.
            with ThreadPoolExecutor(1) as pool:
                length = scale.rate_seconds * 1.6
                writing = pool.submit(write.call, callers=WRITERS, seconds=length)
                p99 = _p99(figures, "beside a writer", search, scale)
                report = writing.result()
            rates.append(report.total.ok / report.elapsed)
            note_failures(figures, "writes beside searches", report.total)
            if report.total.calls > len(write.requests):
                figures.notes.append(
                    "**The writes came again before the end, and were found to be duplicates.**"
                )
            return p99

        def beside_a_backup() -> float:
            with _backing_up(sidecar.data_dir, workshop.fresh()):
                return _p99(figures, "beside a backup", search, scale)

        p99s = turns(
            {
                "idle": lambda: _p99(figures, "idle", search, scale),
                "writer": beside_writes,
                "backup": beside_a_backup,
            },
            rounds=scale.rate_rounds,
            warm_up=False,
        )
    figures.add("idle: p99", median(p99s["idle"]) * 1e3, "ms")
    figures.add("beside a writer that saturates: p99", median(p99s["writer"]) * 1e3, "ms")
    figures.add("writes a second meanwhile", median(rates), "1/s")
    figures.add("beside a writer / idle: p99", ratio(p99s["writer"], p99s["idle"]), "x", at_most(2))
    figures.add("beside a backup: p99", median(p99s["backup"]) * 1e3, "ms")
    figures.add("beside a backup / idle: p99", ratio(p99s["backup"], p99s["idle"]), "x")


def _beside_a_build(figures: Figures, workshop: Workshop, scale: Scale) -> None:
    count = scale.many_memories
    requests = search_requests(workshop.memories(count), QUERIES)
    data_dir = workshop.copy(count)
    flags = ("--front", "native", "--index-after", str(min(INDEX_AFTER, count // 2)))

    def p99(sidecar: RunningSidecar, what: str) -> float:
        search = Target(sidecar.address, sidecar.pid, SERVICE + "Search", requests)
        return _p99(figures, what, search, scale, BUILD_RATE)

    with served(data_dir, *flags) as sidecar:
        _wait_for_index(sidecar)
        idle = p99(sidecar, "with an index")
    # An index may be deleted at any time; it is built again from the start, and meanwhile searches scan.
    shutil.rmtree(data_dir / "index")
    with served(data_dir, *flags) as sidecar:
        during = p99(sidecar, "during a build")
        ended = _is_built(sidecar)
    about = f"{count:,} memories, {BUILD_RATE} a second"
    figures.add(f"{about}: p99", idle * 1e3, "ms")
    figures.add(f"{about}, while their index is built: p99", during * 1e3, "ms")
    if ended:
        figures.notes.append("The index was built before the measurement ended.")


def _is_built(sidecar: RunningSidecar) -> bool:
    with Client(sidecar.address, timeout=SECONDS) as client:
        stats = client.namespace(*NAMESPACE.segments).stats()
    return stats.indexed_passages == stats.passages


def _wait_for_index(sidecar: RunningSidecar) -> None:
    while not _is_built(sidecar):
        time.sleep(0.1)


def _p99(figures: Figures, what: str, search: Target, scale: Scale, rate: float = RATE) -> float:
    report = search.call(rate=rate, seconds=scale.rate_seconds, warmup=scale.rate_seconds / 5)
    note_failures(figures, what, report.total)
    return report.total.quantile(0.99)


def _writes(scale: Scale, turn: int) -> list[bytes]:
    """Memories that no other turn writes."""
    elsewhere = Namespace(segments=["written"])
    return write_requests(Texts(17 + turn).memories(min(DIFFERENT_WRITES, scale.memories * 3)), elsewhere)


@contextmanager
def _backing_up(data_dir: Path, folder: Path) -> Iterator[None]:
    """Copy a directory that is being served, again and again, in a process of its own."""
    folder.mkdir()
    context = multiprocessing.get_context("spawn")
    begun, ended = context.Event(), context.Event()
    process = context.Process(target=_back_up, args=(data_dir, folder, begun, ended))
    process.start()
    try:
        assert begun.wait(SECONDS), "the backup did not begin"
        yield
    finally:
        ended.set()
        process.join()


def _back_up(data_dir: Path, folder: Path, begun: Event, ended: Event) -> None:
    copy = folder / "data.mdb"
    # Without its lock the copy may hold pages of several states: it is made for the work that it is, and thrown away.
    with lmdb.open(str(data_dir), readonly=True, lock=False, max_dbs=MAX_TABLES) as environment:
        while not ended.is_set():
            begun.set()
            environment.copy(str(folder))
            copy.unlink()
