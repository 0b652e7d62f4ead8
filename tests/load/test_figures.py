"""The harness of the load measurements works; whether the product is fast, a test does not say."""

import json
from pathlib import Path

import pytest

from tests.load import figures, rounds


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
        assert (row["met"] is None) == (row["goal"] is None)
        assert name in text
    commands = {row["command"].rpartition(" ")[2] for row in rows.values()}
    assert commands == set(figures.GROUPS)
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
