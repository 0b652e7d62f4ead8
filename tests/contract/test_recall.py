"""What the client answers about recall on every way to a store: weak hits, explanations, why_not, and briefs as asked.

The rules of ranking and packing are tested in Rust; here each of them reaches the user under its name.
"""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import recalld
from recalld import AsyncClient, BriefFormat, BriefSection, Client, Item, Namespace, SearchStage
from recalld.filters import field

from tests.contract.ways import WAYS, target_of
from tests.support.store import wait_until

GUIDE = Path(__file__).parents[2] / "docs/guide.md"

MAY = datetime(2026, 5, 12, 9, 30, tzinfo=UTC)
QUERY = "which seat does she like?"
TRAVEL = [
    Item("Alice prefers aisle seats on long flights.", key="seat", kind="preference", occurred_at=MAY),
    Item("Alice is allergic to peanuts.", key="allergy", kind="fact", occurred_at=MAY),
    Item("Booked BA 117 to New York for 14 June.", key="booking", kind="event", occurred_at=MAY),
    Item("The hotel in Lisbon wants payment 14 days ahead.", key="hotel", kind="fact", occurred_at=MAY),
]


@pytest.fixture(scope="module", params=WAYS)
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with target_of(request.param, tmp_path_factory.mktemp("store") / "data") as reached:
        yield reached


@pytest.fixture(scope="module")
def client(target: str) -> Iterator[Client]:
    with Client(target, timeout=30) as connected:
        yield connected


@pytest.fixture(scope="module")
def alice(client: Client) -> Namespace:
    """A namespace that no test writes to."""
    namespace = client.namespace("recall", "alice")
    namespace.write_many(TRAVEL)
    return namespace


@pytest.fixture
def fresh(client: Client, request: pytest.FixtureRequest) -> Namespace:
    """A namespace of the test's own."""
    return client.namespace("recall", request.node.name)


def test_what_nothing_answers_is_weak(alice: Namespace) -> None:
    best = alice.search(QUERY, limit=1)[0]
    assert (best.key, best.weak) == ("seat", False)
    found = alice.search("who won the chess tournament in Reykjavik?", limit=10)
    assert all(hit.weak for hit in found)
    assert alice.search("who won the chess tournament in Reykjavik?", min_relevance=best.relevance).hits == ()


def test_min_relevance_leaves_out_what_has_less(alice: Namespace) -> None:
    hits = alice.search(QUERY, limit=10)
    least = sorted((hit.relevance for hit in hits), reverse=True)[1]
    kept = alice.search(QUERY, limit=10, min_relevance=least)
    assert [hit.id for hit in kept] == [hit.id for hit in hits if hit.relevance >= least]
    assert 0 < len(kept) < len(hits)


def test_an_explanation_adds_up(alice: Namespace) -> None:
    plain = alice.search(QUERY, limit=10)
    explained = alice.search(QUERY, limit=10, explain=True)
    assert [hit.explanation for hit in plain] == [None] * len(plain)
    assert [(hit.id, hit.relevance) for hit in explained] == [(hit.id, hit.relevance) for hit in plain]
    for hit in explained:
        why = hit.explanation
        assert why is not None
        assert [signal.name for signal in why.signals][:2] == ["dense", "lexical"]
        for signal in why.signals:
            assert math.isclose(signal.contribution, signal.normalized * signal.weight, abs_tol=1e-9)
        assert math.isclose(why.fused, math.fsum(signal.contribution for signal in why.signals), abs_tol=1e-9)
        assert [factor.name for factor in why.factors] == ["relevance", "importance", "recency"]
        assert math.isclose(math.fsum(factor.weight for factor in why.factors), 1)
        assert math.isclose(why.score, math.fsum(factor.contribution for factor in why.factors))
        for factor in why.factors:
            assert math.isclose(factor.contribution, why.confidence * factor.weight * factor.value)
        assert (why.score, why.relevance) == (hit.score, hit.relevance)


def test_the_newest_of_duplicates_stands_for_them(fresh: Namespace) -> None:
    text = "Alice prefers an aisle seat near the front of the plane on every long flight"
    older = fresh.write(f"{text}.", occurred_at=MAY)
    newer = fresh.write(f"{text}!", occurred_at=MAY + timedelta(days=1))
    (hit,) = fresh.search(QUERY)
    assert (hit.id, hit.duplicate_ids) == (newer.id, (older.id,))
    why = fresh.why_not(QUERY, id=older.id)
    assert (why.stage, why.detail) == (SearchStage.DUPLICATE, newer.id)


def test_a_hit_is_returned_at_its_place(alice: Namespace) -> None:
    hits = alice.search(QUERY, limit=3, explain=True)
    for place, hit in enumerate(hits, start=1):
        why = alice.why_not(QUERY, id=hit.id, limit=3)
        assert (why.stage, why.id, why.rank) == (SearchStage.RETURNED, hit.id, place)
        assert why.explanation is not None
        assert hit.explanation is not None
        assert why.explanation.signals == hit.explanation.signals
    assert alice.why_not(QUERY, key="seat", limit=3).id == hits[0].id


def test_a_memory_behind_the_limit(alice: Namespace) -> None:
    hits = alice.search(QUERY, limit=3)
    why = alice.why_not(QUERY, id=hits[2].id, limit=1)
    assert (why.stage, why.rank, why.needed_rank) == (SearchStage.LIMIT, 3, 1)


@pytest.mark.parametrize("name", ["min_score", "min_relevance"])
def test_a_memory_under_a_threshold(alice: Namespace, name: str) -> None:
    why = alice.why_not(QUERY, key="hotel", **{name: 0.99})  # type: ignore[arg-type]
    assert (why.stage, why.detail, why.needed_value) == (SearchStage.THRESHOLD, name, 0.99)
    assert why.explanation is not None
    assert why.value == (why.explanation.score if name == "min_score" else why.explanation.relevance) < 0.99


def test_a_memory_that_a_filter_leaves_out(alice: Namespace) -> None:
    assert (alice.why_not(QUERY, key="seat", kinds=["fact"]).detail) == "kinds"
    assert (alice.why_not(QUERY, key="seat", tags=["travel"]).detail) == "tags"
    why = alice.why_not(QUERY, key="seat", filter=field("kind").equals("fact"))
    assert (why.stage, why.detail, why.explanation) == (SearchStage.FILTER, "filter", None)


def test_a_memory_that_does_not_exist(fresh: Namespace) -> None:
    written = fresh.write("Alice prefers aisle seats.", key="seat")
    fresh.delete(keys=["seat"])
    for why in (fresh.why_not(QUERY, id=written.id), fresh.why_not(QUERY, key="seat")):
        assert (why.stage, why.explanation) == (SearchStage.NOT_FOUND, None)


def test_a_memory_that_has_expired(fresh: Namespace) -> None:
    fresh.write("Alice prefers aisle seats.", key="seat", ttl=timedelta(milliseconds=1))
    # Until the sweep has removed it, it is known that it was there.
    wait_until(lambda: fresh.search(QUERY).hits == (), "the memory expires")
    why = fresh.why_not(QUERY, key="seat")
    assert why.stage in {SearchStage.EXPIRED, SearchStage.NOT_FOUND}
    assert why.explanation is None


def test_a_memory_that_no_arm_proposes(fresh: Namespace) -> None:
    fresh.write("The boiler was serviced.", key="boiler")
    fresh.write_many([Item(f"Alice likes seat {number} on the aisle.") for number in range(900)])
    why = fresh.why_not("which aisle seat does Alice like?", key="boiler", limit=1)
    assert why.stage in {SearchStage.CANDIDATES, SearchStage.LIMIT}
    assert why.rank > why.needed_rank > 0


def test_a_question_names_one_memory(alice: Namespace) -> None:
    with pytest.raises(recalld.InvalidArgument):
        alice.why_not(QUERY)
    with pytest.raises(recalld.InvalidArgument):
        alice.why_not(QUERY, id="x", key="seat")
    with pytest.raises(recalld.InvalidArgument) as caught:
        alice.why_not(QUERY, key="seat", limit=0)
    assert caught.value.field == "limit"


def test_the_guide_has_every_stage() -> None:
    (section,) = re.findall(r"^## Explanations\n(.*?)^## ", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    stages = [str(stage) for stage in SearchStage if stage is not SearchStage.UNRECOGNIZED]
    (_, table) = section.split("| stage |")
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == stages


@pytest.mark.parametrize("format_", list(BriefFormat))
def test_a_brief_is_written_as_asked(client: Client, alice: Namespace, format_: BriefFormat) -> None:
    brief = alice.brief(QUERY, budget_tokens=300, format=format_)
    assert brief.included[0].form
    for memory in brief.included:
        assert memory.citation.strip("[]") in brief.text
    assert "aisle seats" in brief.text
    assert 0 < brief.tokens == client.count_tokens([brief.text]).total <= 300
    match format_:
        case BriefFormat.MARKDOWN:
            assert brief.text == alice.brief(QUERY, budget_tokens=300).text
        case BriefFormat.JSON:
            assert isinstance(json.loads(brief.text), dict)
        case BriefFormat.XML:
            root = ET.fromstring(brief.text)
            # Markdown between two tags could be read as XML too, but has no elements inside.
            assert len(root) > 0
            assert "aisle seats" in "".join(root.itertext())


def test_a_brief_has_the_sections_asked_for(alice: Namespace) -> None:
    sections = [
        BriefSection("What happened", kinds=["event"], max_tokens=60),
        BriefSection("What she likes", kinds=["preference"]),
    ]
    brief = alice.brief("Alice travels", sections=sections, budget_tokens=400)
    assert [(memory.section, memory.key) for memory in brief.included] == [
        ("What happened", "booking"),
        ("What she likes", "seat"),
    ]
    assert brief.text.index("What happened") < brief.text.index("What she likes")
    assert {(memory.reason, memory.key) for memory in brief.omitted} == {
        (recalld.OmissionReason.SECTION, "allergy"),
        (recalld.OmissionReason.SECTION, "hotel"),
    }


def test_pinned_memories_stand_first(alice: Namespace) -> None:
    hotel = alice.get(keys=["hotel"])[0].id
    brief = alice.brief(
        QUERY, pinned_ids=[hotel], pinned_keys=["gone", "allergy"], min_relevance=1.0, budget_tokens=400
    )
    assert [(memory.key, memory.pinned, memory.section) for memory in brief.included] == [
        ("hotel", True, ""),
        ("allergy", True, ""),
    ]
    assert [(memory.reason, memory.key, memory.id) for memory in brief.omitted] == [
        (recalld.OmissionReason.NOT_FOUND, "gone", "")
    ]


def test_a_brief_says_what_is_weak(alice: Namespace) -> None:
    weak = {hit.key for hit in alice.search(QUERY, limit=10) if hit.weak}
    brief = alice.brief(QUERY, budget_tokens=1000)
    assert weak
    assert {memory.key for memory in brief.included if memory.weak} == weak


def test_an_approximate_count_is_not_low(client: Client) -> None:
    texts = [
        "Alice prefers aisle seats on long flights.",
        "座席は通路側が好きです。",
        "def f(x):\n    return x ** 2\n",
    ]
    exact, near = client.count_tokens(texts), client.count_tokens(texts, encoding="approximate")
    assert (exact.encoding, near.encoding) == ("o200k_base", "approximate")
    assert all(high >= count for high, count in zip(near.counts, exact.counts, strict=True))


async def test_both_clients_answer_the_same(target: str, alice: Namespace) -> None:
    async with AsyncClient(target, timeout=30) as connected:
        awaited = connected.namespace(*alice.segments)
        assert (await awaited.why_not(QUERY, key="hotel", limit=1)).stage == alice.why_not(
            QUERY, key="hotel", limit=1
        ).stage
        brief = {"format": BriefFormat.JSON, "pinned_keys": ["hotel"]}
        assert (await awaited.brief(QUERY, **brief)).text == alice.brief(QUERY, **brief).text  # type: ignore[arg-type]
