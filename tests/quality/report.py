"""The report: sections of rows and tables, the goals first.

A row is one measured value; one with a goal says whether it is met, and a missed one by how much. All rows stand in the
JSON; in the Markdown, each section has its tables.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from tests.load.report import Goal, Row, commit, machine, table


@dataclass
class Section:
    """What one part of the measurements found."""

    title: str
    part: str
    """Name of the part of the run that measures it again."""
    rows: list[Row] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    """Paragraphs and tables in Markdown."""

    def add(self, name: str, value: float, unit: str = "share", goal: Goal | None = None) -> None:
        """Add a row."""
        self.rows.append(Row(name, value, unit, goal))

    def say(self, paragraph: str) -> None:
        """Add a paragraph of Markdown."""
        self.text.append(paragraph)

    def show(self, header: Sequence[str], lines: Sequence[Sequence[object]], otherwise: str = "") -> None:
        """Add a table, or say something else where it has no lines."""
        self.text.append(table(header, lines) if lines else otherwise)

    @property
    def command(self) -> str:
        """The command that measures it again."""
        return f"python -m tests.quality.evaluate --only {self.part}"


def verdict(row: Row) -> str:
    """Say whether a row's goal is met, and if not by how much it is missed."""
    if row.goal is None:
        return ""
    return "met" if row.met else f"**missed by {abs(row.value - row.goal.bound):.3g}**"


def goals(sections: Iterable[Section]) -> str:
    """Make the table of all rows with a goal."""
    return listed(row for section in sections for row in section.rows if row.goal)


def listed(rows: Iterable[Row]) -> str:
    """Make a table of rows."""
    lines = [(row.name, f"{row.rounded:,g}", row.unit, row.goal or "", verdict(row)) for row in rows]
    return table(("what", "value", "unit", "goal", "verdict"), lines)


def markdown(sections: Sequence[Section]) -> str:
    """Render the goals and all sections."""
    met = [row.met for section in sections for row in section.rows if row.goal]
    parts = [f"## Goals\n\n{sum(map(bool, met))} of {len(met)} are met.\n\n{goals(sections)}"]
    parts += (
        "\n\n".join([f"## {section.title}", *section.text, f"Again: `{section.command}`."])
        for section in sections
    )
    return "\n\n".join(parts) + "\n"


def write(path: Path, sections: Sequence[Section], conditions: Sequence[str]) -> None:
    """Write `path`.md and `path`.json."""
    about = {"commit": commit(), "machine": machine(), "date": datetime.now(UTC).date().isoformat()}
    rows = [row.as_json(section.command) for section in sections for row in section.rows]
    path.parent.mkdir(parents=True, exist_ok=True)
    content = json.dumps(about | {"rows": rows}, indent=1, ensure_ascii=False)
    path.with_suffix(".json").write_text(content + "\n", "utf8")
    intro = [
        "# Retrieval quality",
        f"Commit {about['commit']}, {about['date']}, on {about['machine']}. Made by `make quality`.",
        *conditions,
    ]
    path.with_suffix(".md").write_text("\n\n".join(intro) + "\n\n" + markdown(sections), "utf8")
