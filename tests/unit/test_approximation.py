"""The approximate counter: its errors by script are those of the guide, and it hardly ever counts low."""

import re
from math import ceil
from pathlib import Path

import pytest
from recalld_sidecar import _core

from tests.support.reference_tokens import ENCODINGS
from tests.support.scripts import SCRIPTS, texts_in

GUIDE = Path(__file__).parents[2] / "docs/guide.md"

ROW = re.compile(r"^\| ([^|]+) \|" + r" ([+-]\d+) % \|" * (3 * len(ENCODINGS)) + "$", re.MULTILINE)
"""A script, then mean, 95th percentile and lowest of the errors by each encoding."""

LOWEST = -15
"""No text counts so many per cent below an exact count, says the guide."""


def errors(script: str, encoding: str) -> list[float]:
    """By how many per cent the approximation is off, of each text, the lowest first."""

    def error(text: str) -> float:
        exact = _core.count_tokens(text, encoding)
        return 100 * (_core.count_tokens(text, "approximate") - exact) / exact

    return sorted(error(text) for text in texts_in(script))


def measured(script: str) -> list[str]:
    """The row of the guide's table."""
    row = []
    for encoding in ENCODINGS:
        found = errors(script, encoding)
        absolute = sorted(map(abs, found))
        mean, high = sum(found) / len(found), absolute[ceil(0.95 * len(found)) - 1]
        row += [f"{value:+.0f}" for value in (mean, high, found[0])]
    return row


def test_the_guide_has_the_errors() -> None:
    stated = {script: numbers for script, *numbers in ROW.findall(GUIDE.read_text(encoding="utf-8"))}
    assert stated == {script: measured(script) for script in SCRIPTS}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_nearly_no_text_counts_low(encoding: str) -> None:
    found = [error for script in SCRIPTS for error in errors(script, encoding)]
    assert min(found) > LOWEST
    low = sum(error < 0 for error in found)
    assert low <= len(found) // 50


def test_there_are_texts_of_many_words() -> None:
    """The errors above would say nothing of a handful of short texts."""
    for script in SCRIPTS:
        texts = texts_in(script)
        assert len(set(texts)) >= 30, script
        assert sum(_core.count_tokens(text, "o200k_base") for text in texts) >= 500, script
