"""What a memory takes: bytes on disk, table by table, and of the process."""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

import lmdb

from tests.load.corpus import ROOT
from tests.load.report import Figures, at_most, table
from tests.load.scale import Scale
from tests.load.stores import INDEX_AFTER, NEVER, SERVICE, Workshop, opened, search_requests, write_requests

SEARCHES = 200
"""Searches that a process makes before it is looked at: pages of the data count when they were touched."""
FEW = 100
"""Memories of the store that the others are compared with. It is searched by the same words, so that both
processes have touched as much of the model."""
PROCESSES = 3
MAX_TABLES = 64
KIB = 1024


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure at both sizes."""
    figures = Figures("Space of a memory of 60 tokens")
    for count, goals in ((scale.memories, (at_most(2), at_most(0.6))), (scale.many_memories, (None, None))):
        disk = _bytes_used(workshop.filled(count)) - _bytes_used(workshop.filled(0))
        figures.add(f"disk, {count:,} memories", disk / count / KIB, "KiB", goals[0])
        resident = _resident(workshop, count)
        figures.add(f"process (RSS), {count:,} memories", resident["VmRSS"] / KIB, "KiB", goals[1])
        figures.add(f"process (RSS), {count:,} memories: of its own", resident["RssAnon"] / KIB, "KiB")
        figures.add(f"process (RSS), {count:,} memories: pages of files", resident["RssFile"] / KIB, "KiB")
    disk = _bytes_used(_written_singly(workshop, scale.memories)) - _bytes_used(workshop.filled(0))
    figures.add(f"disk, {scale.memories:,} memories, written one a call", disk / scale.memories / KIB, "KiB")
    figures.notes.append(
        f"RSS is that of a process that opened the store and made {SEARCHES} searches, less that of one on "
        f"{FEW} memories. Pages of files are the data file's, which the system takes back when it needs the "
        "memory."
    )
    figures.notes.append(
        f"The bytes on disk of the {scale.memories:,} memories, written 500 a call, by table:"
    )
    figures.notes.append(_tables(workshop.filled(scale.memories), scale.memories))
    return figures


def _written_singly(workshop: Workshop, count: int) -> Path:
    path = workshop.fresh()
    with opened(path, index_after=NEVER) as store:
        for request in write_requests(workshop.memories(count)):
            store.call(SERVICE + "Write", request)
    return path


def _bytes_used(directory: Path) -> int:
    with opened(directory) as store:
        return store.core.store_stats().bytes_used


def _tables(directory: Path, count: int) -> str:
    """Bytes a memory of each table of a closed store."""
    with lmdb.open(str(directory), readonly=True, lock=False, max_dbs=MAX_TABLES) as environment:
        page = environment.stat()["psize"]
        with environment.begin() as transaction:
            names = [bytes(name) for name, _ in transaction.cursor()]
        lines = []
        for name in names:
            handle = environment.open_db(name, create=False)
            with environment.begin() as transaction:
                stat = transaction.stat(handle)
            pages = stat["branch_pages"] + stat["leaf_pages"] + stat["overflow_pages"]
            lines.append((name.decode(), pages * page / count, stat["entries"]))
        used = (environment.info()["last_pgno"] + 1) * page / count
    lines.sort(key=lambda line: -line[1])
    lines.append(("free pages and roots", used - sum(size for _, size, _ in lines), 0))
    return table(
        ("table", "bytes a memory", "entries"),
        [(name, f"{size:,.0f}", f"{entries:,}") for name, size, entries in lines if round(size)],
    )


def _resident(workshop: Workshop, count: int) -> dict[str, float]:
    """Bytes a memory of a process, by kind."""
    taken: dict[str, list[float]] = {}
    for _ in range(PROCESSES):
        few, many = (_process(workshop.filled(FEW), count), _process(workshop.filled(count), count))
        for kind, size in many.items():
            taken.setdefault(kind, []).append((size - few[kind]) / (count - FEW))
    return {kind: median(sizes) for kind, sizes in taken.items()}


def _process(directory: Path, count: int) -> dict[str, int]:
    command = [sys.executable, "-m", "tests.load.space", str(directory), str(count)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    sizes: dict[str, int] = json.loads(done.stdout)
    return sizes


def main() -> None:
    """Search a store for some of so many memories, then say how much memory this process takes."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("memories", type=int)
    arguments = parser.parse_args()
    requests = search_requests(Workshop(arguments.directory).memories(arguments.memories), SEARCHES)
    with opened(arguments.directory) as store:
        if store.core.store_stats().memories >= INDEX_AFTER:
            store.wait_for_index()
        for request in requests:
            store.call(SERVICE + "Search", request)
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    kinds = ("VmRSS", "RssAnon", "RssFile")
    print(json.dumps({kind: int(status[kind].removesuffix("kB")) * KIB for kind in kinds}))


if __name__ == "__main__":
    main()
