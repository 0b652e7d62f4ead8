"""Many clients on one sidecar at the same time: no error, no acknowledgement lost, own writes seen at once.

Half of the clients block in threads, the others are tasks of one event loop; each has its own connection.
"""

import asyncio
import os
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from recalld import AsyncClient, Client, Item, Search
from recalld_sidecar import _core

from tests.support.sidecar import RunningSidecar, running_sidecar
from tests.support.store import MODEL_DIR
from tests.support.texts import mark, sentence

CLIENTS = 64
SHARED = 8
"""Clients of one namespace, so that their writes meet."""
BATCH = 5
SECONDS = 60
"""Deadline of a call: an overloaded machine is slow, and that is no error."""
SPARE_BYTES = 64 << 20
"""Growth of memory that is no leak: buffers of threads, as long as the largest namespace."""
INDEXED_BYTES = 1024
"""Of memory for each memory more: an approximate index holds its vector and links."""
DURATION = float(os.environ.get("RECALLD_SOAK_SECONDS", "60" if os.environ.get("CI") else "10"))


@dataclass
class Caller:
    """What one client writes, and what it knows to be stored."""

    number: int
    contents: dict[str, str] = field(default_factory=dict)
    """By id, of what was acknowledged."""
    versions: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Version and content by key."""
    rounds: int = 0

    def __post_init__(self) -> None:
        self.rng = random.Random(self.number)
        self.namespace = ("soak", str(self.number // SHARED))

    def content(self) -> str:
        return f"{mark(self.rng)} {sentence(self.rng)}"

    def key(self) -> str:
        return f"key-{self.number}-{self.rng.randrange(3)}"

    def check_found(self, found: Search, identifier: str, content: str) -> None:
        assert not found.degraded
        assert [hit.id for hit in found][:1] == [identifier], f"{content!r} was acknowledged and is not found"

    def check_version(self, key: str, version: int, content: str) -> None:
        expected = self.versions.get(key, (0, ""))[0] + 1
        assert version == expected, f"{key} has version {version} after {expected - 1}"
        self.versions[key] = (version, content)


def run(caller: Caller, address: str, end: float) -> None:
    """Write and read back, blocking."""
    with Client(address, timeout=SECONDS) as client:
        namespace = client.namespace(*caller.namespace)
        while time.monotonic() < end:
            content = caller.content()
            receipt = namespace.write(content)
            caller.contents[receipt.id] = content
            caller.check_found(namespace.search(content.split()[0], limit=3), receipt.id, content)
            batch = [caller.content() for _ in range(BATCH)]
            for one, text in zip(namespace.write_many([Item(text) for text in batch]), batch, strict=True):
                caller.contents[one.id] = text
            key, content = caller.key(), caller.content()
            caller.check_version(key, namespace.write(content, key=key).version, content)
            assert [memory.content for memory in namespace.get(keys=[key])] == [content]
            assert namespace.brief(content, budget_tokens=300).tokens <= 300
            caller.rounds += 1


async def run_async(caller: Caller, address: str, end: float) -> None:
    """Write and read back, as a task."""
    async with AsyncClient(address, timeout=SECONDS) as client:
        namespace = client.namespace(*caller.namespace)
        while time.monotonic() < end:
            content = caller.content()
            receipt = await namespace.write(content)
            caller.contents[receipt.id] = content
            caller.check_found(await namespace.search(content.split()[0], limit=3), receipt.id, content)
            batch = [caller.content() for _ in range(BATCH)]
            receipts = await namespace.write_many([Item(text) for text in batch])
            for one, text in zip(receipts, batch, strict=True):
                caller.contents[one.id] = text
            key, content = caller.key(), caller.content()
            caller.check_version(key, (await namespace.write(content, key=key)).version, content)
            assert [memory.content for memory in await namespace.get(keys=[key])] == [content]
            assert (await namespace.brief(content, budget_tokens=300)).tokens <= 300
            caller.rounds += 1


async def run_all_async(callers: list[Caller], address: str, end: float) -> None:
    async with asyncio.TaskGroup() as tasks:
        for caller in callers:
            tasks.create_task(run_async(caller, address, end))


def check(callers: list[Caller], address: str) -> None:
    """Everything that was acknowledged is there, and nothing else."""
    with Client(address, timeout=SECONDS) as client:
        for caller in callers:
            namespace = client.namespace(*caller.namespace)
            ids = sorted(caller.contents)
            found: dict[str, str] = {}
            for start in range(0, len(ids), 500):
                found |= {memory.id: memory.content for memory in namespace.get(ids[start : start + 500])}
            assert found == caller.contents, "acknowledged writes were lost"
            for key, (version, content) in caller.versions.items():
                (memory,) = namespace.get(keys=[key])
                assert (memory.version, memory.content) == (version, content)
        expected = sum(len(caller.contents) + len(caller.versions) for caller in callers)
        assert client.stats().memories == expected


@dataclass
class Sample:
    """What the sidecar takes while it holds so many memories."""

    memories: int
    own_bytes: int
    file_bytes: int

    @classmethod
    def of(cls, sidecar: RunningSidecar, callers: list[Caller]) -> "Sample":
        memories = sum(len(caller.contents) for caller in callers)
        return cls(memories, sidecar.own_bytes, sidecar.file_bytes)


@pytest.mark.soak
@pytest.mark.timeout(DURATION + 300)
def test_many_clients_at_once(tmp_path: Path) -> None:
    callers = [Caller(number) for number in range(CLIENTS)]
    failures: list[BaseException] = []
    with running_sidecar(tmp_path / "data", flags=["--index-after", "2000"]) as sidecar:
        end = time.monotonic() + DURATION

        def guarded(caller: Caller) -> None:
            try:
                run(caller, sidecar.address, end)
            except BaseException as error:  # noqa: BLE001 - the test's own thread raises it
                failures.append(error)

        threads = [threading.Thread(target=guarded, args=(caller,)) for caller in callers[::2]]
        warm: list[Sample] = []

        def sample_when_warm() -> None:
            time.sleep(DURATION / 3)
            warm.append(Sample.of(sidecar, callers))

        threads.append(threading.Thread(target=sample_when_warm))
        for thread in threads:
            thread.start()
        try:
            asyncio.run(run_all_async(callers[1::2], sidecar.address, end))
        finally:
            for thread in threads:
                thread.join(SECONDS)
        if failures:
            raise failures[0]
        assert all(caller.rounds for caller in callers)
        (before,), after = warm, Sample.of(sidecar, callers)
        written = after.memories - before.memories
        assert after.own_bytes - before.own_bytes < SPARE_BYTES + written * INDEXED_BYTES, f"{before} {after}"
        check(callers, sidecar.address)
        faults = [line for line in sidecar.logs() if line["level"] in {"warning", "error"}]
        assert faults == []
        assert sidecar.stop(signal.SIGTERM) == 0
    print(f"{sum(caller.rounds for caller in callers)} rounds of {CLIENTS} clients in {DURATION:.0f} s")
    print(f"after a third and at the end: {before} {after}")
    assert _core.verify(str(tmp_path / "data"), MODEL_DIR) == []
    with running_sidecar(tmp_path / "data") as sidecar:
        check(callers, sidecar.address)
