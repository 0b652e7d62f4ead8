"""Line charts as SVG, for reports: a few series of points, each axis linear or logarithmic, nothing else.

The picture carries its own background and a text that says what it shows, and needs no fonts or scripts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 760, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 24, 44, 52
# Colours that people who see colours differently tell apart (Okabe and Ito 2008).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_STEPS = (1, 2, 5)
_TICKS = 6


@dataclass(frozen=True)
class Axis:
    """What runs along one side of a chart."""

    label: str
    log: bool = False
    ticks: Mapping[float, str] | None = None
    """Where to write what; round numbers unless given."""


@dataclass(frozen=True)
class Chart:
    """A chart of one or more series, which are shown in the order of their points."""

    title: str
    x: Axis
    y: Axis
    series: Mapping[str, Points]
    limit: tuple[str, float] | None = None
    """A level of y to mark, with its name."""

    def svg(self) -> str:
        """Draw it."""
        points = [point for series in self.series.values() for point in series]
        levels = [y for _, y in points] + ([self.limit[1]] if self.limit else [])
        x = _Scale(self.x, [x for x, _ in points], _LEFT, WIDTH - _RIGHT)
        y = _Scale(self.y, levels, HEIGHT - _BOTTOM, _TOP)
        return "\n".join(
            [*_head(self), *_grid(x, y), *_limit(self.limit, y), *_lines(self, x, y), "</svg>\n"]
        )


class _Scale:
    """Turns values of an axis into places on the picture."""

    def __init__(self, axis: Axis, values: Sequence[float], start: float, end: float) -> None:
        self.axis = axis
        self._to: Callable[[float], float] = math.log10 if axis.log else float
        ticks = axis.ticks or _round_ticks(min(values, default=1), max(values, default=1), log=axis.log)
        self.ticks = ticks
        spread = [*values, *ticks]
        self._low, self._high = self._to(min(spread)), self._to(max(spread))
        self._start, self._end = start, end

    def __call__(self, value: float) -> float:
        share = (self._to(value) - self._low) / ((self._high - self._low) or 1)
        return round(self._start + share * (self._end - self._start), 1)


def _round_ticks(low: float, high: float, *, log: bool) -> dict[float, str]:
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [step * 10.0**decade for decade in decades for step in _STEPS]
        below = [tick for tick in ticks if tick <= low][-1:]
        above = [tick for tick in ticks if tick >= high][:1]
        inner = [tick for tick in ticks if low < tick < high]
    else:
        rough = max(high - min(low, 0), 1e-9) / _TICKS
        decade = 10.0 ** math.floor(math.log10(rough))
        step = next(decade * one for one in (*_STEPS, 10) if decade * one >= rough)
        below, above = [], []
        inner = [step * count for count in range(math.ceil(high / step) + 1)]
    return {tick: f"{tick:,.10g}" for tick in (*below, *inner, *above)}


def _head(chart: Chart) -> list[str]:
    names = ", ".join(chart.series)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" font-size="12" fill="#333"'
    turned = f"translate(16 {(_TOP + HEIGHT - _BOTTOM) / 2}) rotate(-90)"
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style} role="img">',
        f"<title>{escape(chart.title)}</title>",
        f"<desc>{escape(f'{chart.y.label} by {chart.x.label}: {names}')}</desc>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        _text(_LEFT, 22, chart.title, size=15),
        _text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 12, chart.x.label, anchor="middle"),
        f'<text transform="{turned}" text-anchor="middle">{escape(chart.y.label)}</text>',
    ]


def _grid(x: _Scale, y: _Scale) -> list[str]:
    parts = []
    for value, label in x.ticks.items():
        parts.append(_line(x(value), _TOP, x(value), HEIGHT - _BOTTOM))
        parts.append(_text(x(value), HEIGHT - _BOTTOM + 18, label, anchor="middle"))
    for value, label in y.ticks.items():
        parts.append(_line(_LEFT, y(value), WIDTH - _RIGHT, y(value)))
        parts.append(_text(_LEFT - 8, y(value) + 4, label, anchor="end"))
    return parts


def _limit(limit: tuple[str, float] | None, y: _Scale) -> list[str]:
    if limit is None:
        return []
    name, level = limit
    dashed = _line(_LEFT, y(level), WIDTH - _RIGHT, y(level), stroke="#b00", dashed=True)
    return [dashed, _text(WIDTH - _RIGHT - 4, y(level) - 5, name, anchor="end")]


def _lines(chart: Chart, x: _Scale, y: _Scale) -> list[str]:
    parts = []
    for number, (name, points) in enumerate(chart.series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        path = " ".join(f"{x(at)},{y(level)}" for at, level in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{x(at)}" cy="{y(level)}" r="2.5" fill="{colour}"/>' for at, level in points]
        row = _TOP + 16 + 18 * number
        parts.append(_line(_LEFT + 12, row - 4, _LEFT + 36, row - 4, stroke=colour, width=3))
        parts.append(_text(_LEFT + 42, row, name))
    return parts


def _line(
    x1: float, y1: float, x2: float, y2: float, *, stroke: str = "#ddd", width: int = 1, dashed: bool = False
) -> str:
    dash = ' stroke-dasharray="6 4"' if dashed else ""
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{stroke}" stroke-width="{width}"{dash}/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
