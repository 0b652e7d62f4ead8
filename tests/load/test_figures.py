"""The harness of the load measurements works; whether the product is fast, a test does not say."""

import json
import re
from pathlib import Path

import pytest

from tests.load import algorithms, bench_report, figures, rounds
from tests.load.corpus import ROOT
from tests.load.report import Figures, MissingRow, at_most, markdown


@pytest.mark.timeout(300)
def test_a_quick_run_fills_the_report(tmp_path: Path) -> None:
    report = tmp_path / "reports" / "load"
    assert figures.main(["--quick", "--report", str(report), "--folder", str(tmp_path)]) == 0
    content = json.loads(report.with_suffix(".json").read_text("utf8"))
    assert set(content) == {"commit", "machine", "date", "rows"}
    rows = {row["name"]: row for row in content["rows"]}
    assert len(rows) == len(content["rows"]), "names are unique"
    text = report.with_suffix(".md").read_text("utf8")
    for name, row in rows.items():
        assert set(row) == {"name", "value", "unit", "goal", "met", "command"}
        assert (row["met"] is None) == (row["goal"] is None or row["value"] is None)
        assert name in text
    commands = {row["command"] for row in rows.values()}
    measured = {f"python -m tests.load.figures --only {group}" for group in figures.GROUPS}
    not_measured = {row["command"] for row in rows.values() if row["value"] is None}
    # The rows of this group are those of `make bench`, if it has run.
    algorithms_command = "python -m tests.load.figures --only algorithms"
    assert commands | {algorithms_command} == measured | not_measured
    assert all(command == "make bench" or command.endswith(" --large") for command in not_measured)
    pictures = {path.name for path in report.parent.glob("*.svg")}
    assert (
        pictures == set(re.findall(r"\]\((load-\w+\.svg)\)", text)) == {"load-latency.svg", "load-rates.svg"}
    )
    counts = [row["value"] for name, row in rows.items() if name.endswith(": same count")]
    assert counts == [1.0] * 10


def test_contestants_take_turns_and_get_the_same_arguments() -> None:
    calls: list[tuple[str, int]] = []
    timings = rounds.in_turns(
        {"a": lambda index: calls.append(("a", index)), "b": lambda index: calls.append(("b", index))},
        rounds=2,
        calls_a_round=2,
    )
    warm_up = [("a", 0), ("a", 1), ("b", 0), ("b", 1)]
    measured = [("b", 2), ("b", 3), ("a", 2), ("a", 3), ("a", 4), ("a", 5), ("b", 4), ("b", 5)]
    assert calls == warm_up + measured
    assert all(len(timing.p50s) == len(timing.cpus) == 2 for timing in timings.values())


@pytest.mark.parametrize(("share", "expected"), [(0.5, 2), (0.99, 4), (0.01, 1), (0.75, 3)])
def test_percentiles(share: float, expected: float) -> None:
    assert rounds.percentile([4, 2, 3, 1], share) == expected


def test_a_ratio_is_taken_within_the_round() -> None:
    assert rounds.ratio([2, 200, 2], [1, 100, 2]) == 2
    assert rounds.difference([2, 200, 5], [1, 100, 2]) == 3


def test_measurements_take_turns_and_the_first_round_warms_up() -> None:
    calls: list[str] = []

    def measure(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    found = rounds.turns({"a": lambda: measure("a"), "b": lambda: measure("b")}, rounds=2)
    assert "".join(calls) == "abbaab"
    assert found == {"a": [4.0, 5.0], "b": [3.0, 6.0]}
    assert rounds.turns({"a": lambda: measure("a")}, rounds=1, warm_up=False) == {"a": [7.0]}


def test_a_row_that_was_not_measured_says_how_it_is() -> None:
    group = Figures("Group")
    group.miss("what takes long", "s", at_most(1), "make more")
    (row,) = group.rows
    assert row.as_json("make load") == {
        "name": "what takes long",
        "value": None,
        "unit": "s",
        "goal": "≤ 1",
        "met": None,
        "command": "make more",
    }
    assert "| what takes long | not run: `make more` | s | ≤ 1 |  |" in markdown(group)


def test_goals_of_algorithms_are_read_from_the_benchmarks_of_this_commit(tmp_path: Path) -> None:
    def leave(name: str, nanoseconds: float) -> None:
        folder = tmp_path / "criterion" / name / "new"
        folder.mkdir(parents=True)
        about = {"full_id": name, "throughput": {"Bytes": 4_000}}
        (folder / "benchmark.json").write_text(json.dumps(about))
        bounds = {"lower_bound": nanoseconds / 2, "upper_bound": nanoseconds * 2}
        estimates = {"median": {"point_estimate": nanoseconds, "confidence_interval": bounds}}
        (folder / "estimates.json").write_text(json.dumps(estimates))

    leave("embed query, 13 rows", 1_500)
    leave("pack/64 x 3 into 1,200", 300_000)
    path = tmp_path / "bench"
    assert bench_report.main([str(tmp_path / "criterion"), "--report", str(path)]) == 0
    assert "| embed query, 13 rows | 1.5 | 0.75 to 3 | 2,667 |" in path.with_suffix(".md").read_text("utf8")
    found = {row.name: row for row in algorithms.measure(path.with_suffix(".json")).rows}
    assert found["embedding of a query"].met is True
    assert found["packing 64 candidates x 3 forms into 1,200 tokens, exactly"].met is False
    assert isinstance(found["embedding of a memory of about 70 tokens"], MissingRow)

    old = json.loads(path.with_suffix(".json").read_text("utf8")) | {"commit": "another"}
    path.with_suffix(".json").write_text(json.dumps(old))
    rows = algorithms.measure(path.with_suffix(".json")).rows
    assert all(isinstance(row, MissingRow) for row in rows)
    assert bench_report.main([str(tmp_path / "none"), "--report", str(path)]) == 1


def test_every_row_that_misses_its_goal_is_explained() -> None:
    missed = {
        row["name"]
        for row in json.loads((ROOT / "docs/reports/load.json").read_text("utf8"))["rows"]
        if row["met"] is False
    }
    explained = (ROOT / "docs/decisions/0016-rows-missed.md").read_text("utf8")
    assert missed <= {line.split(" | ")[0].removeprefix("| ") for line in explained.splitlines()}
