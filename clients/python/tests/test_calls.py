"""Every argument reaches the wire, and everything on the wire reaches the user."""

import dataclasses
import inspect
import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
import recalld
from google.protobuf import text_format
from recalld import (
    BriefFormat,
    BriefSection,
    ContentFormat,
    InvalidArgument,
    Item,
    Namespace,
    Source,
    TimeRange,
    Weights,
)
from recalld.filters import field
from recalld.v1 import admin_service_pb2, memory_pb2, memory_service_pb2, types_pb2

NOON = datetime(2031, 5, 12, 14, 0, 0, 250_000, tzinfo=timezone(timedelta(hours=2)))
NOON_PROTO = "seconds: 1936353600 nanos: 250000000"


def parsed(message: type[Any], text: str) -> Any:
    return text_format.Parse(text, message())


async def test_write_sends_every_field(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(
        alice.write(
            "Seat 4A",
            key="seat",
            content_format=ContentFormat.TEXT,
            kind="preference",
            summary="aisle",
            tags=["b", "a"],
            metadata={"n": 2},
            importance=0.8,
            confidence=0.5,
            occurred_at=NOON,
            ttl=timedelta(days=2, microseconds=1),
            expires_at=NOON,
            sources=[Source(uri="u", session="s", speaker="p"), Source(uri="v")],
            vector=[1.0, 0.5],
            if_version=0,
            origin="agent:planner",
            idempotency_key="once",
        )
    )
    assert sidecar.requests == [
        parsed(
            memory_service_pb2.WriteRequest,
            f"""
            namespace {{ segments: "acme" segments: "user" segments: "alice" }}
            items {{
              key: "seat" content: "Seat 4A" content_format: CONTENT_FORMAT_TEXT kind: "preference"
              summary: "aisle" tags: "b" tags: "a" metadata {{ key: "n" value {{ int_value: 2 }} }}
              importance: 0.8 confidence: 0.5 occurred_at {{ {NOON_PROTO} }}
              ttl {{ seconds: 172800 nanos: 1000 }}
              expires_at {{ {NOON_PROTO} }}
              sources {{ uri: "u" session: "s" speaker: "p" }} sources {{ uri: "v" }}
              vector: 1.0 vector: 0.5 if_version: 0 origin: "agent:planner"
            }}
            idempotency_key: "once"
            """,
        )
    ]


async def test_what_is_not_given_is_not_sent(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(alice.write_many([Item("a"), Item("b", kind="event")]))
    await answer(alice.search("q"))
    write, search = sidecar.requests
    assert list(write.items) == [
        memory_service_pb2.WriteItem(content="a"),
        memory_service_pb2.WriteItem(content="b", kind="event"),
    ]
    assert search == memory_service_pb2.SearchRequest(namespace=write.namespace, query="q")


@pytest.mark.parametrize("content", [{"b": [1, None], "a": "é"}, [1.5, True], {}, []])
async def test_json_content_is_sent_compact(alice: Any, sidecar: Any, answer: Any, content: Any) -> None:
    await answer(alice.write(content))
    (item,) = sidecar.requests[0].items
    assert item.content_format == memory_pb2.CONTENT_FORMAT_JSON
    assert json.loads(item.content) == content
    assert " " not in item.content
    assert "\\u" not in item.content


async def test_json_text_is_sent_as_it_is(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(alice.write('{ "a": 1 }', content_format=ContentFormat.JSON))
    (item,) = sidecar.requests[0].items
    assert (item.content, item.content_format) == ('{ "a": 1 }', memory_pb2.CONTENT_FORMAT_JSON)


CONDITIONS = {
    "vector": [0.5],
    "limit": 7,
    "filter": field("importance").range(gte=0.5),
    "kinds": ["fact", "event"],
    "tags": ("x",),
    "occurred": TimeRange(start=NOON, end=NOON + timedelta(seconds=1)),
    "min_score": 0.25,
    "min_relevance": 0.125,
    "weights": Weights(relevance=1, recency=0),
    "half_lives": {"fact": timedelta(hours=1)},
    "latency_budget": timedelta(milliseconds=20),
    "at_least_as_fresh": "t9",
}
CONDITIONS_PROTO = f"""
    vector: 0.5 limit: 7
    filter {{ condition {{ field: "importance" range {{ gte {{ double_value: 0.5 }} }} }} }}
    kinds: "fact" kinds: "event" tags: "x"
    occurred {{ start {{ {NOON_PROTO} }} end {{ seconds: 1936353601 nanos: 250000000 }} }}
    min_score: 0.25 min_relevance: 0.125 weights {{ relevance: 1 recency: 0 }}
    half_lives {{ key: "fact" value {{ seconds: 3600 }} }} latency_budget {{ nanos: 20000000 }}
    at_least_as_fresh: "t9"
    namespace {{ segments: "acme" segments: "user" segments: "alice" }} query: "q"
"""


async def test_search_sends_every_field(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(alice.search("q", explain=True, **CONDITIONS))
    assert sidecar.requests == [parsed(memory_service_pb2.SearchRequest, CONDITIONS_PROTO + "explain: true")]


async def test_why_not_sends_every_field(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(alice.why_not("q", id="i", **CONDITIONS))
    await answer(alice.why_not("q", key="k", at_least_as_fresh=""))
    whole, least = sidecar.requests
    assert whole == parsed(memory_service_pb2.WhyNotRequest, f'search {{ {CONDITIONS_PROTO} }} id: "i"')
    assert least == memory_service_pb2.WhyNotRequest(
        search=memory_service_pb2.SearchRequest(namespace=whole.search.namespace, query="q"), key="k"
    )


async def test_brief_sends_every_field(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(
        alice.brief(
            "q",
            budget_tokens=600,
            encoding="cl100k_base",
            format=BriefFormat.JSON,
            sections=[
                BriefSection("What holds", kinds=["fact", "rule"], max_tokens=80),
                BriefSection("Rest"),
            ],
            pinned_ids=["i", "j"],
            pinned_keys=["k"],
            if_fingerprint="f",
            **CONDITIONS,
        )
    )
    extra = """
        budget_tokens: 600 encoding: "cl100k_base" if_fingerprint: "f" format: BRIEF_FORMAT_JSON
        sections { title: "What holds" kinds: "fact" kinds: "rule" max_tokens: 80 }
        sections { title: "Rest" }
        pinned_ids: "i" pinned_ids: "j" pinned_keys: "k"
    """
    assert sidecar.requests == [parsed(memory_service_pb2.BriefRequest, CONDITIONS_PROTO + extra)]


@pytest.mark.parametrize("name", ["MARKDOWN", "JSON", "XML"])
async def test_a_format_may_be_its_text(alice: Any, sidecar: Any, answer: Any, name: str) -> None:
    await answer(alice.brief("q", format=name.lower()))
    assert sidecar.requests[0].format == memory_service_pb2.BriefFormat.Value(f"BRIEF_FORMAT_{name}")


async def test_get_sends_every_field(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(
        alice.get(["i"], ["k"], max_tokens=5, encoding="o200k_base", as_of_version=3, at_least_as_fresh="t")
    )
    assert sidecar.requests == [
        parsed(
            memory_service_pb2.GetRequest,
            """
            namespace { segments: "acme" segments: "user" segments: "alice" } ids: "i" keys: "k"
            max_tokens: 5 encoding: "o200k_base" as_of_version: 3 at_least_as_fresh: "t"
            """,
        )
    ]


async def test_delete_sends_every_field(alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(
        alice.delete(
            ids=["i"],
            keys=["k"],
            filter=field("kind").equals("fact"),
            if_version=3,
            dry_run=True,
            idempotency_key="once",
        )
    )
    assert sidecar.requests == [
        parsed(
            memory_service_pb2.DeleteRequest,
            """
            namespace { segments: "acme" segments: "user" segments: "alice" } ids: "i" keys: "k"
            filter { condition { field: "kind" equals { string_value: "fact" } } }
            if_version: 3 dry_run: true idempotency_key: "once"
            """,
        )
    ]


async def test_counts_and_stats_are_asked(client: Any, alice: Any, sidecar: Any, answer: Any) -> None:
    await answer(client.count_tokens(["a", "b"], encoding="cl100k_base"))
    await answer(client.stats())
    await answer(alice.stats())
    named = types_pb2.Namespace(segments=["acme", "user", "alice"])
    assert sidecar.requests == [
        memory_service_pb2.CountTokensRequest(texts=["a", "b"], encoding="cl100k_base"),
        admin_service_pb2.GetStatsRequest(),
        admin_service_pb2.GetStatsRequest(namespace=named),
    ]


@pytest.mark.parametrize(
    ("method", "request_type"),
    [
        (Namespace.search, memory_service_pb2.SearchRequest),
        (Namespace.get, memory_service_pb2.GetRequest),
        (Namespace.delete, memory_service_pb2.DeleteRequest),
        (Namespace.brief, memory_service_pb2.BriefRequest),
        (recalld.Client.count_tokens, memory_service_pb2.CountTokensRequest),
    ],
)
def test_arguments_are_the_fields_of_the_request(method: Any, request_type: Any) -> None:
    arguments = set(inspect.signature(method).parameters) - {"self", "timeout"}
    assert arguments == {field.name for field in request_type.DESCRIPTOR.fields} - {"namespace"}


def test_arguments_of_why_not_are_a_memory_and_those_of_its_search() -> None:
    search = inspect.signature(Namespace.search).parameters
    arguments = inspect.signature(Namespace.why_not).parameters
    assert arguments.keys() - search.keys() == {"id", "key"}
    # How a search is explained is not asked for: it always is.
    assert search.keys() - arguments.keys() == {"explain"}
    assert all(arguments[name] == search[name] for name in arguments.keys() & search.keys())


def test_fields_of_a_query_are_those_of_a_search() -> None:
    fields = {field.name for field in dataclasses.fields(recalld.Query)}
    assert fields == {field.name for field in memory_service_pb2.SearchRequest.DESCRIPTOR.fields}
    assert fields - {"namespace"} == set(inspect.signature(Namespace.search).parameters) - {"self", "timeout"}


def test_fields_of_a_section_are_those_of_the_contract() -> None:
    assert {field.name for field in dataclasses.fields(BriefSection)} == {
        field.name for field in memory_service_pb2.BriefSection.DESCRIPTOR.fields
    }


def test_arguments_of_write_are_the_fields_of_an_item() -> None:
    item = {field.name for field in memory_service_pb2.WriteItem.DESCRIPTOR.fields}
    assert {field.name for field in dataclasses.fields(Item)} == item
    arguments = set(inspect.signature(Namespace.write).parameters)
    assert arguments - {"self", "timeout", "idempotency_key"} == item


@pytest.mark.parametrize(
    ("answered", "message", "also"),
    [
        (recalld.Receipt, memory_service_pb2.Receipt, {"token"}),
        (recalld.Search, memory_service_pb2.SearchResponse, set()),
        (recalld.Signature, memory_pb2.Signature, set()),
        (recalld.Explanation, memory_pb2.Explanation, set()),
        (recalld.SignalScore, memory_pb2.SignalScore, set()),
        (recalld.FactorScore, memory_pb2.FactorScore, set()),
        (recalld.WhyNot, memory_service_pb2.WhyNotResponse, set()),
        (recalld.Arm, memory_service_pb2.Arm, set()),
        (recalld.PlannedMethod, memory_service_pb2.PlannedMethod, set()),
        (recalld.Degradation, memory_service_pb2.Degradation, set()),
        (recalld.Details, memory_service_pb2.GetResponse, set()),
        (recalld.Memory, memory_pb2.Memory, set()),
        (recalld.Source, types_pb2.Source, set()),
        (recalld.Deleted, memory_service_pb2.DeleteResponse, set()),
        (recalld.Brief, memory_service_pb2.BriefResponse, set()),
        (recalld.IncludedMemory, memory_service_pb2.IncludedMemory, set()),
        (recalld.OmittedMemory, memory_service_pb2.OmittedMemory, set()),
        (recalld.TokenCounts, memory_service_pb2.CountTokensResponse, set()),
        (recalld.StoreStats, admin_service_pb2.StoreStats, {"server_version"}),
        (recalld.NamespaceStats, admin_service_pb2.NamespaceStats, set()),
    ],
)
def test_answers_have_the_fields_of_the_contract(answered: Any, message: Any, also: set[str]) -> None:
    assert {field.name for field in dataclasses.fields(answered)} == {
        field.name for field in message.DESCRIPTOR.fields
    } | also


@pytest.mark.parametrize(
    ("answered", "numbers", "prefix"),
    [
        (recalld.Outcome, memory_service_pb2.WriteOutcome, "WRITE_OUTCOME_"),
        (recalld.ContentFormat, memory_pb2.ContentFormat, "CONTENT_FORMAT_"),
        (recalld.BriefForm, memory_service_pb2.BriefForm, "BRIEF_FORM_"),
        (recalld.OmissionReason, memory_service_pb2.OmissionReason, "OMISSION_REASON_"),
        (recalld.SearchStage, memory_service_pb2.SearchStage, "SEARCH_STAGE_"),
    ],
)
def test_values_of_enums_are_those_of_the_contract(answered: Any, numbers: Any, prefix: str) -> None:
    names = [name.removeprefix(prefix) for name in numbers.keys()]  # noqa: SIM118
    assert [member.name for member in answered] == [*names[1:], "UNRECOGNIZED"]


async def test_receipts_are_read(alice: Any, sidecar: Any, answer: Any) -> None:
    text = """
        receipts { outcome: WRITE_OUTCOME_STORED id: "a" version: 1 content_tokens: 4 }
        receipts { outcome: WRITE_OUTCOME_UPDATED id: "b" version: 2 content_tokens: 5 }
        receipts { outcome: WRITE_OUTCOME_DUPLICATE id: "c" version: 3 content_tokens: 6 }
        receipts { outcome: 99 id: "d" version: 4 content_tokens: 7 }
        token: "t"
    """
    sidecar.will(parsed(memory_service_pb2.WriteResponse, text))
    receipts = await answer(alice.write_many([Item(letter) for letter in "abcd"]))
    assert receipts == [
        recalld.Receipt(outcome=recalld.Outcome.STORED, id="a", version=1, content_tokens=4, token="t"),
        recalld.Receipt(outcome=recalld.Outcome.UPDATED, id="b", version=2, content_tokens=5, token="t"),
        recalld.Receipt(outcome=recalld.Outcome.DUPLICATE, id="c", version=3, content_tokens=6, token="t"),
        recalld.Receipt(outcome=recalld.Outcome.UNRECOGNIZED, id="d", version=4, content_tokens=7, token="t"),
    ]
    assert receipts[0].outcome == "stored"


async def test_one_write_answers_its_receipt(alice: Any, answer: Any) -> None:
    assert (await answer(alice.write("x"))).id == "id0"


EXPLANATION_PROTO = """explanation {
    signals { name: "dense" rank: 2 raw: 0.5 normalized: 1.5 weight: 0.25 contribution: 0.375 }
    signals { name: "lexical" raw: 3 }
    fused: 0.375 relevance: 0.75
    factors { name: "relevance" value: 0.75 weight: 0.5 contribution: 0.25 }
    confidence: 0.625 score: 0.125 coverage: 0.875
}"""
EXPLANATION = recalld.Explanation(
    signals=(
        recalld.SignalScore(name="dense", rank=2, raw=0.5, normalized=1.5, weight=0.25, contribution=0.375),
        recalld.SignalScore(name="lexical", rank=0, raw=3.0, normalized=0.0, weight=0.0, contribution=0.0),
    ),
    fused=0.375,
    relevance=0.75,
    factors=(recalld.FactorScore(name="relevance", value=0.75, weight=0.5, contribution=0.25),),
    confidence=0.625,
    score=0.125,
    coverage=0.875,
)


async def test_hits_are_read(alice: Any, sidecar: Any, answer: Any) -> None:
    text = f"""
        hits {{ id: "a" key: "k" kind: "fact" score: 0.5 summary: "s" age {{ seconds: 60 nanos: 1500 }}
               content_tokens: 4 version: 2 relevance: 0.75 occurred_at {{ {NOON_PROTO} }}
               tags: "x" tags: "y" weak: true duplicate_ids: "d" duplicate_ids: "c"
               {EXPLANATION_PROTO} }}
        hits {{ id: "b" }}
        arms {{ name: "dense" candidates: 8 method: "scan"
               plan {{ method: "scan" cost: 8 }} plan {{ method: "hnsw" cost: 90 }} }}
        degraded {{ arm: "lexical" reason: "no_known_words" }} token: "t" took {{ nanos: 2000000 }}
    """
    sidecar.will(parsed(memory_service_pb2.SearchResponse, text))
    found = await answer(alice.search("q"))
    assert found[0] == recalld.Signature(
        id="a",
        key="k",
        kind="fact",
        score=0.5,
        summary="s",
        age=timedelta(seconds=60, microseconds=1),
        content_tokens=4,
        version=2,
        relevance=0.75,
        occurred_at=NOON,
        tags=("x", "y"),
        weak=True,
        duplicate_ids=("d", "c"),
        explanation=EXPLANATION,
    )
    assert (found[1].weak, found[1].duplicate_ids, found[1].explanation) == (False, (), None)
    assert found[0].occurred_at.tzinfo is UTC
    assert [hit.id for hit in found] == ["a", "b"]
    assert (len(found), found[-1].id, found[1:]) == (2, "b", (found.hits[1],))
    plan = (recalld.PlannedMethod(method="scan", cost=8), recalld.PlannedMethod(method="hnsw", cost=90))
    assert found.arms == (recalld.Arm(name="dense", candidates=8, method="scan", plan=plan),)
    assert found.degraded == (recalld.Degradation(arm="lexical", reason="no_known_words"),)
    assert (found.token, found.took) == ("t", timedelta(milliseconds=2))


async def test_why_not_is_read(alice: Any, sidecar: Any, answer: Any) -> None:
    text = f"""
        stage: SEARCH_STAGE_THRESHOLD detail: "min_score" rank: 4 needed_rank: 3 value: 0.25
        needed_value: 0.5 {EXPLANATION_PROTO} id: "a"
        degraded {{ arm: "dense" reason: "deadline" }} token: "t"
    """
    sidecar.will(
        parsed(memory_service_pb2.WhyNotResponse, text),
        parsed(memory_service_pb2.WhyNotResponse, "stage: SEARCH_STAGE_NOT_FOUND"),
        parsed(memory_service_pb2.WhyNotResponse, "stage: 99"),
    )
    why = await answer(alice.why_not("q", id="a"))
    assert why == recalld.WhyNot(
        stage=recalld.SearchStage.THRESHOLD,
        detail="min_score",
        rank=4,
        needed_rank=3,
        value=0.25,
        needed_value=0.5,
        explanation=EXPLANATION,
        id="a",
        degraded=(recalld.Degradation(arm="dense", reason="deadline"),),
        token="t",
    )
    gone = await answer(alice.why_not("q", key="k"))
    assert (gone.stage, gone.id, gone.explanation) == ("not_found", "", None)
    assert (await answer(alice.why_not("q", key="k"))).stage is recalld.SearchStage.UNRECOGNIZED


async def test_details_are_read(alice: Any, sidecar: Any, answer: Any) -> None:
    text = f"""
        memories {{
          id: "a" key: "k" version: 2 kind: "fact" content: "[1]"
          content_format: CONTENT_FORMAT_JSON summary: "s"
          tags: "x" metadata {{ key: "n" value {{ int_value: 9007199254740993 }} }}
          importance: 0.5 confidence: 1
          occurred_at {{ {NOON_PROTO} }} created_at {{ seconds: 1 }} updated_at {{ seconds: 2 }}
          expires_at {{ seconds: 3 }} sources {{ uri: "u" session: "s" speaker: "p" }} origin: "o"
          content_tokens: 4 truncated: true
        }}
        memories {{ id: "b" content_format: CONTENT_FORMAT_TEXT }}
        missing_ids: "c" missing_keys: "d" token: "t"
    """
    sidecar.will(parsed(memory_service_pb2.GetResponse, text))
    details = await answer(alice.get(["a", "b", "c"], keys=["d"]))
    assert details[0] == recalld.Memory(
        id="a",
        key="k",
        version=2,
        kind="fact",
        content="[1]",
        content_format=ContentFormat.JSON,
        summary="s",
        tags=("x",),
        metadata={"n": 9007199254740993},
        importance=0.5,
        confidence=1.0,
        occurred_at=NOON,
        created_at=datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
        updated_at=datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
        expires_at=datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC),
        sources=(Source(uri="u", session="s", speaker="p"),),
        origin="o",
        content_tokens=4,
        truncated=True,
    )
    assert details[0].json() == [1]
    assert (details[1].expires_at, details[1].content_format) == (None, ContentFormat.TEXT)
    assert len(details) == 2
    assert (details.missing_ids, details.missing_keys, details.token) == (("c",), ("d",), "t")


async def test_delete_and_brief_are_read(alice: Any, sidecar: Any, answer: Any) -> None:
    sidecar.will(
        parsed(
            memory_service_pb2.DeleteResponse,
            'deleted: 2 deleted_versions: 5 missing_ids: "i" missing_keys: "k" token: "t"',
        ),
        parsed(
            memory_service_pb2.BriefResponse,
            """
            text: "x" tokens: 9 encoding: "o200k_base" fingerprint: "f" not_modified: true token: "t"
            included { id: "a" key: "k" version: 2 form: BRIEF_FORM_PASSAGES tokens: 7 citation: "[m1]"
                       section: "Facts" weak: true }
            included { id: "p" form: BRIEF_FORM_FULL pinned: true }
            omitted { id: "b" reason: OMISSION_REASON_BUDGET tokens: 30 key: "kb" }
            omitted { reason: OMISSION_REASON_NOT_FOUND key: "gone" }
            omitted { id: "c" reason: 99 }
            degraded { arm: "dense" reason: "deadline" } took { seconds: 1 }
            """,
        ),
    )
    assert await answer(alice.delete(keys=["k"])) == recalld.Deleted(
        deleted=2, deleted_versions=5, missing_ids=("i",), missing_keys=("k",), token="t"
    )
    assert await answer(alice.brief("q")) == recalld.Brief(
        text="x",
        tokens=9,
        encoding="o200k_base",
        included=(
            recalld.IncludedMemory(
                id="a",
                key="k",
                version=2,
                form=recalld.BriefForm.PASSAGES,
                tokens=7,
                citation="[m1]",
                section="Facts",
                pinned=False,
                weak=True,
            ),
            recalld.IncludedMemory(
                id="p",
                key="",
                version=0,
                form=recalld.BriefForm.FULL,
                tokens=0,
                citation="",
                section="",
                pinned=True,
                weak=False,
            ),
        ),
        omitted=(
            recalld.OmittedMemory(id="b", reason=recalld.OmissionReason.BUDGET, tokens=30, key="kb"),
            recalld.OmittedMemory(id="", reason=recalld.OmissionReason.NOT_FOUND, tokens=0, key="gone"),
            recalld.OmittedMemory(id="c", reason=recalld.OmissionReason.UNRECOGNIZED, tokens=0, key=""),
        ),
        fingerprint="f",
        not_modified=True,
        degraded=(recalld.Degradation(arm="dense", reason="deadline"),),
        token="t",
        took=timedelta(seconds=1),
    )


async def test_counts_and_stats_are_read(client: Any, alice: Any, sidecar: Any, answer: Any) -> None:
    stats = """
        store { store_id: "s" format_version: 1 embedder: "e" embedder_fingerprint: "f"
                dimensions: 256 position: 9
                namespaces: 2 memories: 3 bytes_used: 4096 }
        namespace { memories: 1 versions: 2 passages: 3 content_tokens: 4 indexed_passages: 5 }
        server_version: "0.1.0"
    """
    sidecar.will(
        memory_service_pb2.CountTokensResponse(counts=[1, 2], total=3, encoding="o200k_base"),
        parsed(admin_service_pb2.GetStatsResponse, stats),
        parsed(admin_service_pb2.GetStatsResponse, stats),
    )
    assert await answer(client.count_tokens(["a", "b"])) == recalld.TokenCounts(
        counts=(1, 2), total=3, encoding="o200k_base"
    )
    assert await answer(client.stats()) == recalld.StoreStats(
        server_version="0.1.0",
        store_id="s",
        format_version=1,
        embedder="e",
        embedder_fingerprint="f",
        dimensions=256,
        position=9,
        namespaces=2,
        memories=3,
        bytes_used=4096,
    )
    assert await answer(alice.stats()) == recalld.NamespaceStats(
        memories=1, versions=2, passages=3, content_tokens=4, indexed_passages=5
    )


async def test_answers_of_16_mib_fit(alice: Any, sidecar: Any, answer: Any) -> None:
    content = "x" * (16 * 1024 * 1024)
    sidecar.will(memory_service_pb2.GetResponse(memories=[memory_pb2.Memory(content=content)]))
    assert (await answer(alice.get(["a"])))[0].content == content


NAIVE = datetime(2031, 5, 12)  # noqa: DTZ001


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (lambda n: n.write("x", occurred_at=NAIVE), "occurred_at"),
        (lambda n: n.write("x", expires_at=NOON.date()), "expires_at"),
        (lambda n: n.write("x", ttl=60), "ttl"),
        (lambda n: n.write("x", metadata={"order": {"at": [NOON, NAIVE]}}), "metadata.order.at[1]"),
        (lambda n: n.write("x", metadata={"order": 2**63}), "metadata.order"),
        (lambda n: n.write("x", metadata={"order": None}), "metadata.order"),
        (lambda n: n.write("x", metadata={"order": (1, 2)}), "metadata.order"),
        (lambda n: n.write("x", metadata={"order": {1: 2}}), "metadata.order.1"),
        (lambda n: n.write("x", metadata=["order"]), "metadata"),
        (lambda n: n.write("x", metadata={"order": "\ud800"}), "metadata.order"),
        (lambda n: n.write("x", metadata={"\ud800": 1}), 'metadata["\\ud800"]'),
        (lambda n: n.write("x", metadata={"a.b": None}), 'metadata["a.b"]'),
        (lambda n: n.write("\ud800"), "content"),
        (lambda n: n.write(7), "content"),
        (lambda n: n.write({"x": object()}), "content"),
        (lambda n: n.write({"x": float("nan")}), "content"),
        (lambda n: n.write({"x": 1}, content_format=ContentFormat.TEXT), "content_format"),
        (lambda n: n.write("x", content_format="yaml"), "content_format"),
        (lambda n: n.write("x", tags="one"), "tags"),
        (lambda n: n.write("x", sources=["uri"]), "sources[0]"),
        (lambda n: n.write("x", vector=["a"]), "vector"),
        (lambda n: n.write("x", importance="high"), "importance"),
        (lambda n: n.write("x", if_version=-1), "if_version"),
        (lambda n: n.write_many([Item("x"), Item("y", occurred_at=NAIVE)]), "items[1].occurred_at"),
        (lambda n: n.write_many(["x"]), "items[0]"),
        (lambda n: n.search("q", limit=-1), "limit"),
        (lambda n: n.search("q", kinds="fact"), "kinds"),
        (lambda n: n.search("q", filter=True), "filter"),
        (lambda n: n.search("q", occurred=TimeRange(end=NAIVE)), "occurred.end"),
        (lambda n: n.search("q", half_lives={"fact": 3600}), "half_lives.fact"),
        (lambda n: n.brief("q", weights=Weights(recency="low")), "weights.recency"),  # type: ignore[arg-type]
        (lambda n: n.search("q", min_relevance="high"), "min_relevance"),
        (lambda n: n.search("q", explain="yes"), "explain"),
        (lambda n: n.search("q", latency_budget=0.02), "latency_budget"),
        (lambda n: n.brief("q", latency_budget=20), "latency_budget"),
        (lambda n: n.why_not("q", id=7), "id"),
        (lambda n: n.why_not("q", key="k", limit=-1), "limit"),
        (lambda n: n.brief("q", format="yaml"), "format"),
        (lambda n: n.brief("q", sections=["Facts"]), "sections[0]"),
        (
            lambda n: n.brief("q", sections=[BriefSection("a"), BriefSection("b", kinds="k")]),
            "sections[1].kinds",
        ),
        (lambda n: n.brief("q", sections=[BriefSection("a", max_tokens=-1)]), "sections[0].max_tokens"),
        (lambda n: n.brief("q", pinned_ids="i"), "pinned_ids"),
        (lambda n: n.brief("q", pinned_keys="k"), "pinned_keys"),
        (lambda n: n.get("seat"), "ids"),
        (lambda n: n.get(keys=[1]), "keys"),
        (lambda n: n.delete(["i"], if_version=2**64), "if_version"),
        (lambda n: n.get(["i"], timeout=0), "timeout"),
        (lambda n: n.get(["i"], timeout=float("nan")), "timeout"),
    ],
)
async def test_what_cannot_be_sent_is_refused_here(
    alice: Any, sidecar: Any, answer: Any, made: Any, wrong: str
) -> None:
    with pytest.raises(InvalidArgument) as caught:
        await answer(made(alice))
    assert caught.value.field == wrong
    assert caught.value.reason == "INVALID_FIELD"
    assert sidecar.asked == []


async def test_a_value_that_holds_itself_is_refused(alice: Any, answer: Any) -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidArgument, match="nested more than 16 deep"):
        await answer(alice.write("x", metadata={"a": endless}))
