"""Expired, deleted and superseded memories appear on no read path, whether or not a sweeper ran.

The sweeper looks when a directory is opened and then once a minute, so that within these tests it runs only
where one is opened again. That it did not run is seen in the counts: they hold the expired until then.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.memory_pb2 import Memory
from recalld_sidecar import _core

from tests.support.filters import any_of, condition, text
from tests.support.store import MODEL_DIR, Store, open_store, refused, wait_until

NAMESPACE = ["acme", "user", "alice"]
QUERY = "Which seat does Alice want on the flight to Lisbon?"
TAGGED = condition("tags", equals=text("seat"))
EXPIRING = condition("expires_at", exists=True)
WINDOW = "Alice wants a window seat on the flight to Lisbon, zephyr."
AISLE = "Alice wants an aisle seat on the flight to Lisbon, quagga."


def read_paths(
    store: Store, namespace: Sequence[str], ids: Sequence[str], keys: Sequence[str]
) -> dict[str, set[str]]:
    """Ids of the memories that each way of reading returns, of those asked for."""
    vector = _core.embed(MODEL_DIR, [WINDOW])[0]
    searches: dict[str, dict[str, Any]] = {
        "words and meaning": {"query": QUERY},
        "a word": {"query": "zephyr quagga"},
        "meaning": {"vector": vector},
        "filter": {"query": QUERY, "filter": TAGGED},
        "filter on the expiry": {"query": QUERY, "filter": any_of(TAGGED, EXPIRING)},
        "tags": {"query": QUERY, "tags": ["seat"]},
        "kinds": {"query": QUERY, "kinds": ["preference"]},
        "occurred": {"query": QUERY, "occurred": {"start": Timestamp(seconds=1)}},
    }
    found = {
        f"search by {name}": {hit.id for hit in store.search(namespace, limit=1000, **fields).hits}
        for name, fields in searches.items()
    }
    for name, fields in searches.items():
        brief = store.brief(namespace, budget_tokens=3000, **fields)
        named = {included.id for included in brief.included} | {omitted.id for omitted in brief.omitted}
        assert ("zephyr" in brief.text) == (ids[0] in named)
        found[f"brief by {name}"] = named
    found["get by id"] = {memory.id for memory in store.get(namespace, ids=ids).memories}
    found["get by key"] = {memory.id for memory in store.get(namespace, keys=keys).memories}
    found["get a version"] = {
        memory.id
        for identifier in ids
        for memory in store.get(namespace, ids=[identifier], as_of_version=1).memories
    }
    return found


def assert_everywhere(found: dict[str, set[str]], ids: set[str]) -> None:
    """Every way of reading returned these memories and no others."""
    assert {way: returned for way, returned in found.items() if returned != ids} == {}


@dataclass
class Expired:
    """A store in which one memory has expired a moment ago, and its twin never does."""

    store: Store
    data_dir: Path
    expired: str
    twin: str


def wait_for(instant: Timestamp) -> None:
    """Wait until an instant has passed, and no longer."""
    while (left := instant.ToNanoseconds() - time.time_ns()) >= 0:
        time.sleep(left / 1e9 + 1e-6)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "data") as store:
        yield store


@pytest.fixture
def expired(opened: Store, tmp_path: Path) -> Expired:
    """Writes, sees both on every path, and waits for the end of the one."""
    for ttl in (1, 4, 16, 64):
        # A stalled machine may take longer than the time to live for what comes before its end.
        items = [
            pb.WriteItem(
                key="window", content=WINDOW, kind="preference", tags=["seat"], ttl=Duration(seconds=ttl)
            ),
            pb.WriteItem(key="aisle", content=AISLE, kind="preference", tags=["seat"]),
        ]
        first, twin = (receipt.id for receipt in opened.write(NAMESPACE, items).receipts)
        details = opened.get(NAMESPACE, ids=[first])
        if details.memories:
            end = details.memories[0].expires_at
            seen = read_paths(opened, NAMESPACE, [first, twin], ["window", "aisle"])
            if time.time_ns() < end.ToNanoseconds():
                assert_everywhere(seen, {first, twin})
                wait_for(end)
                return Expired(opened, tmp_path / "data", first, twin)
        opened.delete(NAMESPACE, keys=["aisle"])
    raise AssertionError("this machine stalls for longer than any time to live")


def unswept(store: Store, memories: int) -> bool:
    """Whether the expired ones still lie in the store, in fact."""
    return store.stats(NAMESPACE).memories == memories


def test_what_expired_is_on_no_read_path(expired: Expired) -> None:
    store = expired.store
    found = read_paths(store, NAMESPACE, [expired.expired, expired.twin], ["window", "aisle"])
    assert_everywhere(found, {expired.twin})
    details = store.get(NAMESPACE, ids=[expired.expired], keys=["window"])
    assert (list(details.missing_ids), list(details.missing_keys)) == ([expired.expired], ["window"])
    assert unswept(store, 2)


def test_what_expired_cannot_be_deleted_or_updated(expired: Expired) -> None:
    store = expired.store
    for dry_run in (True, False):
        deleted = store.delete(NAMESPACE, ids=[expired.expired], keys=["window"], dry_run=dry_run)
        assert (deleted.deleted, deleted.deleted_versions) == (0, 0)
        assert (list(deleted.missing_ids), list(deleted.missing_keys)) == ([expired.expired], ["window"])
        assert store.delete(NAMESPACE, filter=EXPIRING, dry_run=dry_run).deleted == 0
    with refused("VERSION_CONFLICT") as conflict:
        store.delete(NAMESPACE, keys=["window"], if_version=1)
    assert conflict["current_version"] == "0"
    with refused("VERSION_CONFLICT") as conflict:
        store.write(NAMESPACE, [pb.WriteItem(key="window", content="x", if_version=1)])
    assert conflict["current_version"] == "0"
    assert unswept(store, 2)


def test_a_key_starts_anew_after_its_memory_expired(expired: Expired) -> None:
    store = expired.store
    item = pb.WriteItem(key="window", content=WINDOW, kind="preference", tags=["seat"], if_version=0)
    (receipt,) = store.write(NAMESPACE, [item]).receipts
    assert (receipt.outcome, receipt.version) == (pb.WRITE_OUTCOME_STORED, 1)
    assert receipt.id != expired.expired
    found = read_paths(store, NAMESPACE, [receipt.id, expired.twin], ["window", "aisle"])
    assert_everywhere(found, {receipt.id, expired.twin})
    (memory,) = store.get(NAMESPACE, keys=["window"]).memories
    assert not memory.HasField("expires_at")
    assert not store.get(NAMESPACE, ids=[expired.expired]).memories
    assert store.stats(NAMESPACE).versions == 2


def test_the_sweep_takes_the_expired_and_nothing_else(expired: Expired) -> None:
    expired.store.core.close()
    assert _core.verify(str(expired.data_dir), MODEL_DIR) == []
    with open_store(expired.data_dir) as store:
        wait_until(lambda: store.stats(NAMESPACE).memories == 1, "the sweep")
        assert store.store_stats().memories == 1
        assert store.stats(NAMESPACE).versions == 1
        found = read_paths(store, NAMESPACE, [expired.expired, expired.twin], ["window", "aisle"])
        assert_everywhere(found, {expired.twin})
    assert _core.verify(str(expired.data_dir), MODEL_DIR) == []


def test_an_old_version_does_not_outlive_its_own_end(opened: Store) -> None:
    """A version says of itself when it is no longer returned; an update does not prolong it."""
    end = Timestamp()
    end.FromMicroseconds(time.time_ns() // 1000 + 1_000_000)
    opened.write(NAMESPACE, [pb.WriteItem(key="window", content=WINDOW, expires_at=end)])
    opened.write(NAMESPACE, [pb.WriteItem(key="window", content=AISLE)])
    wait_for(end)
    assert contents(opened.get(NAMESPACE, keys=["window"]).memories) == [AISLE]
    old = opened.get(NAMESPACE, keys=["window"], as_of_version=1)
    assert (contents(old.memories), list(old.missing_keys)) == ([], ["window"])


def test_what_was_superseded_is_on_no_read_path(opened: Store) -> None:
    receipts: list[pb.Receipt] = []
    for content in (WINDOW, AISLE):
        item = pb.WriteItem(key="seat", content=content, kind="preference", tags=["seat"])
        receipts += opened.write(NAMESPACE, [item]).receipts
    first, second = receipts
    assert (second.outcome, second.version, second.id) == (pb.WRITE_OUTCOME_UPDATED, 2, first.id)
    found = read_paths(opened, NAMESPACE, ["0" * 26, second.id], ["seat"])
    assert_everywhere(found, {second.id})
    for fields in ({"query": "zephyr"}, {"query": QUERY}, {"vector": _core.embed(MODEL_DIR, [WINDOW])[0]}):
        answer = opened.search(NAMESPACE, **fields)
        assert [hit.version for hit in answer.hits] == [2]
        assert "zephyr" not in str(answer)
        assert "zephyr" not in str(opened.brief(NAMESPACE, **fields))
    assert contents(opened.get(NAMESPACE, ids=[first.id], keys=["seat"]).memories) == [AISLE, AISLE]
    # Only who names the version sees it.
    assert contents(opened.get(NAMESPACE, keys=["seat"], as_of_version=1).memories) == [WINDOW]


def test_what_was_deleted_is_on_no_read_path(opened: Store) -> None:
    items = [
        pb.WriteItem(key=key, content=content, kind="preference", tags=["seat"])
        for key, content in (("window", WINDOW), ("aisle", AISLE), ("window", f"{WINDOW} Really."))
    ]
    gone, kept = (opened.write(NAMESPACE, [item]).receipts[0].id for item in items[:2])
    opened.write(NAMESPACE, items[2:])
    deleted = opened.delete(NAMESPACE, keys=["window"])
    assert (deleted.deleted, deleted.deleted_versions) == (1, 2)
    found = read_paths(opened, NAMESPACE, [gone, kept], ["window", "aisle"])
    assert_everywhere(found, {kept})
    for version in (1, 2):
        assert not opened.get(NAMESPACE, ids=[gone], as_of_version=version).memories
    again = opened.delete(NAMESPACE, ids=[gone], keys=["window"])
    assert (again.deleted, list(again.missing_ids), list(again.missing_keys)) == (0, [gone], ["window"])


def contents(memories: Sequence[Memory]) -> list[str]:
    return [memory.content for memory in memories]
