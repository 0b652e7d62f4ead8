"""No answer to one namespace holds a byte of another, or changes one, on any call and with any option."""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recalld.v1 import admin_service_pb2 as admin_pb
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.filter_pb2 import Filter, Range
from recalld.v1.types_pb2 import Source, Value, ValueList, Weights
from recalld_sidecar import _core

from tests.support.filters import all_of, any_of, condition, negation, text
from tests.support.store import MODEL_DIR, Store, open_store, refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NamespacePath = tuple[str, ...]

TRICKY: list[NamespacePath] = [
    ("a",),
    ("a", "b"),
    ("a/b",),
    ("a.b",),
    ("a", "b", "c"),
    ("ab",),
    ("a", "b", "b"),
    ("acme",),
    ("acme-corp",),
    ("acme", "corp"),
    ("acme", "user", "alice"),
    ("acme", "user", "alice2"),
    ("Acme",),
    ("%",),
    ("_",),
    ("a%",),
    ("a_",),
    ("*",),
    ("shared",),  # as the key that every namespace has
    ("\u00e9",),  # composed and decomposed are two names
    ("e\u0301",),
    ("名前", "空間"),
    ("🙂",),
    (" ",),
    ("a ",),
    ("x" * 128,),
    ("x" * 127,),
    ("..", "a"),
    ("a",) * 8,
    ("a",) * 7,
]

segments = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6)
paths = st.one_of(st.sampled_from(TRICKY), st.lists(segments, min_size=1, max_size=4).map(tuple))


@dataclass
class Tenant:
    """A namespace with what only it may ever hear of."""

    path: NamespacePath
    marks: list[str]
    ids: list[str] = field(default_factory=list)

    @property
    def tags(self) -> list[str]:
        return [f"tag-{mark}" for mark in self.marks]

    @property
    def keys(self) -> list[str]:
        return ["shared", *(f"key-{mark}" for mark in self.marks)]


def items(tenant: Tenant) -> list[pb.WriteItem]:
    """Memories whose every field of text holds a mark; the words beside it are the same everywhere."""
    return [
        pb.WriteItem(
            key=key,
            content=f"The seat of the passenger is by the window: {mark}.",
            summary=f"A seat {mark}.",
            kind=f"kind-{mark}",
            tags=["seat", f"tag-{mark}"],
            metadata={
                "who": text(mark),
                "n": Value(int_value=at),
                "list": Value(list_value=ValueList(values=[text(mark)])),
            },
            importance=0.9,
            occurred_at=Timestamp(seconds=1_700_000_000 + at),
            sources=[Source(uri=f"file:{mark}", session=f"session-{mark}", speaker=f"speaker-{mark}")],
            origin=f"agent:{mark}",
        )
        for at, (key, mark) in enumerate(
            [
                ("", tenant.marks[0]),
                ("shared", tenant.marks[0]),
                *((f"key-{mark}", mark) for mark in tenant.marks),
            ]
        )
    ]


def filters(of: Tenant) -> list[Filter]:
    """Filters of every field and operator that all of this tenant's memories satisfy, and their like."""
    mark = of.marks[0]
    return [
        condition("kind", equals=text(f"kind-{mark}")),
        condition("kind", prefix="kind-"),
        condition("tags", **{"in": ValueList(values=[text(tag) for tag in ["seat", *of.tags]])}),
        condition("key", equals=text("shared")),
        condition("key", prefix="key-"),
        condition("key", exists=False),
        condition("origin", prefix="agent:"),
        condition("source.uri", equals=text(f"file:{mark}")),
        condition("source.session", prefix=f"session-{mark[:3]}"),
        condition("source.speaker", exists=True),
        condition("importance", range=Range(gte=Value(double_value=0))),
        condition("confidence", range=Range(lte=Value(double_value=1))),
        condition("occurred_at", range=Range(gt=Value(time_value=Timestamp(seconds=1)))),
        condition("created_at", exists=True),
        condition("updated_at", exists=True),
        condition("expires_at", exists=False),
        condition("metadata.who", equals=text(mark)),
        condition("metadata.list", equals=text(mark)),
        condition("metadata.n", range=Range(gte=Value(int_value=-1))),
        condition("metadata.n", exists=True),
        negation(condition("kind", equals=text("no-such-kind"))),
        any_of(condition("kind", exists=True), condition("metadata.no", exists=False)),
        all_of(condition("tags", equals=text("seat"))),
    ]


def options(of: Tenant, token: str) -> list[dict[str, Any]]:
    """Selections of Search and Brief that would reach this tenant's memories if any could."""
    vector = _core.embed(MODEL_DIR, [f"The seat of the passenger is by the window: {of.marks[0]}."])[0]
    query = f"seat window passenger {' '.join(of.marks)} {' '.join(of.keys)} {' '.join(of.tags)}"
    plain: list[dict[str, Any]] = [
        {"query": query},
        {"vector": vector},
        {"query": query, "vector": vector},
        {"query": query, "kinds": [f"kind-{mark}" for mark in of.marks]},
        {"query": query, "tags": ["seat"]},
        {"query": query, "tags": of.tags[:1]},
        {
            "query": query,
            "occurred": {"start": Timestamp(seconds=1), "end": Timestamp(seconds=1_800_000_000)},
        },
        {"query": query, "min_score": 0.0, "weights": Weights(relevance=0, importance=1, recency=0)},
        {"query": query, "half_lives": {f"kind-{of.marks[0]}": Duration(seconds=1)}},
        {"query": query, "at_least_as_fresh": token},
    ]
    return plain + [{"query": query, "filter": wanted} for wanted in filters(of)]


def write(store: Store, tenant: Tenant, idempotency_key: str) -> None:
    receipts = store.write(tenant.path, items(tenant), idempotency_key=idempotency_key).receipts
    assert [receipt.outcome for receipt in receipts] == [pb.WRITE_OUTCOME_STORED] * len(receipts)
    tenant.ids = [receipt.id for receipt in receipts]


def everything(store: Store, tenant: Tenant) -> tuple[bytes, bytes]:
    """All that a tenant can read about its memories; only the token may change with what others do."""
    details = store.get(tenant.path, ids=tenant.ids, keys=tenant.keys)
    assert len(details.memories) == len(tenant.ids) + len(tenant.keys)
    details.ClearField("token")
    stats = store.stats(tenant.path)
    assert stats.memories == len(tenant.ids)
    return details.SerializeToString(deterministic=True), stats.SerializeToString(deterministic=True)


def assert_nothing_of(other: Tenant, answer: Any) -> None:
    answer = answer.SerializeToString()
    for mark in [*other.marks, *other.ids]:
        assert mark.encode() not in answer


def read_everything(store: Store, asker: NamespacePath, other: Tenant, token: str) -> None:
    """Ask for another's memories by every read call and option."""
    for chosen in options(other, token):
        found = store.search(asker, limit=1000, **chosen)
        assert_nothing_of(other, found)
        assert not {hit.id for hit in found.hits} & set(other.ids)
        assert_nothing_of(other, store.brief(asker, budget_tokens=5000, limit=256, **chosen))
    own = set(other.keys) - {"shared"}
    details = store.get(asker, ids=other.ids, keys=sorted(own))
    assert not details.memories
    assert list(details.missing_ids) == other.ids
    assert set(details.missing_keys) == own
    for identifier in other.ids:
        assert not store.get(asker, ids=[identifier], as_of_version=1).memories
    assert_nothing_of(other, store.get(asker, keys=["shared"]))


def attack(store: Store, asker: NamespacePath, other: Tenant) -> None:
    """Try to delete and overwrite another's memories from a namespace that holds nothing of its own."""
    own = sorted(set(other.keys) - {"shared"})
    for dry_run in (True, False):
        deleted = store.delete(asker, ids=other.ids, keys=own, dry_run=dry_run)
        assert (deleted.deleted, deleted.deleted_versions) == (0, 0)
        assert list(deleted.missing_ids) == other.ids
    for wanted in filters(other):
        assert store.delete(asker, filter=wanted, dry_run=True).deleted == 0
        assert store.delete(asker, filter=wanted).deleted == 0
    with refused("VERSION_CONFLICT") as conflict:
        store.delete(asker, ids=other.ids[:1], if_version=1)
    assert conflict["current_version"] == "0"
    with refused("VERSION_CONFLICT") as conflict:
        store.write(asker, [pb.WriteItem(key=own[0], content="stolen", if_version=1)])
    assert conflict["current_version"] == "0"
    (receipt,) = store.write(asker, [pb.WriteItem(key=own[0], content="mine", if_version=0)]).receipts
    assert (receipt.outcome, receipt.version) == (pb.WRITE_OUTCOME_STORED, 1)
    assert receipt.id not in other.ids
    assert store.delete(asker, ids=[receipt.id]).deleted == 1


@settings(max_examples=20)
@given(
    owners=st.lists(paths, min_size=2, max_size=4, unique=True),
    strangers=st.lists(paths, min_size=1, max_size=3, unique=True),
)
@example(owners=[("acme",), ("acme-corp",), ("acme", "corp")], strangers=[("Acme",)])
@example(owners=[("a", "b"), ("a/b",)], strangers=[("a",), ("ab",), ("a", "b", "c")])
@example(owners=[("%",), ("_",), ("shared",)], strangers=[("a%",), ("a_",), ("*",)])
@example(owners=[("a",) * 8, ("a",) * 7], strangers=[("x" * 128,), ("x" * 127,)])
@example(owners=[("\u00e9",), ("e\u0301",)], strangers=[("é" + " ",)])
def test_isolation(owners: list[NamespacePath], strangers: list[NamespacePath]) -> None:
    tenants = [Tenant(path, [f"q{at}z{number}kjx" for number in range(2)]) for at, path in enumerate(owners)]
    with tempfile.TemporaryDirectory() as folder, open_store(Path(folder) / "data") as store:
        for tenant in tenants:
            # One idempotency key for all: it, too, belongs to a namespace.
            write(store, tenant, "the same")
        token = store.get(owners[0], keys=["shared"]).token
        before = [everything(store, tenant) for tenant in tenants]
        for other in tenants:
            found = store.search(other.path, other.marks[0], limit=1000)
            ids = {id_ for hit in found.hits for id_ in (hit.id, *hit.duplicate_ids)}
            assert ids == set(other.ids)
            for asker in {*owners, *strangers} - {other.path}:
                read_everything(store, asker, other, token)
        for other in tenants:
            for stranger in set(strangers) - set(owners):
                assert store.stats(stranger) == admin_pb.NamespaceStats()
                attack(store, stranger, other)
        assert [everything(store, tenant) for tenant in tenants] == before
        # Emptied one after the other, each takes nothing along.
        for at, tenant in enumerate(tenants):
            assert store.delete(tenant.path, filter=condition("kind", exists=True)).deleted == len(tenant.ids)
            assert not store.search(tenant.path, "seat", limit=1000).hits
            for other in tenants[at + 1 :]:
                attack(store, tenant.path, other)
            assert [everything(store, other) for other in tenants[at + 1 :]] == before[at + 1 :]


def test_equal_memories_of_two_namespaces_are_two(tmp_path: Path) -> None:
    item = pb.WriteItem(key="seat", content="Alice prefers aisle seats.")
    with open_store(tmp_path / "data") as store:
        first, second = (
            store.write([name], [item], idempotency_key="once").receipts[0] for name in ("a", "b")
        )
        assert first.outcome == second.outcome == pb.WRITE_OUTCOME_STORED
        assert first.id != second.id
        store.delete(["a"], keys=["seat"])
        assert [memory.id for memory in store.get(["b"], keys=["seat"]).memories] == [second.id]


@pytest.mark.parametrize("namespace", [[], [""], ["a", ""], ["a"] * 9, ["x" * 129], ["a\n"], ["a\0b"]])
def test_no_namespace_is_never_all(tmp_path: Path, namespace: list[str]) -> None:
    calls: Sequence[Callable[[Store], object]] = [
        lambda store: store.write(namespace, [pb.WriteItem(content="x")]),
        lambda store: store.search(namespace, "secret"),
        lambda store: store.brief(namespace, "secret"),
        lambda store: store.get(namespace, keys=["k"]),
        lambda store: store.delete(namespace, keys=["k"]),
        lambda store: store.delete(namespace, filter=condition("kind", exists=True)),
        lambda store: store.stats(namespace),
    ]
    with open_store(tmp_path / "data") as store:
        store.write(["a"], [pb.WriteItem(key="k", content="A secret.")])
        for call in calls:
            with refused("INVALID_FIELD"):
                call(store)
        assert [memory.content for memory in store.get(["a"], keys=["k"]).memories] == ["A secret."]
