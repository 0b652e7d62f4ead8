"""A hundred thousand memories in a namespace, ten thousand namespaces in a store: all found, all counted."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar import _core

from tests.support.store import MODEL_DIR, Store, open_store
from tests.support.texts import mark, sentences

LARGE = ["large"]
MEMORIES = 100_000
BATCH = 1_000
SAMPLE = 200
NAMESPACES = 10_000
EACH = 3
THREADS = 16


def check_large(store: Store, contents: Sequence[str], marks: Sequence[str], rng: random.Random) -> None:
    stats = store.stats(LARGE)
    assert (stats.memories, stats.versions, stats.passages) == (MEMORIES, MEMORIES, MEMORIES)
    assert store.store_stats().memories == MEMORIES
    for start in range(0, MEMORIES, BATCH):
        details = store.get(LARGE, keys=[f"k{at}" for at in range(start, start + BATCH)])
        assert [memory.content for memory in details.memories] == contents[start : start + BATCH]
    for at in rng.sample(range(MEMORIES), SAMPLE):
        # By a word that it alone has, and by what it says.
        assert store.search(LARGE, marks[at], limit=1).hits[0].key == f"k{at}"
        said = contents[at].removesuffix(f" {marks[at]}")
        assert f"k{at}" in {hit.key for hit in store.search(LARGE, said, limit=10).hits}
    filtered = store.search(LARGE, contents[0], tags=["thousandth"], limit=1000)
    assert {hit.key for hit in filtered.hits} == {f"k{at}" for at in range(0, MEMORIES, 1000)}


@pytest.mark.timeout(900)
def test_a_hundred_thousand_memories_in_one_namespace(tmp_path: Path) -> None:
    rng = random.Random(3)
    texts = sentences(MEMORIES, seed=3)
    marks = [mark(rng) for _ in range(MEMORIES)]
    contents = [f"{text} {word}" for text, word in zip(texts, marks, strict=True)]
    data_dir = tmp_path / "data"
    with open_store(data_dir) as store:
        for start in range(0, MEMORIES, BATCH):
            items = [
                pb.WriteItem(
                    key=f"k{at}", content=contents[at], tags=["thousandth"] if at % 1000 == 0 else []
                )
                for at in range(start, start + BATCH)
            ]
            receipts = store.write(LARGE, items).receipts
            assert {receipt.outcome for receipt in receipts} == {pb.WRITE_OUTCOME_STORED}
        check_large(store, contents, marks, rng)
    with open_store(data_dir) as store:
        check_large(store, contents, marks, rng)


def content_of(number: int, place: int) -> str:
    return f"Tenant {number} keeps note {place} about the harbour of Lisbon."


def check_tenants(store: Store, numbers: Sequence[int]) -> None:
    for number in numbers:
        namespace = ["tenant", str(number)]
        contents = [content_of(number, place) for place in range(EACH)]
        details = store.get(namespace, keys=[f"k{place}" for place in range(EACH)])
        assert [memory.content for memory in details.memories] == contents
        found = store.search(namespace, "the harbour of Lisbon", limit=1000)
        assert {hit.id for hit in found.hits} == {memory.id for memory in details.memories}
        assert store.stats(namespace).memories == EACH


@pytest.mark.timeout(600)
def test_ten_thousand_namespaces(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    rng = random.Random(4)
    with open_store(data_dir) as store, ThreadPoolExecutor(THREADS) as pool:

        def write(number: int) -> None:
            items = [
                pb.WriteItem(key=f"k{place}", content=content_of(number, place)) for place in range(EACH)
            ]
            store.write(["tenant", str(number)], items)

        for _ in pool.map(write, range(NAMESPACES)):
            pass
        check_tenants(store, range(NAMESPACES))
        assert (store.store_stats().namespaces, store.store_stats().memories) == (
            NAMESPACES,
            NAMESPACES * EACH,
        )
    with open_store(data_dir) as store:
        assert (store.store_stats().namespaces, store.store_stats().memories) == (
            NAMESPACES,
            NAMESPACES * EACH,
        )
        check_tenants(store, rng.sample(range(NAMESPACES), 1000))
    assert _core.verify(str(data_dir), MODEL_DIR) == []
