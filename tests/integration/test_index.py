"""The approximate index is a cache: without it, with a damaged or a foreign one, answers stay right.

The exact answers come from a copy of the directory, opened with an `index_after` which nothing reaches, so
that it scans. That the scan itself is right is checked against numpy and usearch's own exact search.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.types_pb2 import Weights
from recalld_sidecar import _core
from usearch.compiled import MetricKind
from usearch.index import search

from tests.support.store import MODEL_DIR, Store, open_store, wait_until
from tests.support.texts import sentences

ALICE = ["acme", "alice"]
BOB = ["acme", "bob"]
MEMORIES = 2_000
LARGE = 6_000
INDEX_AFTER = 500
NEVER = 1 << 31
QUERIES = sentences(100, seed=7)
TEXTS = {tuple(ALICE): sentences(MEMORIES, seed=1), tuple(BOB): sentences(MEMORIES, seed=2)}
BY_MEANING = Weights(relevance=1, importance=0, recency=0)

Vectors = npt.NDArray[np.float32]


def embed(texts: Sequence[str]) -> Vectors:
    return np.array(_core.embed(MODEL_DIR, texts), dtype=np.float32)


def indexed(store: Store, namespace: Sequence[str]) -> int:
    return store.stats(namespace).indexed_passages


def wait_for_index(store: Store, namespace: Sequence[str] = ALICE, passages: int = MEMORIES) -> None:
    wait_until(lambda: indexed(store, namespace) >= passages, "the index")


def nearest(store: Store, vector: Any, namespace: Sequence[str] = ALICE, limit: int = 10) -> list[str]:
    """Ids by the dense arm alone."""
    return [hit.id for hit in store.search(namespace, vector=vector, limit=limit, weights=BY_MEANING).hits]


def hybrid(store: Store, query: str) -> list[str]:
    """Ids by both arms."""
    return [hit.id for hit in store.search(ALICE, query, limit=10).hits]


def recall(found: Sequence[Sequence[str]], expected: Sequence[Sequence[str]]) -> float:
    """Share of the expected ids that were found, on average."""
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, expected, strict=True)]))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed directory with two namespaces and the index of each."""
    path = tmp_path_factory.mktemp("index") / "data"
    with open_store(path, index_after=INDEX_AFTER) as store:
        for namespace, texts in TEXTS.items():
            for start in range(0, MEMORIES, 500):
                items = [pb.WriteItem(key=f"k{at}", content=texts[at]) for at in range(start, start + 500)]
                store.write(namespace, items)
        for namespace in TEXTS:
            wait_for_index(store, namespace)
            # The folder has the file once a later start can use it.
        wait_until(lambda: len(index_files(path)) == 2, "the files")
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed directory with so many memories that a search by the index reads only a sample of the rest."""
    path = tmp_path_factory.mktemp("large") / "data"
    texts = sentences(LARGE, seed=4)
    with open_store(path, index_after=INDEX_AFTER) as store:
        for start in range(0, LARGE, 1000):
            store.write(ALICE, [pb.WriteItem(content=text) for text in texts[start : start + 1000]])
        wait_for_index(store, ALICE, LARGE)
        wait_until(lambda: len(index_files(path)) == 1, "the file")
    return path


def index_files(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "index").glob("*.hnsw"))


@pytest.fixture
def data_dir(written: Path, tmp_path: Path) -> Path:
    """A copy of the directory, for one test."""
    path = tmp_path / "data"
    shutil.copytree(written, path)
    return path


@pytest.fixture(scope="module")
def exact(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """The same memories, scanned."""
    path = tmp_path_factory.mktemp("exact") / "data"
    shutil.copytree(written, path)
    with open_store(path, index_after=NEVER) as store:
        yield store
        assert indexed(store, ALICE) == 0


@pytest.fixture(scope="module")
def query_vectors() -> Vectors:
    return embed(QUERIES)


@pytest.fixture(scope="module")
def expected(exact: Store, query_vectors: Vectors) -> list[list[str]]:
    """The exact answers to the queries."""
    return [nearest(exact, vector) for vector in query_vectors]


def check(store: Store, query_vectors: Vectors, expected: Sequence[Sequence[str]]) -> None:
    """Whatever the state of the index: nearly the exact answers, and exactly them while there is none."""
    without_index = indexed(store, ALICE) == 0
    found = [nearest(store, vector) for vector in query_vectors]
    assert recall(found, expected) >= 0.98
    if without_index and indexed(store, ALICE) == 0:
        assert found == list(expected)


def test_the_scan_agrees_with_numpy_and_usearch(
    exact: Store, query_vectors: Vectors, expected: Sequence[Sequence[str]]
) -> None:
    vectors = embed(TEXTS[tuple(ALICE)])
    cosines = query_vectors @ vectors.T
    witness = search(vectors, query_vectors, 10, MetricKind.Cos, exact=True)
    places = {memory.id: int(memory.key[1:]) for memory in details(exact)}
    for at, ids in enumerate(expected):
        hits = cosines[at, [places[identifier] for identifier in ids]]
        best = cosines[at, np.argsort(-cosines[at], kind="stable")[:10]]
        np.testing.assert_allclose(best, cosines[at, witness.keys[at].astype(int)], atol=1e-5)
        # The store keeps vectors in eight bits: what lies closer together than their error may change places.
        np.testing.assert_allclose(hits, best, atol=0.01)
        assert len(set(ids)) == 10
    by_usearch = [[f"{key}" for key in keys] for keys in witness.keys]
    by_scan = [[f"{places[identifier]}" for identifier in ids] for ids in expected]
    assert recall(by_scan, by_usearch) >= 0.95


def details(store: Store) -> Iterator[Any]:
    for start in range(0, MEMORIES, 1000):
        yield from store.get(ALICE, keys=[f"k{at}" for at in range(start, start + 1000)]).memories


def test_the_index_is_used_and_finds_what_the_scan_finds(
    data_dir: Path, exact: Store, query_vectors: Vectors, expected: Sequence[Sequence[str]]
) -> None:
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        wait_for_index(store)
        arms = store.search(ALICE, QUERIES[0]).arms
        assert [arm.method for arm in arms] == ["hnsw", "bm25"]
        assert [arm.method for arm in exact.search(ALICE, QUERIES[0]).arms] == ["scan", "bm25"]
        check(store, query_vectors, expected)
        by_index, by_scan = ([hybrid(opened, query) for query in QUERIES] for opened in (store, exact))
        assert recall(by_index, by_scan) >= 0.98


def test_every_memory_finds_itself(data_dir: Path) -> None:
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        wait_for_index(store)
        places = {memory.id: int(memory.key[1:]) for memory in details(store)}
        vectors = embed(TEXTS[tuple(ALICE)])
        lost = [
            identifier
            for identifier, at in places.items()
            if identifier not in nearest(store, vectors[at], limit=10)
        ]
        assert lost == []


def test_the_folder_deleted_while_closed(
    data_dir: Path, query_vectors: Vectors, expected: Sequence[Sequence[str]]
) -> None:
    shutil.rmtree(data_dir / "index")
    with open_store(data_dir, index_after=NEVER) as store:
        assert [nearest(store, vector) for vector in query_vectors] == expected
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        check(store, query_vectors, expected)
        wait_for_index(store)
        check(store, query_vectors, expected)
        wait_until(lambda: len(index_files(data_dir)) == 2, "the files")


def test_the_folder_deleted_while_open(
    data_dir: Path, query_vectors: Vectors, expected: Sequence[Sequence[str]]
) -> None:
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        wait_for_index(store)
        shutil.rmtree(data_dir / "index")
        check(store, query_vectors, expected)
        store.write(
            ALICE, [pb.WriteItem(key="late", content="The lighthouse keeper collects marble statues.")]
        )
        check(store, query_vectors, expected)
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        check(store, query_vectors, expected)
        wait_for_index(store)
        check(store, query_vectors, expected)


def test_a_restart_in_the_middle_of_a_build(large: Path, tmp_path: Path) -> None:
    data_dir, scanned = tmp_path / "data", tmp_path / "scanned"
    shutil.copytree(large, data_dir)
    (whole,) = (file.stat().st_size for file in index_files(data_dir))
    shutil.rmtree(data_dir / "index")
    shutil.copytree(data_dir, scanned)
    vectors = embed(QUERIES)
    with open_store(scanned, index_after=NEVER) as store:
        expected = [nearest(store, vector) for vector in vectors]

    def saved_by_a_short_run() -> int:
        shutil.rmtree(data_dir / "index", ignore_errors=True)
        with open_store(data_dir, index_after=INDEX_AFTER):
            wait_until(lambda: bool(index_files(data_dir)), "the file")
        return index_files(data_dir)[0].stat().st_size

    # A busy machine may look so late that all is built.
    assert any(saved_by_a_short_run() < whole for _ in range(5))
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        check(store, vectors, expected)
        wait_for_index(store, ALICE, LARGE)
        check(store, vectors, expected)
        wait_until(lambda: index_files(data_dir)[0].stat().st_size >= whole, "the whole file")


def truncate(files: Sequence[Path]) -> None:
    for file in files:
        file.write_bytes(file.read_bytes()[:-1000])


def empty(files: Sequence[Path]) -> None:
    for file in files:
        file.write_bytes(b"")


def flip(at: float) -> Callable[[Sequence[Path]], None]:
    def flip_bit(files: Sequence[Path]) -> None:
        for file in files:
            content = bytearray(file.read_bytes())
            content[int(at * len(content))] ^= 0x10
            file.write_bytes(content)

    return flip_bit


def swap(files: Sequence[Path]) -> None:
    first, second = files
    contents = second.read_bytes(), first.read_bytes()
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)


@pytest.mark.parametrize(
    "damage",
    [truncate, empty, flip(0.1), flip(0.5), flip(0.9), flip(0.9999), swap],
    ids=[
        "truncated",
        "empty",
        "flipped early",
        "flipped",
        "flipped late",
        "flipped last",
        "another namespace's",
    ],
)
def test_a_file_that_is_not_its_index_is_ignored(
    data_dir: Path,
    query_vectors: Vectors,
    expected: Sequence[Sequence[str]],
    damage: Callable[[Sequence[Path]], None],
) -> None:
    damage(index_files(data_dir))
    damaged = [file.read_bytes() for file in index_files(data_dir)]
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        check(store, query_vectors, expected)
        wait_for_index(store)
        wait_for_index(store, BOB)
        check(store, query_vectors, expected)
        # Built anew: had it been taken, it would have been kept.
        wait_until(
            lambda: all(
                file.read_bytes() != old for file, old in zip(index_files(data_dir), damaged, strict=True)
            ),
            "the new files",
        )


def test_an_index_of_another_store_is_ignored(
    data_dir: Path, tmp_path: Path, query_vectors: Vectors, expected: Sequence[Sequence[str]]
) -> None:
    other = tmp_path / "other"
    with open_store(other, index_after=INDEX_AFTER) as store:
        for start in range(0, MEMORIES, 1000):
            texts = sentences(MEMORIES, seed=3)[start : start + 1000]
            store.write(["x"], [pb.WriteItem(content=text) for text in texts])
        wait_for_index(store, ["x"])
        wait_until(lambda: len(index_files(other)) == 1, "the file")
    (foreign,) = index_files(other)
    shutil.copy(foreign, index_files(data_dir)[0])
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        check(store, query_vectors, expected)
        wait_for_index(store)
        check(store, query_vectors, expected)


def test_what_is_written_after_the_index_is_found_at_once(large: Path, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    shutil.copytree(large, data_dir)
    news = [f"{text[:-1]}, said the astronaut." for text in sentences(100, seed=9)]
    vectors = embed(news)
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        wait_for_index(store, ALICE, LARGE)
        for text, vector in zip(news, vectors, strict=True):
            (receipt,) = store.write(ALICE, [pb.WriteItem(content=text)]).receipts
            assert nearest(store, vector, limit=1) == [receipt.id]
            assert receipt.id in hybrid(store, text)
        # Fewer than what makes it worth while to add them: they are still not in the index, and are found.
        assert indexed(store, ALICE) == LARGE


def test_the_index_grows_while_it_is_searched(data_dir: Path) -> None:
    news = [f"{text[:-1]}, said the astronaut." for text in sentences(600, seed=10)]
    vectors = embed(news)
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        wait_for_index(store)
        for start in range(0, 600, 50):
            batch = news[start : start + 50]
            receipts = store.write(ALICE, [pb.WriteItem(content=text) for text in batch]).receipts
            for receipt, vector in zip(receipts, vectors[start : start + 50], strict=True):
                assert receipt.id in nearest(store, vector)
        wait_for_index(store, ALICE, MEMORIES + 500)


def test_what_was_deleted_or_superseded_never_comes_back(data_dir: Path) -> None:
    texts = TEXTS[tuple(ALICE)]
    vectors = embed(texts)
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        wait_for_index(store)
        gone = {memory.id for memory in store.get(ALICE, keys=[f"k{at}" for at in range(100)]).memories}
        assert store.delete(ALICE, keys=[f"k{at}" for at in range(100)]).deleted == 100
        changed = [pb.WriteItem(key=f"k{at}", content=f"Something else {at}.") for at in range(100, 200)]
        changed_ids = {receipt.id for receipt in store.write(ALICE, changed).receipts}
        check_gone(store, vectors, gone, changed_ids)
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        wait_for_index(store, ALICE, INDEX_AFTER)
        check_gone(store, vectors, gone, changed_ids)
    # So many dead that the index is built anew.
    with open_store(data_dir, index_after=INDEX_AFTER) as store:
        wait_for_index(store, ALICE, INDEX_AFTER)
        assert store.delete(ALICE, keys=[f"k{at}" for at in range(200, 1200)]).deleted == 1000
        left = MEMORIES - 100 - 1000
        wait_until(lambda: 0 < indexed(store, ALICE) <= left, "an index without the dead")
        check_gone(store, vectors, gone, changed_ids)
        keys = [f"k{at}" for at in range(1200, MEMORIES)]
        for memory in store.get(ALICE, keys=keys).memories:
            assert memory.id in nearest(store, vectors[int(memory.key[1:])])


def check_gone(store: Store, vectors: Vectors, gone: set[str], changed: set[str]) -> None:
    for at in range(200):
        found = store.search(ALICE, vector=vectors[at], limit=10, weights=BY_MEANING).hits
        assert found
        assert not {hit.id for hit in found} & gone
        assert all(hit.version == 2 and "else" in hit.summary for hit in found if hit.id in changed)


def test_a_brief_is_the_same_bytes_with_and_without_the_index(large: Path, tmp_path: Path) -> None:
    """The state is the same, whether or not a cache of it has been built yet."""
    data_dir = tmp_path / "data"
    shutil.copytree(large, data_dir)
    queries = sentences(200, seed=8)
    briefs = []
    for index_after in (NEVER, INDEX_AFTER):
        with open_store(data_dir, index_after=index_after) as store:
            if index_after == INDEX_AFTER:
                wait_for_index(store, ALICE, LARGE)
            briefs.append([store.brief(ALICE, query, budget_tokens=300).text for query in queries])
    scanned, by_index = briefs
    assert [at for at in range(len(queries)) if scanned[at] != by_index[at]] == []
