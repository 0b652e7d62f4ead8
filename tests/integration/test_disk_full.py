"""A full disk refuses what does not fit, keeps all that was acknowledged, and is no reason to start again.

The disk is full in three ways: a limit on the size of the process's files, which any user can set on a
process from outside and lift again; a small file system of its own, where that is permitted; and the store's
own limit.
"""

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from recalld import Client, Item, Namespace, ResourceExhausted
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar import _core

from tests.support.sidecar import RunningSidecar, running_sidecar
from tests.support.store import MODEL_DIR, Store, open_store, refused
from tests.support.texts import sentences

SECONDS = 60
MIB = 1 << 20
TEXTS = sentences(2_000, seed=12)


def content(number: int) -> str:
    """About 30 KiB that begin with the number."""
    start = number * 7 % 1_000
    return f"Report number {number}. " + " ".join(TEXTS[start : start + 300])


def fill(namespace: Namespace) -> list[str]:
    """Write until the disk is full; the contents that were acknowledged, by number."""
    acked: list[str] = []
    while True:
        text = content(len(acked))
        try:
            receipt = namespace.write(text, key=f"k{len(acked)}")
        except ResourceExhausted as error:
            refusal = error
            break
        assert receipt.version == 1
        acked.append(text)
        assert len(acked) < 10_000, "the disk does not get full"
    assert refusal.reason == "STORE_FULL"
    # Waiting does not help, so that nobody is told to wait.
    assert refusal.retry_after is None
    return acked


def check(namespace: Namespace, acked: list[str]) -> None:
    """All acknowledged writes are there, and nothing else."""
    for start in range(0, len(acked), 100):
        keys = [f"k{number}" for number in range(start, min(start + 100, len(acked)))]
        details = namespace.get(keys=keys)
        assert [memory.content for memory in details] == acked[start : start + 100]
    assert namespace.stats().memories == len(acked)
    assert namespace.get(keys=[f"k{len(acked)}"]).missing_keys
    hits = namespace.search(f"report number {len(acked) - 1}", limit=10)
    assert f"k{len(acked) - 1}" in {hit.key for hit in hits}
    assert namespace.brief("report").text


@contextmanager
def namespace_of(sidecar: RunningSidecar) -> Iterator[Namespace]:
    with Client(sidecar.address, timeout=SECONDS) as client:
        yield client.namespace("full")


def fill_and_go_on(sidecar: RunningSidecar, make_space: Callable[[], object]) -> None:
    """Fill the disk, see everything intact, make space, and see writes work without a restart."""
    with namespace_of(sidecar) as namespace:
        acked = fill(namespace)
        assert acked
        check(namespace, acked)
        # A refused write leaves nothing, however often it is tried, and a batch no part of itself.
        batch = [Item(content(number)) for number in range(5_000, 5_020)]
        for _ in range(3):
            with pytest.raises(ResourceExhausted):
                namespace.write_many(batch)
        check(namespace, acked)
        make_space()
        for number in range(len(acked), len(acked) + 20):
            acked.append(content(number))
            assert namespace.write(acked[-1], key=f"k{number}").version == 1
        ids = [receipt.id for receipt in namespace.write_many(batch)]
        assert namespace.delete(ids).deleted == len(batch)
        check(namespace, acked)
    assert sidecar.stop() == 0
    assert _core.verify(str(sidecar.data_dir), MODEL_DIR) == []
    with running_sidecar(sidecar.data_dir) as again, namespace_of(again) as namespace:
        check(namespace, acked)


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    with running_sidecar(tmp_path / "data") as sidecar:
        process = psutil.Process(sidecar.pid)
        file = tmp_path / "data" / "data.mdb"
        _, hard = process.rlimit(psutil.RLIMIT_FSIZE)
        process.rlimit(psutil.RLIMIT_FSIZE, (file.stat().st_size + 4 * MIB, hard))
        fill_and_go_on(sidecar, lambda: process.rlimit(psutil.RLIMIT_FSIZE, (resource.RLIM_INFINITY, hard)))


def test_a_full_file_system(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"this machine does not permit a file system of its own: {mounted.stderr.strip()}")
    try:
        with running_sidecar(disk / "data") as sidecar:
            fill_and_go_on(
                sidecar,
                lambda: subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True),
            )
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def write_until_full(store: Store) -> list[str]:
    ids: list[str] = []
    with refused("STORE_FULL"):
        while len(ids) < 10_000:
            ids += [
                receipt.id
                for receipt in store.write(["full"], [pb.WriteItem(content=content(len(ids)))]).receipts
            ]
    return ids


def test_the_size_limit_of_the_store(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with open_store(data_dir, max_store_bytes=4 * MIB) as store:
        ids = write_until_full(store)
        assert ids
        assert store.store_stats().bytes_used <= 4 * MIB
        assert [memory.content for memory in store.get_all(["full"], ids).values()] == [
            content(number) for number in range(len(ids))
        ]
        assert store.stats(["full"]).memories == len(ids)
    with open_store(data_dir, max_store_bytes=32 * MIB) as store:
        assert len(store.get_all(["full"], ids)) == len(ids)
        assert len(write_until_full(store)) > len(ids)
    assert _core.verify(str(data_dir), MODEL_DIR) == []


def test_deleting_makes_space(tmp_path: Path) -> None:
    """Of a store that is full: what one deletes must be something that one can still delete."""
    with open_store(tmp_path / "data", max_store_bytes=8 * MIB) as store:
        ids = write_until_full(store)
        half = ids[: len(ids) // 2]
        for identifier in half:
            assert store.delete(["full"], ids=[identifier]).deleted == 1
        (receipt,) = store.write(["full"], [pb.WriteItem(content="There is room again.")]).receipts
        assert receipt.outcome == pb.WRITE_OUTCOME_STORED
        assert store.stats(["full"]).memories == len(ids) - len(half) + 1
