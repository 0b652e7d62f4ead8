"""Text on a terminal: how many columns it takes, and fitting it into those that there are.

Stored text never reaches a terminal as it is: control characters could move the cursor. Widths follow Unicode
Standard Annex 11: wide and full-width characters take two columns, and marks that combine none.
"""

import re
import unicodedata
from collections.abc import Iterator


def printable(text: str) -> str:
    """Make one line of a text, without anything that a terminal might obey."""
    spaced = re.sub(r"\s+", " ", text).strip()
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in spaced)


def width(text: str) -> int:
    """Count the columns that a printable text takes."""
    return sum(map(_columns, text))


def cut(text: str, columns: int) -> str:
    """Keep what fits, and say with `...` that something was cut."""
    if width(text) <= columns:
        return text
    return _take(text, columns - 3).rstrip() + "..."


def pad(text: str, columns: int) -> str:
    """Cut or fill with spaces to exactly so many columns."""
    short = cut(text, columns)
    return short + " " * (columns - width(short))


def wrap(text: str, columns: int) -> Iterator[str]:
    """Break a printable text into lines: at spaces, beside wide characters, and inside longer words."""
    line = ""
    for unit in _units(text):
        rest = unit
        if line and width(line + rest.rstrip()) > columns:
            yield line.rstrip()
            line = ""
        while width(rest.rstrip()) > columns:
            part = _take(rest, columns)
            yield part
            rest = rest[len(part) :]
        line += rest
    if line:
        yield line.rstrip()


def _units(text: str) -> Iterator[str]:
    """Split before anything that may begin a line; the parts together are the text."""
    unit = ""
    for letter in text:
        breaks = unit.endswith(" ") and letter != " "
        if unit and (breaks or _breaks_beside(unit[-1], letter)):
            yield unit
            unit = ""
        unit += letter
    if unit:
        yield unit


def _breaks_beside(before: str, letter: str) -> bool:
    # Closing punctuation never begins a line, and opening punctuation never ends one.
    if _columns(letter) == 2:  # noqa: PLR2004
        return unicodedata.category(letter) not in ("Po", "Pe", "Pf") and unicodedata.category(before) != "Ps"
    return _columns(before) == 2 and letter.isalnum()  # noqa: PLR2004


def _take(text: str, columns: int) -> str:
    taken = 0
    for index, letter in enumerate(text):
        taken += _columns(letter)
        if taken > columns:
            return text[:index]
    return text


def _columns(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
