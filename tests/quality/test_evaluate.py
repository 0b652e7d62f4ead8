"""The whole of `make quality` works, on a tiny set; whether the product is good, a test does not say."""

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.load.report import at_least, at_most
from tests.quality import ablations, evaluate, report, sets
from tests.quality.report import Section

pytestmark = pytest.mark.timeout(300)

TOPICS = "lighthouse orchard violin glacier bakery harbour telescope carpet beehive windmill".split()
PLACES = "Turin Porto Bergen Lyon".split()


def docs(corpus: int) -> Iterator[dict[str, str]]:
    """Thirty messages in ten sessions, and one more that replaces what an earlier one said."""
    for number, topic in enumerate(TOPICS * 3):
        place = PLACES[(number + corpus) % len(PLACES)]
        yield {
            "id": f"m{number}",
            "text": f"Yesterday we looked at the {topic} near {place} for the visit number {number} of this year.",
            "time": f"2024-03-{number + 1:02}T09:00",
            "speaker": "user",
            "session": f"s{number // 3}",
        }
    yield {
        "id": "update",
        "text": "The keeper of the lighthouse is now called Ottoline, and no longer Barnabas as I said before.",
        "time": "2024-04-02",
        "speaker": "user",
        "session": "s10",
    }


def corpus(number: int) -> dict[str, Any]:
    return {
        "corpus": f"tiny {number}",
        "docs": [
            {
                "id": "first",
                "text": "The keeper of the lighthouse is called Barnabas, a very tall man with a dog.",
                "time": "2024-02-01",
                "speaker": "user",
                "session": "s0",
            },
            *docs(number),
        ],
        "queries": [
            {
                "id": "q-update",
                "text": "Who keeps the lighthouse, by name?",
                "relevant": ["update"],
                "superseded": ["first"],
                "kind": "update",
                "answer": "Ottoline",
            },
            {
                "id": "q-two",
                "text": "What was visited as number 3 and number 4?",
                "relevant": ["m3", "m4"],
                "kind": "several",
                "answer": "the glacier and the bakery",
            },
            {
                "id": "q-none",
                "text": "How much did the opera cost?",
                "relevant": [],
                "abstain": True,
                "kind": "abstention",
            },
        ],
    }


TOOL_RESULT = {
    "query": "find the invoice",
    "task": "pay",
    "error": False,
    "needed": ["REF-7001", "INV-2209"],
    "result": "REF-7001. "
    + "Looked through the ledger. " * 20
    + "The open invoice is INV-2209. "
    + "Nothing else is due. " * 20,
}


def write(path: Path, records: Sequence[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sets, two of which have the names for which there are goals."""
    path = tmp_path_factory.mktemp("sets")
    for name in (sets.CHATS, sets.LONG_CHATS, "my own"):
        write(path / f"{name}.jsonl.gz", [corpus(0), corpus(1)])
    failed = {"query": "pay", "task": "", "error": True, "needed": [], "result": "Error: no such account"}
    write(path / f"{sets.TOOL_RESULTS}.jsonl.gz", [{"id": "t1", **TOOL_RESULT}, {"id": "t2", **failed}])
    return path


@pytest.fixture(scope="module")
def measured(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """The report of a quick run, as JSON and Markdown."""
    path = tmp_path_factory.mktemp("reports") / "docs" / "quality"
    assert evaluate.main(["--quick", "--workers", "1", "--data", str(folder), "--report", str(path)]) == 0
    return json.loads(path.with_suffix(".json").read_text("utf8")), path.with_suffix(".md").read_text("utf8")


def test_rows_say_what_was_measured_and_how_to_measure_it_again(measured: tuple[dict[str, Any], str]) -> None:
    content, _ = measured
    assert set(content) == {"commit", "machine", "date", "rows"}
    rows = {row["name"]: row for row in content["rows"]}
    assert len(rows) == len(content["rows"]), "names are unique"
    for row in rows.values():
        assert set(row) == {"name", "value", "unit", "goal", "met", "command"}
        assert (row["met"] is None) == (row["goal"] is None)
        if row["unit"] == "share" and "less" not in row["name"] and "above" not in row["name"]:
            assert -1 <= row["value"] <= 1, row
    assert {row["command"].rpartition(" ")[2] for row in rows.values()} == set(evaluate.PARTS)


def test_values_that_only_a_broken_harness_or_store_would_miss(measured: tuple[dict[str, Any], str]) -> None:
    values = {row["name"]: row["value"] for row in measured[0]["rows"]}
    for name in (sets.CHATS, sets.LONG_CHATS, "my own"):
        assert values[f"{name}: recall@20, recalld"] == 1
        assert values[f"{name}: recall@20, BM25 alone"] == 1
        assert values[f"{name}: a session with evidence in the top 20"] == 1
        assert values[f"{name}: recall in a brief of 2000 tokens"] == 1
        assert values[f"{name}: recall in a brief of 2000 tokens, strict"] == 1
        assert values[f"{name}: fresh, facts written as facts"] == 1
        assert values[f"{name}: facts written as facts, an old value shown"] == 0
        assert 0 <= values[f"{name}: abstention AUROC by relevance of the best hit"] <= 1
    identical = [value for name, value in values.items() if name.endswith(": identical")]
    assert identical == [1] * len(identical)
    assert len(identical) >= 8
    assert values["search against brute force, approximate index: recall@10"] >= 0.9
    forbidden = [value for name, value in values.items() if name.startswith("forbidden")]
    assert forbidden == [0] * 4
    twins = [value for name, value in values.items() if name.startswith("twins")]
    assert twins == [1] * 4
    assert values["searches until a write is found, most"] == 1
    for share in (30, 50):
        assert values[f"tool results at {share}% of the tokens, cut off: needed literals kept"] == 0.5
        assert values[f"tool results at {share}% of the tokens, a brief: tokens spent"] <= share / 100


def test_the_report_has_every_section_and_no_text_of_the_sets(measured: tuple[dict[str, Any], str]) -> None:
    content, text = measured
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert titles[0] == "Goals"
    assert len(titles) == len(set(titles)) == 15
    goals = text.partition("## Goals")[2].partition("\n## ")[0]
    for row in content["rows"]:
        assert (row["goal"] is not None) == (f"| {row['name']} |" in goals)
    assert f"{sets.CHATS}, update" in text
    assert "keeps the lighthouse" not in text
    assert "Barnabas" not in text


def test_ablations_take_each_feature_away(measured: tuple[dict[str, Any], str]) -> None:
    values = {row["name"]: row["value"] for row in measured[0]["rows"]}
    for feature in ablations.each_feature_off():
        assert f"my own: recall@10 that {feature} adds" in values
    assert "my own: recall@10 with all features, of the questions of the ablations" in values


def test_a_missed_goal_says_by_how_much() -> None:
    section = Section("A section", "recall")
    section.add("a share", 0.75, goal=at_least(0.8))
    section.add("a count", 3, "memories", at_most(0))
    section.add("another", 0.8, goal=at_least(0.8))
    section.add("without a goal", 0.1)
    assert [report.verdict(row) for row in section.rows] == [
        "**missed by 0.05**",
        "**missed by 3**",
        "met",
        "",
    ]
    assert "1 of 3 are met." in report.markdown([section])


def test_without_sets_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["--data", str(tmp_path / "nowhere")]) == 1
    error = capsys.readouterr().err
    assert "make quality DATA=" in error
    assert '"queries"' in error


def test_a_named_set_that_is_not_there_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert evaluate.main(["--data", str(folder), "--sets", "my own", "yours"]) == 1
    assert "yours" in capsys.readouterr().err


def test_a_broken_set_is_one_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "broken.jsonl.gz", [{"corpus": "c", "docs": [], "queries": [{"id": "q"}]}])
    assert evaluate.main(["--data", str(tmp_path)]) == 1
    assert "line 1" in capsys.readouterr().err


def test_a_set_without_answers_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unanswered = corpus(0)
    unanswered["queries"] = unanswered["queries"][2:]
    write(tmp_path / "unanswered.jsonl.gz", [unanswered])
    assert evaluate.main(["--data", str(tmp_path)]) == 1
    assert "has an answer" in capsys.readouterr().err


def test_sets_with_goals_come_first_and_tool_results_are_no_set(folder: Path) -> None:
    assert list(sets.choose(folder, None)) == [sets.CHATS, sets.LONG_CHATS, "my own"]
    assert [one.is_error for one in sets.tool_results(folder)] == [False, True]
    assert list(sets.tool_results(folder / "nowhere")) == []
