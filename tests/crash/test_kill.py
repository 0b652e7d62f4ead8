"""Killed at any instant: what was acknowledged is there, and what was not is wholly there or wholly not.

Each writer has its own keys and makes one call at a time, so that at the kill at most one call of each is
open and all else is known. Everything written has a time to live that no test outlasts: such items are never
taken for duplicates, so that only the idempotency key keeps a repeated write from being stored twice.
"""

import contextlib
import random
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from recalld import Client, Item, Namespace, Unavailable
from recalld.filters import field as attribute
from recalld_sidecar import _core

from tests.support.sidecar import FRONTS, running_sidecar
from tests.support.store import MODEL_DIR
from tests.support.texts import mark, sentence

ROUNDS = 12
WRITERS = 4
KEYS = 6
"""Keys of a writer: few, so that they are updated and deleted often."""
BATCH = 20
SECONDS = 60
TTL = timedelta(days=1)
SEED = 20_240_229


@dataclass
class Version:
    """What a memory is now."""

    version: int
    content: str


@dataclass
class Open:
    """A call whose answer has not come, and what it does to the writer's model."""

    name: str
    call: Callable[[Namespace], object]
    done: Callable[[object], None]
    committed: Callable[[Namespace], bool]


@dataclass
class Writer:
    """One caller and what it knows to be stored."""

    number: int
    rng: random.Random
    keyed: dict[str, Version] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    """Ids that must never come back."""
    ids: dict[str, str] = field(default_factory=dict)
    """Id of each key that exists."""
    unkeyed: dict[str, str] = field(default_factory=dict)
    """Content by id."""
    batches: set[str] = field(default_factory=set)
    calls: int = 0
    acks: int = 0
    open: Open | None = None
    failure: BaseException | None = None

    def new_open(self) -> Open:
        """Choose the next call."""
        self.calls += 1
        kind = self.rng.choices(["single", "batch", "update", "delete"], weights=[4, 1, 4, 2])[0]
        name = f"w{self.number}-{self.calls}"
        if kind == "single":
            return self._single(name)
        if kind == "batch":
            return self._batch(name)
        if kind == "delete" and self.keyed:
            return self._delete(name, self.rng.choice(sorted(self.keyed)))
        return self._update(name, f"key-{self.number}-{self.rng.randrange(KEYS)}")

    def _content(self) -> str:
        return f"{mark(self.rng)}: {sentence(self.rng)}"

    def _single(self, name: str) -> Open:
        content = self._content()

        def call(namespace: Namespace) -> object:
            receipt = namespace.write(content, tags=[name], ttl=TTL, idempotency_key=name, timeout=SECONDS)
            assert receipt.version == 1
            return receipt.id

        def done(answer: object) -> None:
            self.unkeyed[str(answer)] = content

        return Open(name, call, done, lambda namespace: tagged(namespace, name, of=1))

    def _batch(self, name: str) -> Open:
        contents = [self._content() for _ in range(BATCH)]
        items = [Item(content, tags=[name], ttl=TTL) for content in contents]

        def call(namespace: Namespace) -> object:
            receipts = namespace.write_many(items, idempotency_key=name, timeout=SECONDS)
            return [receipt.id for receipt in receipts]

        def done(answer: object) -> None:
            assert isinstance(answer, list)
            self.unkeyed |= dict(zip(answer, contents, strict=True))
            self.batches.add(name)

        return Open(name, call, done, lambda namespace: tagged(namespace, name, of=BATCH))

    def _update(self, name: str, key: str) -> Open:
        content = self._content()
        before = self.keyed.get(key)
        after = Version(before.version + 1 if before else 1, content)

        def call(namespace: Namespace) -> object:
            receipt = namespace.write(
                content, key=key, tags=[name], ttl=TTL, idempotency_key=name, timeout=SECONDS
            )
            assert receipt.version == after.version, f"{key} has version {receipt.version} now"
            return receipt.id

        def done(answer: object) -> None:
            assert self.ids.setdefault(key, str(answer)) == answer
            self.keyed[key] = after

        def committed(namespace: Namespace) -> bool:
            now = current(namespace, key)
            assert now in (before, after), f"{name} is half there: {now}"
            return now == after

        return Open(name, call, done, committed)

    def _delete(self, name: str, key: str) -> Open:
        before = self.keyed[key]

        def call(namespace: Namespace) -> object:
            deleted = namespace.delete(keys=[key], idempotency_key=name, timeout=SECONDS)
            assert (deleted.deleted, deleted.missing_keys) == (1, ())
            assert deleted.deleted_versions == before.version
            return None

        def done(_answer: object) -> None:
            self.gone.add(self.ids.pop(key))
            del self.keyed[key]

        def committed(namespace: Namespace) -> bool:
            now = current(namespace, key)
            assert now in (before, None), f"{name} is half done: {now}"
            return now is None

        return Open(name, call, done, committed)

    def run(self, address: str, acked: threading.Semaphore) -> None:
        """Make calls until the sidecar is gone."""
        with Client(address, timeout=SECONDS, retries=0) as client:
            namespace = client.namespace("crash", "test")
            with contextlib.suppress(Unavailable):
                while True:
                    self.open = self.new_open()
                    self._complete(namespace)
                    acked.release()
                    if self.unkeyed and self.rng.random() < 0.2:
                        # The newest: visible to the next search.
                        must_find(namespace, *list(self.unkeyed.items())[-1])

    def run_safely(self, address: str, acked: threading.Semaphore) -> None:
        """As `run`; what goes wrong is kept for the test's own thread."""
        try:
            self.run(address, acked)
        except BaseException as error:  # noqa: BLE001
            self.failure = error
            acked.release(1_000_000)

    def _complete(self, namespace: Namespace) -> None:
        assert self.open is not None
        self.open.done(self.open.call(namespace))
        self.open = None
        self.acks += 1

    def settle(self, namespace: Namespace) -> bool:
        """Look how the open call ended, repeat it, and see it done once; whether it had been committed."""
        if self.open is None:
            return False
        open_call = self.open
        was_committed = open_call.committed(namespace)
        self._complete(namespace)
        # The answer of the first time is kept: a delete answers what it deleted, a write its first receipt.
        assert open_call.committed(namespace), f"{open_call.name} was answered and is not there"
        return was_committed


def tagged(namespace: Namespace, tag: str, *, of: int) -> bool:
    """Whether all memories of a call are there; some of them must never be."""
    count = namespace.delete(filter=attribute("tags").equals(tag), dry_run=True, timeout=SECONDS).deleted
    assert count in (0, of), f"{count} of {of} memories of {tag} are there"
    return count == of


def current(namespace: Namespace, key: str) -> Version | None:
    found = namespace.get(keys=[key], timeout=SECONDS)
    return Version(found[0].version, found[0].content) if found else None


def must_find(namespace: Namespace, identifier: str, content: str) -> None:
    """The mark, a word of this memory alone, finds it first."""
    hits = namespace.search(content.split(":", maxsplit=1)[0], timeout=SECONDS)
    assert [hit.id for hit in hits][:1] == [identifier], f"a search does not find {content!r}"


def compare(namespace: Namespace, writers: list[Writer], rng: random.Random) -> None:
    """Everything acknowledged is there as it was, everything deleted is not, and nothing else is."""
    for writer in writers:
        ids = sorted(writer.unkeyed)
        for start in range(0, len(ids), 500):
            details = namespace.get(ids[start : start + 500], timeout=SECONDS)
            assert not details.missing_ids, "acknowledged writes were lost"
            for memory in details:
                assert memory.content == writer.unkeyed[memory.id]
        for key in {f"key-{writer.number}-{number}" for number in range(KEYS)}:
            assert current(namespace, key) == writer.keyed.get(key), key
        if writer.gone:
            gone = sorted(writer.gone)[-500:]
            assert set(namespace.get(gone, timeout=SECONDS).missing_ids) == set(gone)
        for batch in sorted(writer.batches)[-10:]:
            assert tagged(namespace, batch, of=BATCH)
        for identifier in rng.sample(ids, min(10, len(ids))):
            must_find(namespace, identifier, writer.unkeyed[identifier])
        for key, now in writer.keyed.items():
            must_find(namespace, writer.ids[key], now.content)
    stats = namespace.stats(timeout=SECONDS)
    assert stats.memories == sum(len(writer.unkeyed) + len(writer.keyed) for writer in writers)


def assert_sound(data_dir: Path) -> None:
    problems = _core.verify(str(data_dir), MODEL_DIR)
    assert [(problem.where, problem.what) for problem in problems] == []


@pytest.mark.timeout(600)
def test_killed_again_and_again(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    print(f"seed {SEED}")
    data_dir = tmp_path / "data"
    writers = [Writer(number, random.Random(rng.random())) for number in range(WRITERS)]
    committed = acks = 0
    for number in range(ROUNDS):
        # The index is built and saved while all this happens. The fronts take turns.
        flags = ["--index-after", "300", "--http", "off", "--front", FRONTS[number % len(FRONTS)]]
        with running_sidecar(data_dir, flags=flags) as sidecar:
            with Client(sidecar.address, timeout=SECONDS) as client:
                namespace = client.namespace("crash", "test")
                committed += sum([writer.settle(namespace) for writer in writers])
                compare(namespace, writers, rng)
            acked = threading.Semaphore(0)
            threads = [
                threading.Thread(target=writer.run_safely, args=(sidecar.address, acked))
                for writer in writers
            ]
            for thread in threads:
                thread.start()
            for _ in range(rng.randrange(1, 300)):
                assert acked.acquire(timeout=SECONDS)
            # So that the instant is not tied to that of an acknowledgement.
            threading.Event().wait(rng.random() * 0.01)
            assert sidecar.stop(signal.SIGKILL) == -signal.SIGKILL
            for thread in threads:
                thread.join(SECONDS)
                assert not thread.is_alive()
        for writer in writers:
            if writer.failure is not None:
                raise writer.failure
        if number % 2:
            # Every other time, so that a sidecar also starts on what nothing has looked at since the kill.
            assert_sound(data_dir)
        acks = sum(writer.acks for writer in writers)
    print(f"{acks} acknowledged calls; {committed} calls were committed whose answer was lost")
    with running_sidecar(data_dir, flags=["--http", "off"]) as sidecar:
        with Client(sidecar.address, timeout=SECONDS) as client:
            namespace = client.namespace("crash", "test")
            for writer in writers:
                writer.settle(namespace)
            compare(namespace, writers, rng)
        assert sidecar.stop() == 0
    assert_sound(data_dir)


def test_a_repeat_after_the_kill_answers_the_first_receipts(tmp_path: Path) -> None:
    """The answer is thrown away here, as a lost connection would have done."""
    data_dir = tmp_path / "data"
    items = [Item(f"Note {number} about the harbour.", ttl=TTL) for number in range(3)]
    with running_sidecar(data_dir, flags=["--http", "off"]) as sidecar:
        with Client(sidecar.address, timeout=SECONDS) as client:
            namespace = client.namespace("crash", "repeat")
            first = namespace.write_many(items, idempotency_key="write")
            updated = namespace.write("Version two.", key="key", ttl=TTL, idempotency_key="update")
            namespace.write("To be deleted.", key="doomed")
            deleted = namespace.delete(keys=["doomed"], idempotency_key="delete")
        assert sidecar.stop(signal.SIGKILL) == -signal.SIGKILL
    with (
        running_sidecar(data_dir, flags=["--http", "off"]) as sidecar,
        Client(sidecar.address, timeout=SECONDS) as client,
    ):
        namespace = client.namespace("crash", "repeat")
        assert namespace.write_many(items, idempotency_key="write") == first
        assert namespace.write("Version two.", key="key", ttl=TTL, idempotency_key="update") == updated
        assert namespace.delete(keys=["doomed"], idempotency_key="delete") == deleted
        assert namespace.stats().memories == len(items) + 1
