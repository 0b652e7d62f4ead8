"""The report: rows with goals, what they were measured on, and how to measure them again."""

import json
import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from recalld_sidecar.load.plot import Chart

from tests.load.corpus import ROOT

COMMAND = "python -m tests.load.figures"
"""What measures."""


@dataclass(frozen=True)
class Goal:
    """A bound on a value, the bound itself allowed."""

    bound: float
    at_least: bool = False

    def met(self, value: float) -> bool:
        """Whether a value is within the bound."""
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}"


def at_most(bound: float) -> Goal:
    """Make a goal that larger values miss."""
    return Goal(bound)


def at_least(bound: float) -> Goal:
    """Make a goal that smaller values miss."""
    return Goal(bound, at_least=True)


@dataclass(frozen=True)
class Row:
    """One measured value."""

    name: str
    value: float
    unit: str
    goal: Goal | None = None

    def as_json(self, command: str) -> dict[str, object]:
        """Return it as it stands in the report's file."""
        return {
            "name": self.name,
            "value": self.rounded,
            "unit": self.unit,
            "goal": str(self.goal) if self.goal else None,
            "met": self.met,
            "command": command,
        }

    @property
    def met(self) -> bool | None:
        """Whether the goal is met; None without one."""
        return self.goal.met(self.value) if self.goal else None

    @property
    def rounded(self) -> float:
        """The value with four digits."""
        return float(f"{self.value:.4g}")

    @property
    def shown(self) -> str:
        """The value as people read it."""
        return f"{self.rounded:,g}"


@dataclass(frozen=True)
class MissingRow:
    """A value that was not measured in this run, and what to run to have it."""

    name: str
    unit: str
    goal: Goal | None
    how: str
    met: None = None

    def as_json(self, _command: str) -> dict[str, object]:
        """Return it as it stands in the report's file."""
        return Row(self.name, 0, self.unit, self.goal).as_json(self.how) | {"value": None, "met": None}

    @property
    def shown(self) -> str:
        """Why there is no value."""
        return f"not run: `{self.how}`"


@dataclass
class Figures:
    """What one group of measurements found."""

    title: str
    rows: list[Row | MissingRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Paragraphs and tables in Markdown that follow the rows."""
    charts: dict[str, Chart] = field(default_factory=dict)
    """Pictures that follow them, by the name of their file."""

    def add(self, name: str, value: float, unit: str, goal: Goal | None = None) -> None:
        """Add a row."""
        self.rows.append(Row(name, value, unit, goal))

    def miss(self, name: str, unit: str, goal: Goal | None, how: str) -> None:
        """Add a row that this run does not measure, with what to run to have it."""
        self.rows.append(MissingRow(name, unit, goal, how))


def table(header: Sequence[str], lines: Sequence[Sequence[object]]) -> str:
    """Make a Markdown table whose first column is text and whose others are numbers."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in [header, rule, *lines])


def markdown(figures: Figures, picture: Callable[[str], str] | None = None) -> str:
    """Render one group; `picture` turns the name of a chart into that of its file, without which none is shown."""
    mark = {None: "", True: "yes", False: "**no**"}
    lines = [(row.name, row.shown, row.unit, row.goal or "", mark[row.met]) for row in figures.rows]
    parts = [f"## {figures.title}", table(("what", "value", "unit", "goal", "met"), lines)]
    if picture:
        parts += [f"![{chart.title}]({picture(name)})" for name, chart in figures.charts.items()]
    parts += figures.notes
    return "\n\n".join(parts) + "\n"


def machine() -> str:
    """Describe the machine without naming it."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text("ascii", "replace").splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    kernel = platform.release().partition("-")[0]
    return f"{model}, {os.cpu_count()} cores, {memory:.0f} GiB, {platform.system()} {kernel}"


def commit() -> str:
    """Name the commit that was measured, with a mark when the tree differs from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    return described.stdout.strip() or "unknown"


def about() -> dict[str, str]:
    """Say what was measured where and when."""
    return {"commit": commit(), "machine": machine(), "date": datetime.now(UTC).date().isoformat()}


def write(path: Path, measured: Sequence[tuple[Figures, str]], conditions: Sequence[str]) -> None:
    """Write `path`.md and `path`.json; each group comes with the command that measures it again."""
    context = about()
    rows = [row.as_json(command) for figures, command in measured for row in figures.rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(context | {"rows": rows}, indent=1, ensure_ascii=False)
    path.with_suffix(".json").write_text(content + "\n", "utf8")
    explanation = (
        "Times are medians of rounds in which all contestants of a comparison took turns; a ratio or "
        "difference is the median of the rounds' own. Absolute times depend on the machine and on what "
        "else it did. What a row misses its goal by, where its time goes and what was tried: "
        "[decision 0016](../decisions/0016-rows-missed.md)."
    )
    intro = [
        "# Load",
        f"Commit {context['commit']}, {context['date']}, on {context['machine']}. Made by `make load`.",
        " ".join(conditions),
        explanation,
    ]

    def picture(name: str) -> str:
        return f"{path.name}-{name}.svg"

    for figures, _ in measured:
        for name, chart in figures.charts.items():
            path.with_name(picture(name)).write_text(chart.svg(), "utf8")
    groups = [markdown(figures, picture) for figures, _ in measured]
    text = "\n\n".join(intro) + "\n\n" + "\n".join(groups)
    path.with_suffix(".md").write_text(text, "utf8")
