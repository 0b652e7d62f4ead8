"""The highest rate that a server holds: bracketed, bisected, and confirmed.

A probe is a short run at one rate, which says whether the server held it. Probes of a shared machine are noisy, so a
rate counts as too high only when it failed twice, and the rate found is held again for longer. This module must
know nothing of what is measured.
"""

import math
from collections.abc import Callable

Probe = Callable[[float, float], bool]
"""Runs at a rate (calls a second) for so many seconds, and says whether it was held."""

_FACTOR = 2.0
_LEAST = 10.0
"""Calls a second below which nothing is looked for."""
_LEAST_CALLS = 20
"""Of a probe; a slow one takes longer than it was asked to."""
_MOST = 1e6


def highest_rate(
    held: Probe,
    *,
    first: float,
    short: float = 2.0,
    long: float = 10.0,
    precision: float = 0.05,
) -> float:
    """Find the highest rate that is held, to within `precision`; 0 when even ten calls a second are too many.

    `first` is where the search begins, `short` and `long` are the seconds of a probe and of the confirmation. What is
    not confirmed is lowered until it is, by `precision` first and by twice as much each time after.
    """

    def holds(rate: float, seconds: float) -> bool:
        length = max(seconds, _LEAST_CALLS / rate)
        return held(rate, length) or held(rate, length)

    low, high = _bracket(lambda rate: holds(rate, short), max(first, _LEAST))
    while high > low * (1 + precision) and low:
        middle = math.sqrt(low * high)
        if holds(middle, short):
            low = middle
        else:
            high = middle
    step = precision
    while low and not holds(low, long):
        lower = low * (1 - min(step, 0.5))
        low = lower if lower >= _LEAST else 0.0
        step *= 2
    return low


def _bracket(holds: Callable[[float], bool], rate: float) -> tuple[float, float]:
    """Find a rate that is held, 0 if none is, and one that is not."""
    if holds(rate):
        while rate < _MOST and holds(rate * _FACTOR):
            rate *= _FACTOR
        return rate, rate * _FACTOR
    while rate > _LEAST:
        rate = max(rate / _FACTOR, _LEAST)
        if holds(rate):
            return rate, rate * _FACTOR
    return 0.0, rate
