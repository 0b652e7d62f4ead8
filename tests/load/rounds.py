"""Timing in turns: contestants do a little work each, round after round, and are compared within the round.

A machine's speed drifts with its other work, so that two times taken one after the other say little about
each other. Within one short round both meet the same machine; the median over many rounds sheds the rounds
in which it changed.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median

Call = Callable[[int], object]
"""One call; the argument counts its calls up, so that it can vary what it asks."""


def percentile(values: Sequence[float], share: float) -> float:
    """The least value with at least this share of the values at or below it."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass
class Timing:
    """What a contestant took, round by round, in seconds a call."""

    p50s: list[float] = field(default_factory=list)
    p99s: list[float] = field(default_factory=list)
    means: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    """Processor time of the calling thread."""

    @property
    def p50(self) -> float:
        """Median of the rounds' medians."""
        return median(self.p50s)

    @property
    def p99(self) -> float:
        """Median of the rounds' 99th percentiles."""
        return median(self.p99s)

    @property
    def mean(self) -> float:
        """Median of the rounds' means."""
        return median(self.means)

    @property
    def cpu(self) -> float:
        """Median of the rounds' processor time, which does not count waiting for a busy machine."""
        return median(self.cpus)


def in_turns(calls: Mapping[str, Call], *, rounds: int, calls_a_round: int) -> dict[str, Timing]:
    """Time the contestants, one after the other in each round, the order turning with the rounds.

    The first round only warms up. In one round every contestant is called with the same arguments.
    """
    timings = {name: Timing() for name in calls}
    names = list(calls)
    with garbage_kept():
        for number in range(rounds + 1):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                taken, cpu = _timed(calls[name], range(number * calls_a_round, (number + 1) * calls_a_round))
                if number > 0:
                    timing = timings[name]
                    timing.p50s.append(median(taken))
                    timing.p99s.append(percentile(taken, 0.99))
                    timing.means.append(sum(taken) / len(taken))
                    timing.cpus.append(cpu / len(taken))
    return timings


def _timed(call: Call, arguments: range) -> tuple[list[float], float]:
    clock = time.perf_counter
    taken = []
    cpu = time.thread_time()
    for argument in arguments:
        start = clock()
        call(argument)
        taken.append(clock() - start)
    return taken, time.thread_time() - cpu


def turns(
    measurements: Mapping[str, Callable[[], float]], *, rounds: int, warm_up: bool = True
) -> dict[str, list[float]]:
    """Take measurements, one after the other in each round, the order turning with the rounds.

    The first round only warms up, unless told otherwise.
    """
    found: dict[str, list[float]] = {name: [] for name in measurements}
    names = list(measurements)
    with garbage_kept():
        for number in range(rounds + warm_up):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                value = measurements[name]()
                if number >= warm_up:
                    found[name].append(value)
    return found


def ratio(a: Sequence[float], b: Sequence[float]) -> float:
    """Median over the rounds of a / b."""
    return median(one / other for one, other in zip(a, b, strict=True))


def difference(a: Sequence[float], b: Sequence[float]) -> float:
    """Median over the rounds of a - b."""
    return median(one - other for one, other in zip(a, b, strict=True))


@contextmanager
def garbage_kept() -> Iterator[None]:
    """Keep Python's garbage collector from stopping a call that is timed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
