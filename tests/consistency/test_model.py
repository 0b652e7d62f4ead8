"""The whole API against a model that fits in one's head: dictionaries.

Whatever is called in whatever order, over several namespaces and restarts, every answer is that of the model.
"""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.filter_pb2 import Filter, Range
from recalld.v1.memory_pb2 import CONTENT_FORMAT_TEXT, Memory
from recalld.v1.types_pb2 import Namespace, Source, Value, ValueList
from recalld_sidecar import _core

from tests.support.filters import all_of, any_of, condition, negation, text
from tests.support.reference_tokens import reference_count
from tests.support.store import MODEL_DIR, Store, open_store, refused

NAMESPACES = (("a",), ("a", "b"), ("a/b",))
KEYS = ("", "", "seat", "seat2", "\u540d\u524d")
KINDS = ("", "preference", "event", "my-own")
TAGS = ("red", "blue", "Red")
CONTENTS = (
    "Alice prefers aisle seats on the airplane.",
    "Alice prefers window seats on the airplane.",
    "The invoice of the dentist is due in March.",
    "\u7528\u6237\u559c\u6b22\u9760\u8fc7\u9053\u7684\u5ea7\u4f4d\u3002",
    "A long note about the garden and the violin. " * 20,
)
FOREVER = Duration(seconds=30 * 86400)
pytestmark = pytest.mark.timeout(600)  # many steps, and more when one fails and is made smaller
UNKNOWN_ID = "0" * 26


def with_duplicates(found: pb.SearchResponse) -> list[str]:
    """Return the ids of all that a search found, those that were folded into a hit included."""
    return [id_ for hit in found.hits for id_ in (hit.id, *hit.duplicate_ids)]


@dataclass
class Known:
    """A memory as it must be: its versions, oldest first, as the items that wrote them."""

    id: str
    versions: list[pb.WriteItem]

    @property
    def current(self) -> pb.WriteItem:
        return self.versions[-1]


@dataclass
class Space:
    """A namespace as it must be."""

    memories: dict[str, Known] = field(default_factory=dict)

    def by_key(self, key: str) -> Known | None:
        return next((known for known in self.memories.values() if key and known.current.key == key), None)

    def twin(self, item: pb.WriteItem) -> Known | None:
        """The memory whose current version was written with exactly these fields."""
        if item.HasField("ttl"):
            return None
        return next((known for known in self.memories.values() if same(known.current, item)), None)

    def put(self, item: pb.WriteItem, new_id: str) -> tuple[int, str, int]:
        """Write; the outcome, the id and the version."""
        if (twin := self.twin(item)) is not None:
            return pb.WRITE_OUTCOME_DUPLICATE, twin.id, len(twin.versions)
        if (known := self.by_key(item.key)) is not None:
            known.versions.append(item)
            return pb.WRITE_OUTCOME_UPDATED, known.id, len(known.versions)
        self.memories[new_id] = Known(new_id, [item])
        return pb.WRITE_OUTCOME_STORED, new_id, 1


def normal(item: pb.WriteItem) -> pb.WriteItem:
    """An item with its defaults filled in, without what is not kept of it."""
    kept = pb.WriteItem()
    kept.CopyFrom(item)
    kept.ClearField("if_version")
    kept.kind = item.kind or "fact"
    kept.content_format = CONTENT_FORMAT_TEXT
    kept.importance = item.importance if item.HasField("importance") else 0.5
    kept.confidence = item.confidence if item.HasField("confidence") else 1.0
    del kept.tags[:]
    kept.tags.extend(sorted(set(item.tags)))
    return kept


def same(one: pb.WriteItem, other: pb.WriteItem) -> bool:
    return normal(one) == normal(other)


items = st.builds(
    pb.WriteItem,
    key=st.sampled_from(KEYS),
    content=st.sampled_from(CONTENTS),
    kind=st.sampled_from(KINDS),
    summary=st.sampled_from(["", "A summary."]),
    tags=st.lists(st.sampled_from(TAGS), max_size=3),
    metadata=st.sampled_from(
        [
            {},
            {"n": Value(int_value=1)},
            {"n": Value(double_value=2.5), "who": Value(string_value="bob")},
            {"n": Value(list_value=ValueList(values=[Value(int_value=3), Value(string_value="x")]))},
        ]
    ),
    importance=st.sampled_from([None, 0.0, 0.5, 1.0]),
    confidence=st.sampled_from([None, 0.25]),
    occurred_at=st.sampled_from([None, Timestamp(seconds=1_700_000_000), Timestamp(seconds=1_700_000_001)]),
    ttl=st.sampled_from([None, None, FOREVER]),
    sources=st.sampled_from([[], [Source(uri="file:x", speaker="Bob")]]),
    origin=st.sampled_from(["", "agent:planner"]),
)


def distinct(batch: Sequence[pb.WriteItem]) -> bool:
    keys = [item.key for item in batch if item.key]
    return len(set(keys)) == len(keys)


batches = st.lists(items, min_size=1, max_size=4).filter(distinct)
namespaces = st.sampled_from(NAMESPACES)


def number_of(value: Value) -> float | None:
    kind = value.WhichOneof("kind")
    return float(getattr(value, kind)) if kind in ("int_value", "double_value") else None


def numbers(item: pb.WriteItem) -> list[float]:
    if "n" not in item.metadata:
        return []
    value = item.metadata["n"]
    values = value.list_value.values if value.HasField("list_value") else [value]
    return [number for each in values if (number := number_of(each)) is not None]


Selected = tuple[Filter, Callable[[pb.WriteItem], bool]]

SIMPLE: list[Selected] = [
    (condition("kind", equals=text("fact")), lambda item: (item.kind or "fact") == "fact"),
    (condition("kind", prefix="p"), lambda item: item.kind.startswith("p")),
    (condition("tags", equals=text("red")), lambda item: "red" in item.tags),
    (
        condition("tags", **{"in": ValueList(values=[text("blue"), text("Red")])}),
        lambda item: bool({"blue", "Red"} & set(item.tags)),
    ),
    (condition("key", exists=False), lambda item: not item.key),
    (condition("key", prefix="seat"), lambda item: item.key.startswith("seat")),
    (condition("origin", equals=text("agent:planner")), lambda item: item.origin == "agent:planner"),
    (condition("source.speaker", exists=True), lambda item: any(source.speaker for source in item.sources)),
    (
        condition("importance", range=Range(gt=Value(double_value=0.5))),
        lambda item: item.HasField("importance") and item.importance > 0.5,
    ),
    (
        condition("occurred_at", range=Range(lt=Value(time_value=Timestamp(seconds=1_700_000_001)))),
        lambda item: item.HasField("occurred_at") and item.occurred_at.seconds < 1_700_000_001,
    ),
    (condition("expires_at", exists=True), lambda item: item.HasField("ttl")),
    (
        condition("metadata.n", range=Range(gte=Value(int_value=2), lt=Value(double_value=3))),
        lambda item: any(2 <= number < 3 for number in numbers(item)),
    ),
    (condition("metadata.n", equals=Value(double_value=3.0)), lambda item: 3.0 in numbers(item)),
    (condition("metadata.who", exists=False), lambda item: "who" not in item.metadata),
]


def negated(selected: Selected) -> Selected:
    wanted, holds = selected
    return negation(wanted), lambda item: not holds(item)


def joined(kind: str, parts: Sequence[Selected]) -> Selected:
    wanted = [wanted for wanted, _ in parts]
    if kind == "all":
        return all_of(*wanted), lambda item: all(holds(item) for _, holds in parts)
    return any_of(*wanted), lambda item: any(holds(item) for _, holds in parts)


filters: st.SearchStrategy[Selected] = st.recursive(
    st.sampled_from(SIMPLE),
    lambda inner: st.one_of(
        st.builds(negated, inner),
        st.builds(joined, st.sampled_from(["all", "any"]), st.lists(inner, min_size=1, max_size=3)),
    ),
    max_leaves=4,
)


class Model(RuleBasedStateMachine):
    """Calls in any order; each answer is compared at once, and the whole state after each step."""

    requests = Bundle("requests")

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.data_dir = self.folder / "data"
        self.opened = open_store(self.data_dir)
        self.store: Store = self.opened.__enter__()
        self.spaces: dict[tuple[str, ...], Space] = {}
        self.tokens: list[str] = []
        self.deleted: set[tuple[tuple[str, ...], str]] = set()
        self.created: dict[str, Timestamp] = {}
        self.calls = 0

    def space(self, namespace: tuple[str, ...]) -> Space:
        """The namespace, which may not exist."""
        return self.spaces.get(namespace, Space())

    def position(self) -> int:
        return self.store.store_stats().position

    @rule(target=requests, namespace=namespaces, batch=batches, keyed=st.booleans())
    def write(self, namespace: tuple[str, ...], batch: list[pb.WriteItem], keyed: bool) -> Any:
        self.calls += 1
        request = pb.WriteRequest(
            namespace=Namespace(segments=namespace),
            items=batch,
            idempotency_key=f"call-{self.calls}" if keyed else "",
        )
        response = pb.WriteResponse.FromString(self.store.answer("Write", request.SerializeToString()))
        self.check_receipts(namespace, batch, response)
        return ("Write", request, response.receipts)

    def check_receipts(
        self, namespace: tuple[str, ...], batch: Sequence[pb.WriteItem], response: pb.WriteResponse
    ) -> None:
        space = self.spaces.setdefault(namespace, Space())
        for item, receipt in zip(batch, response.receipts, strict=True):
            expected = space.put(item, receipt.id)
            assert (receipt.outcome, receipt.id, receipt.version) == expected
            assert receipt.content_tokens == reference_count(item.content, "o200k_base")
        self.tokens.append(response.token)

    @rule(namespace=namespaces, item=items.filter(lambda item: bool(item.key)), version=st.integers(0, 3))
    def write_if_version(self, namespace: tuple[str, ...], item: pb.WriteItem, version: int) -> None:
        space = self.space(namespace)
        known = space.by_key(item.key)
        current = len(known.versions) if known else 0
        conditional = pb.WriteItem()
        conditional.CopyFrom(item)
        conditional.if_version = version
        other = pb.WriteItem(content="Beside the conditional one.", kind="event")
        before = self.position()
        if version == current:
            response = self.store.write(namespace, [other, conditional])
            self.check_receipts(namespace, [other, item], response)
            return
        with refused("VERSION_CONFLICT") as conflict:
            self.store.write(namespace, [other, conditional])
        assert conflict == {"field": "items[1].if_version", "current_version": str(current)}
        assert self.position() == before

    @rule(request=requests)
    def repeat(self, request: Any) -> None:
        """The same idempotency key and body answer the same, and do nothing."""
        method, message, answered = request
        if not message.idempotency_key:
            return
        before = self.position()
        answer = self.store.answer(method, message.SerializeToString())
        assert self.position() == before
        if method == "Write":
            assert pb.WriteResponse.FromString(answer).receipts == answered
        else:
            assert pb.DeleteResponse.FromString(answer) == answered

    @rule(request=requests, item=items)
    def reuse_of_an_idempotency_key(self, request: Any, item: pb.WriteItem) -> None:
        method, message, _ = request
        if not message.idempotency_key:
            return
        other = pb.WriteItem()
        other.CopyFrom(item)
        other.origin = "someone else"
        before = self.position()
        with refused("IDEMPOTENCY_KEY_REUSED") as reuse:
            self.store.write(message.namespace.segments, [other], idempotency_key=message.idempotency_key)
        assert reuse["idempotency_key"] == message.idempotency_key
        assert self.position() == before
        assert method in ("Write", "Delete")

    @rule(
        target=requests,
        namespace=namespaces,
        places=st.lists(st.integers(0, 30), max_size=2),
        keys=st.lists(st.sampled_from(KEYS[2:]), max_size=2, unique=True),
        chosen=st.one_of(st.none(), filters),
        keyed=st.booleans(),
    )
    def delete(
        self,
        namespace: tuple[str, ...],
        places: list[int],
        keys: list[str],
        chosen: Selected | None,
        keyed: bool,
    ) -> Any:
        self.calls += 1
        space = self.space(namespace)
        existing = sorted(space.memories)
        ids = sorted({existing[place] if place < len(existing) else UNKNOWN_ID for place in places})
        if not ids and not keys and chosen is None:
            keys = [KEYS[2]]
        request = pb.DeleteRequest(
            namespace=Namespace(segments=namespace),
            ids=ids,
            keys=keys,
            filter=chosen[0] if chosen else None,
            idempotency_key=f"call-{self.calls}" if keyed else "",
        )
        targets = {identifier for identifier in ids if identifier in space.memories}
        targets |= {known.id for key in keys if (known := space.by_key(key)) is not None}
        if chosen:
            targets |= {known.id for known in space.memories.values() if chosen[1](known.current)}
        dry = pb.DeleteRequest(dry_run=True)
        dry.MergeFrom(request)
        dry.ClearField("idempotency_key")
        before = self.position()
        counted = pb.DeleteResponse.FromString(self.store.answer("Delete", dry.SerializeToString()))
        assert self.position() == before
        response = pb.DeleteResponse.FromString(self.store.answer("Delete", request.SerializeToString()))
        for answer in (counted, response):
            assert answer.deleted == len(targets)
            assert answer.deleted_versions == sum(len(space.memories[target].versions) for target in targets)
            assert list(answer.missing_ids) == [one for one in ids if one not in space.memories]
            assert list(answer.missing_keys) == [key for key in keys if space.by_key(key) is None]
        for target in targets:
            del space.memories[target]
            self.deleted.add((namespace, target))
        return ("Delete", request, response)

    @rule(namespace=namespaces, key=st.sampled_from(KEYS[2:]), version=st.integers(0, 3))
    def delete_if_version(self, namespace: tuple[str, ...], key: str, version: int) -> None:
        space = self.space(namespace)
        known = space.by_key(key)
        current = len(known.versions) if known else 0
        before = self.position()
        if version == current:
            assert self.store.delete(namespace, keys=[key], if_version=version).deleted == (known is not None)
            if known:
                del space.memories[known.id]
                self.deleted.add((namespace, known.id))
            return
        for dry_run in (True, False):
            with refused("VERSION_CONFLICT") as conflict:
                self.store.delete(namespace, keys=[key], if_version=version, dry_run=dry_run)
            assert conflict == {"field": "if_version", "current_version": str(current)}
        assert self.position() == before

    @rule(namespace=namespaces, chosen=st.one_of(st.none(), filters), content=st.sampled_from(CONTENTS))
    def search(self, namespace: tuple[str, ...], chosen: Selected | None, content: str) -> None:
        """With room for all, a search returns exactly what may be returned, and what was asked for first."""
        space = self.space(namespace)
        fields: dict[str, Any] = {"limit": 1000, "at_least_as_fresh": self.tokens[-1] if self.tokens else ""}
        expected = set(space.memories)
        if chosen:
            fields["filter"] = chosen[0]
            expected = {known.id for known in space.memories.values() if chosen[1](known.current)}
        found = self.store.search(namespace, content, **fields)
        ids = with_duplicates(found)
        assert sorted(ids) == sorted(expected)
        keys = [(-hit.score, hit.id) for hit in found.hits]
        assert keys == sorted(keys)
        for hit in found.hits:
            known = space.memories[hit.id]
            item = normal(known.current)
            assert (hit.key, hit.kind, hit.version) == (item.key, item.kind, len(known.versions))
            assert list(hit.tags) == list(item.tags)
        with_text = {one for one in expected if space.memories[one].current.content == content}
        if with_text:
            most = max(found.hits, key=lambda hit: hit.relevance)
            assert space.memories[most.id].current.content == content

    @rule(
        namespace=namespaces,
        kinds=st.lists(st.sampled_from(KINDS[1:]), max_size=2),
        tags=st.lists(st.sampled_from(TAGS), max_size=2),
    )
    def search_by_kinds_and_tags(self, namespace: tuple[str, ...], kinds: list[str], tags: list[str]) -> None:
        expected = {
            known.id
            for known in self.space(namespace).memories.values()
            if (not kinds or known.current.kind in kinds) and set(tags) <= set(known.current.tags)
        }
        found = self.store.search(namespace, CONTENTS[0], kinds=kinds, tags=tags, limit=1000)
        assert set(with_duplicates(found)) == expected

    @rule(namespace=namespaces)
    def brief(self, namespace: tuple[str, ...]) -> None:
        space = self.space(namespace)
        answer = self.store.brief(namespace, CONTENTS[0], budget_tokens=100_000, limit=256)
        included = {one.id: one.version for one in answer.included}
        assert set(included) | {one.id for one in answer.omitted} == set(space.memories)
        assert all(len(space.memories[one].versions) == version for one, version in included.items())
        texts = {" ".join(known.current.content.split()) for known in space.memories.values()}
        assert len(included) == len(texts)

    @rule()
    def restart(self) -> None:
        self.opened.__exit__(None, None, None)
        self.opened = open_store(self.data_dir)
        self.store = self.opened.__enter__()

    @invariant()
    def counts_are_right(self) -> None:
        stats = self.store.store_stats()
        assert stats.memories == sum(len(space.memories) for space in self.spaces.values())
        assert stats.namespaces == len(self.spaces)
        for namespace in NAMESPACES:
            counts = self.store.stats(namespace)
            known = self.space(namespace).memories.values()
            assert counts.memories == len(known)
            assert counts.versions == sum(len(one.versions) for one in known)
            assert counts.content_tokens == sum(
                reference_count(one.current.content, "o200k_base") for one in known
            )

    @invariant()
    def details_are_right(self) -> None:
        for namespace in NAMESPACES:
            space = self.space(namespace)
            keys = sorted(set(KEYS) - {""})
            gone = sorted(identifier for deleted, identifier in self.deleted if deleted == namespace)
            ids = [*sorted(space.memories), *gone]
            details = self.store.get(namespace, ids=ids, keys=keys)
            assert list(details.missing_ids) == gone
            by_key = [known for key in keys if (known := space.by_key(key)) is not None]
            assert list(details.missing_keys) == [key for key in keys if space.by_key(key) is None]
            expected = [*(space.memories[identifier] for identifier in sorted(space.memories)), *by_key]
            for known, memory in zip(expected, details.memories, strict=True):
                self.check_memory(memory, known, len(known.versions))
            for known in space.memories.values():
                for version in range(1, len(known.versions) + 1):
                    (memory,) = self.store.get(namespace, ids=[known.id], as_of_version=version).memories
                    self.check_memory(memory, known, version)
                assert not self.store.get(
                    namespace, ids=[known.id], as_of_version=len(known.versions) + 1
                ).memories

    def check_memory(self, memory: Memory, known: Known, version: int) -> None:
        item = normal(known.versions[version - 1])
        assert (memory.id, memory.version) == (known.id, version)
        for name in ("key", "kind", "content", "content_format", "importance", "confidence", "origin"):
            assert getattr(memory, name) == getattr(item, name), name
        assert list(memory.tags) == list(item.tags)
        assert list(memory.sources) == list(item.sources)
        assert as_dict(memory.metadata) == as_dict(item.metadata)
        assert memory.summary
        if item.summary:
            assert memory.summary == item.summary
        if item.HasField("occurred_at"):
            assert memory.occurred_at == item.occurred_at
        else:
            assert memory.occurred_at == memory.updated_at
        assert memory.HasField("expires_at") == item.HasField("ttl")
        assert self.created.setdefault(memory.id, memory.created_at) == memory.created_at
        assert memory.created_at.ToMicroseconds() <= memory.updated_at.ToMicroseconds()

    def teardown(self) -> None:
        if hasattr(self, "opened"):
            self.opened.__exit__(None, None, None)
            problems = [
                (problem.where, problem.what) for problem in _core.verify(str(self.data_dir), MODEL_DIR)
            ]
            shutil.rmtree(self.folder)
            assert problems == []


def as_dict(metadata: Mapping[str, Value]) -> dict[str, bytes]:
    return {name: value.SerializeToString(deterministic=True) for name, value in metadata.items()}


TestModel = Model.TestCase
TestModel.settings = settings(max_examples=40, stateful_step_count=25)
