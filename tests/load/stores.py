"""Stores with memories in them, made once a run and then copied or opened by each measurement."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.types_pb2 import Namespace
from recalld_sidecar import _core
from recalld_sidecar.load.texts import MODEL, Texts

SERVICE = "/recalld.v1.MemoryService/"
NAMESPACE = Namespace(segments=["load"])
CALLER = "load"
NEVER = 2**32 - 1
"""An `index_after` that no namespace reaches: every search scans."""
INDEX_AFTER = 20_000
"""The product's default."""

_BATCH = 500
_SEED = 7


class Store:
    """A core in this process on a directory, with one namespace."""

    def __init__(self, directory: Path, *, index_after: int = INDEX_AFTER) -> None:
        self.core = _core.Core(str(directory), str(MODEL), index_after=index_after)

    def call(self, method: str, request: bytes) -> bytes:
        """Make a call of the core."""
        return self.core.dispatch(method, CALLER, request, None)

    def write(self, texts: Sequence[str]) -> None:
        """Write memories, many at a time."""
        for start in range(0, len(texts), _BATCH):
            items = [pb.WriteItem(content=text) for text in texts[start : start + _BATCH]]
            self.call(
                SERVICE + "Write", pb.WriteRequest(namespace=NAMESPACE, items=items).SerializeToString()
            )

    def wait_for_index(self) -> None:
        """Wait until every passage is in the approximate index."""
        while True:
            stats = self.core.namespace_stats(NAMESPACE.segments)
            if stats.indexed_passages == stats.passages:
                return
            time.sleep(0.05)


@contextmanager
def opened(directory: Path, *, index_after: int = INDEX_AFTER) -> Iterator[Store]:
    """Open a directory for as long as it is needed."""
    store = Store(directory, index_after=index_after)
    try:
        yield store
    finally:
        store.core.close()


class Workshop:
    """A folder for the data of a run, on the file system that is measured."""

    def __init__(self, folder: Path, kept: Path | None = None) -> None:
        """Put data into `folder`, and filled stores into `kept`, where a later run finds them again."""
        self._folder = folder
        self._kept = kept or folder
        self._copies = 0

    def fresh(self) -> Path:
        """Return a path where nothing is."""
        self._copies += 1
        return self._folder / f"fresh-{self._copies}"

    def memories(self, count: int) -> list[str]:
        """Return the texts of a filled store."""
        return Texts(_SEED).memories(count)

    def filled(self, count: int) -> Path:
        """Return a closed store of so many memories, with its approximate index where it is large enough.

        Who writes to it takes a copy.
        """

        def fill(path: Path) -> None:
            with opened(path, index_after=NEVER) as store:
                store.write(self.memories(count))
            if count >= INDEX_AFTER:
                with opened(path) as store:
                    store.wait_for_index()

        return self.made(f"filled-{count}", fill)

    def made(self, name: str, fill: Callable[[Path], None]) -> Path:
        """Return what `fill` made of the path that it was given, once."""
        path = self._kept / name
        if not path.exists():
            # One that was left half filled is begun again.
            aside = self._kept / f"{name}.part"
            shutil.rmtree(aside, ignore_errors=True)
            fill(aside)
            aside.rename(path)
        return path

    def copy(self, count: int) -> Path:
        """Return a copy of a filled store."""
        path = self.fresh()
        shutil.copytree(self.filled(count), path)
        # Else the first commit waits until the system has written all of the copy.
        with (path / "data.mdb").open("rb") as copied:
            os.fsync(copied.fileno())
        return path


def search_requests(memories: list[str], count: int) -> list[bytes]:
    """Return searches for memories that are there, five hits each."""
    queries = Texts(_SEED + 1).queries(memories, count)
    return [pb.SearchRequest(namespace=NAMESPACE, query=query).SerializeToString() for query in queries]


def write_requests(texts: Sequence[str], namespace: Namespace = NAMESPACE) -> list[bytes]:
    """Return writes of one memory each."""
    return [
        pb.WriteRequest(namespace=namespace, items=[pb.WriteItem(content=text)]).SerializeToString()
        for text in texts
    ]


def brief_requests(memories: list[str], count: int) -> list[bytes]:
    """Return briefs of 1,200 tokens for the same queries."""
    queries = Texts(_SEED + 1).queries(memories, count)
    return [pb.BriefRequest(namespace=NAMESPACE, query=query).SerializeToString() for query in queries]
