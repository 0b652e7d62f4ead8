"""Durable writes, beside a bare LMDB loop that commits the same content and vector on the same disk."""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import lmdb
from recalld_sidecar.load.texts import Texts

from tests.load.report import Figures, at_least, at_most
from tests.load.rounds import garbage_kept, in_turns, ratio
from tests.load.scale import Scale
from tests.load.stores import NEVER, SERVICE, Store, Workshop, opened, write_requests

WRITE = SERVICE + "Write"
VECTOR_BYTES = 4 + 256
"""A stored vector: a scale and a byte a dimension."""
MAP_BYTES = 1 << 34
WRITER_THREAD = "recalld-writer"


class BareLoop:
    """The least that a durable write costs: a key with the content and the vector, committed with a sync."""

    def __init__(self, directory: Path) -> None:
        self._environment = lmdb.open(str(directory), map_size=MAP_BYTES)
        self._next = 0

    def commit(self, contents: Sequence[bytes]) -> None:
        """Commit so many in one transaction."""
        with self._environment.begin(write=True) as transaction:
            for content in contents:
                self._next += 1
                transaction.put(self._next.to_bytes(8, "big"), content + bytes(VECTOR_BYTES))

    def close(self) -> None:
        """Release the directory."""
        self._environment.close()


@contextmanager
def bare_loop(directory: Path) -> Iterator[BareLoop]:
    """Run a loop on a directory of its own."""
    loop = BareLoop(directory)
    try:
        yield loop
    finally:
        loop.close()


def measure(workshop: Workshop, scale: Scale) -> Figures:
    """Measure with one caller and with many."""
    figures = Figures("Durable writes of one memory")
    texts = Texts(11)
    with opened(workshop.fresh(), index_after=NEVER) as store, bare_loop(workshop.fresh()) as loop:
        # Enough that the trees have their depth.
        store.write(texts.memories(scale.memories))
        for _ in range(scale.memories // 100):
            loop.commit([memory.encode() for memory in texts.memories(100)])
        _one_caller(figures, scale, texts, store, loop)
        _many_callers(figures, scale, texts, store, loop)
    figures.notes.append(
        "The bare loop is Python's `lmdb` on the same file system, with its sync on, which puts content and "
        "vector under one key: at one caller one memory a commit, and else as many a commit as there are "
        f"callers. Both stores hold {scale.memories:,} memories before. No approximate index is built meanwhile."
    )
    return figures


def _one_caller(figures: Figures, scale: Scale, texts: Texts, store: Store, loop: BareLoop) -> None:
    count = scale.writes * (scale.rounds + 1)
    requests = write_requests(texts.memories(count))
    contents = [text.encode() for text in texts.memories(count)]
    timings = in_turns(
        {
            "write": lambda index: store.call(WRITE, requests[index]),
            "lmdb": lambda index: loop.commit([contents[index]]),
        },
        rounds=scale.rounds,
        calls_a_round=scale.writes,
    )
    write, bare = timings["write"], timings["lmdb"]
    figures.add("1 caller: p50", write.p50 * 1e3, "ms")
    figures.add("1 caller: p99", write.p99 * 1e3, "ms")
    figures.add("1 caller: writes a second", 1 / write.mean, "1/s")
    figures.add("bare LMDB, 1 a commit: p50", bare.p50 * 1e3, "ms")
    figures.add("1 caller / bare LMDB, 1 a commit: p50", ratio(write.p50s, bare.p50s), "x", at_most(1.3))


def _many_callers(figures: Figures, scale: Scale, texts: Texts, store: Store, loop: BareLoop) -> None:
    count = scale.callers * scale.writes_a_caller
    product, bare, busy = [], [], []
    with ThreadPoolExecutor(scale.callers) as pool, garbage_kept():
        for _ in range(scale.rounds):
            before = _writer_seconds()
            seconds = _together(pool, store, write_requests(texts.memories(count)), scale.callers)
            product.append(count / seconds)
            busy.append((_writer_seconds() - before) / count)
            contents = [text.encode() for text in texts.memories(count)]
            start = time.perf_counter()
            for first in range(0, count, scale.callers):
                loop.commit(contents[first : first + scale.callers])
            bare.append(count / (time.perf_counter() - start))
    callers = f"{scale.callers} callers"
    figures.add(f"{callers}: writes a second", median(product), "1/s")
    figures.add(f"{callers}: processor time of the writer thread a write", median(busy) * 1e6, "µs")
    figures.add(f"bare LMDB, {scale.callers} a commit: writes a second", median(bare), "1/s")
    figures.add(f"{callers} / bare LMDB, {scale.callers} a commit", ratio(product, bare), "x", at_least(0.5))


def _together(pool: ThreadPoolExecutor, store: Store, requests: list[bytes], callers: int) -> float:
    """Let every caller write its share, one after the other, all starting at once; return the seconds."""
    start = threading.Barrier(callers + 1)

    def write(mine: list[bytes]) -> None:
        start.wait()
        for request in mine:
            store.call(WRITE, request)

    done = [pool.submit(write, requests[caller::callers]) for caller in range(callers)]
    start.wait()
    started = time.perf_counter()
    for caller in done:
        caller.result()
    return time.perf_counter() - started


def _writer_seconds() -> float:
    """Processor time of the core's writer threads so far; schedstat counts nanoseconds."""
    seconds = 0.0
    for task in Path("/proc/self/task").iterdir():
        if (task / "comm").read_text().strip() == WRITER_THREAD:
            seconds += int((task / "schedstat").read_text().split()[0]) / 1e9
    return seconds
