"""The data directory read by another implementation: LMDB's own Python package, with no code of ours.

What is checked is what `core_rs/store` documents: the tables of schema.rs, and values that start with a
version byte and the CRC-32 of the rest.
"""

import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb
import pytest
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar import _core

from tests.support.store import MODEL_DIR, open_store, refused
from tests.support.texts import CORPORA

SCHEMA = Path(__file__).parents[2] / "core_rs/store/src/schema.rs"
TEXTS = [text for corpus in CORPORA.values() for text in corpus]


def tables() -> list[str]:
    """Names of the tables, as the source states them."""
    (body,) = re.findall(
        r"^schema! \{\n(.*?)^\}", SCHEMA.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    names = re.findall(r"^    (\w+),$", body, re.MULTILINE)
    assert len(names) > 10
    return names


@contextmanager
def environment(data_dir: Path, *, readonly: bool = True) -> Iterator[lmdb.Environment]:
    with lmdb.open(
        str(data_dir), readonly=readonly, lock=not readonly, create=False, max_dbs=64, map_size=1 << 30
    ) as opened:
        yield opened


def rows(data_dir: Path, table: str) -> dict[bytes, bytes]:
    with environment(data_dir) as opened:
        handle = opened.open_db(table.encode(), create=False)
        with opened.begin(handle) as txn:
            return {bytes(key): bytes(value) for key, value in txn.cursor()}


PLAIN, PACKED = 1, 2
ZSTD = b"\x28\xb5\x2f\xfd"
"""What a zstd frame begins with."""


def unsealed(value: bytes, version: int = PLAIN) -> bytes:
    checksum, payload = int.from_bytes(value[1:5], "little"), value[5:]
    assert value[0] == version
    assert checksum == zlib.crc32(payload)
    return payload


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A closed directory with memories, superseded and deleted ones among them."""
    path = tmp_path / "data"
    with open_store(path) as store:
        for namespace in (["a"], ["a", "b"]):
            store.write(
                namespace, [pb.WriteItem(content=text, key=f"k{at}") for at, text in enumerate(TEXTS)]
            )
        store.write(["a"], [pb.WriteItem(content="The second version.", key="k0")])
        store.delete(["a"], keys=["k1"])
    return path


def test_the_tables_are_those_of_the_schema(data_dir: Path) -> None:
    with environment(data_dir) as opened, opened.begin() as txn:
        found = [bytes(name).decode() for name, _ in txn.cursor()]
    assert sorted(found) == sorted(tables())


def test_every_acknowledged_content_is_there_and_none_that_was_deleted(data_dir: Path) -> None:
    found = sorted(unsealed(value).decode() for value in rows(data_dir, "contents").values())
    expected = [*TEXTS, *TEXTS, "The second version."]
    expected.remove(TEXTS[1])
    assert found == sorted(expected)


@pytest.mark.parametrize("table", ["namespace_states", "outcomes", "headers", "records"])
def test_every_sealed_value_keeps_its_checksum(data_dir: Path, table: str) -> None:
    with open_store(data_dir) as store:
        store.write(["a"], [pb.WriteItem(content="One more.")], idempotency_key="once")
    values = rows(data_dir, table).values()
    assert values
    for value in values:
        unsealed(value)


def test_every_entry_of_the_journal_keeps_its_checksum_and_large_ones_are_packed(data_dir: Path) -> None:
    content = "The same words again and again. " * 100
    with open_store(data_dir) as store:
        store.write(["a"], [pb.WriteItem(content=content)])
    *_, last = entries = list(rows(data_dir, "journal").values())
    for entry in entries[:-1]:
        assert entry[0] in {PLAIN, PACKED}
        assert unsealed(entry, entry[0])
    payload = unsealed(last, PACKED)
    assert payload[4:].startswith(ZSTD)
    assert len(payload) < len(content) < int.from_bytes(payload[:4], "little")


def test_namespaces_by_their_paths(data_dir: Path) -> None:
    # Each segment with its length before it.
    assert set(rows(data_dir, "namespaces")) == {b"\x01a", b"\x01a\x01b"}


def test_the_position_counts_the_journal(data_dir: Path) -> None:
    position = rows(data_dir, "meta")[b"position"]
    journal = rows(data_dir, "journal")
    assert [int.from_bytes(key, "big") for key in journal] == list(range(1, len(journal) + 1))
    assert int.from_bytes(position, "big") == len(journal)


def test_a_changed_bit_becomes_an_error_and_never_an_answer(data_dir: Path) -> None:
    assert _core.verify(str(data_dir), MODEL_DIR) == []
    with environment(data_dir, readonly=False) as opened:
        handle = opened.open_db(b"contents", create=False)
        with opened.begin(handle, write=True) as txn:
            for key, value in list(txn.cursor()):
                if bytes(value).endswith(TEXTS[3].encode()):
                    changed = bytearray(value)
                    changed[10] ^= 1
                    txn.put(bytes(key), bytes(changed))
    problems = _core.verify(str(data_dir), MODEL_DIR)
    assert len([problem for problem in problems if "contents" in problem.where]) == 2
    with open_store(data_dir) as store:
        for namespace in (["a"], ["a", "b"]):
            with refused("DAMAGED_RECORD") as record:
                store.get(namespace, keys=["k3"])
            assert "contents" in record["record"]
            # Only what depends on it is affected.
            assert [memory.content for memory in store.get(namespace, keys=["k4"]).memories] == [TEXTS[4]]
