"""Goals of single algorithms, from the report of `make bench`, which measures them without Python around them."""

import json
import re
from pathlib import Path

from tests.load.corpus import ROOT
from tests.load.report import Figures, at_most, commit

BENCHES = ROOT / "docs/reports/bench.json"

GOALS = (
    # What the goal says, a pattern of the benchmark's name, and its goal in microseconds.
    ("embedding of a query", r"embed query, \d+ rows", 2),
    ("embedding of a memory of about 70 tokens", r"embed memory, \d+ rows", 8),
    ("packing 64 candidates x 3 forms into 1,200 tokens, exactly", "pack/64 x 3 into 1,200", 200),
    ("packing 256 candidates x 3 forms into 32,000 tokens", "pack/256 x 3 into 32,000", 5_000),
)


def measure(benches: Path = BENCHES) -> Figures:
    """Read what was measured at this commit."""
    figures = Figures("Algorithms, from `make bench`")
    try:
        report = json.loads(benches.read_text("utf8"))
    except FileNotFoundError:
        report = {"commit": "", "rows": []}
    # The reports themselves make a tree differ from its commit.
    current = report["commit"].rstrip("+") == commit().rstrip("+")
    values = {row["name"]: row["value"] for row in report["rows"]} if current else {}
    for what, pattern, bound in GOALS:
        found = [value for name, value in values.items() if re.fullmatch(pattern, name)]
        if found:
            figures.add(what, found[0], "µs", at_most(bound))
        else:
            figures.miss(what, "µs", at_most(bound), "make bench")
    return figures
