"""Paired tests of one ranking against another on the same questions.

Questions of one corpus share its documents, so they are not independent. Where a set has many corpora, whole corpora
are drawn and flipped; where it has few, questions are, and the report says so. Seeds are fixed: equal measurements
give equal figures. Nothing is adjusted for the number of comparisons.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEED = 20
RESAMPLES = 10_000
ENOUGH_CORPORA = 20
"""Corpora from which they are the units that are drawn: fewer make no distribution."""
COVERAGE = 0.95
_CHUNK = 500
"""Resamples that are held in memory at a time."""


@dataclass(frozen=True)
class Comparison:
    """By how much one ranking is better than another."""

    difference: float
    """Mean over the questions."""
    low: float
    """Lower end of the 95 % interval of the difference (percentile bootstrap)."""
    high: float
    """Upper end."""
    p: float
    """Two-sided p of the sign-flip permutation test."""
    wins: int
    """Questions on which it is better."""
    losses: int
    """Questions on which it is worse."""
    p_sign: float
    """Two-sided p of the exact sign test over wins and losses; it takes questions for independent."""
    unit: str
    """What was drawn: `corpus` or `question`."""


def compare(ours: Sequence[float], theirs: Sequence[float], corpora: Sequence[str]) -> Comparison:
    """Compare values of the same questions; `corpora` names the corpus of each."""
    differences = np.asarray(ours, dtype=float) - np.asarray(theirs, dtype=float)
    names, members = np.unique(np.asarray(corpora), return_inverse=True)
    by_corpus = len(names) >= ENOUGH_CORPORA
    sums: NDArray[np.float64] = differences
    counts: NDArray[np.float64] = np.ones(len(differences))
    if by_corpus:
        sums = np.bincount(members, weights=differences).astype(np.float64)
        counts = np.bincount(members).astype(np.float64)
    low, high = _interval(sums, counts)
    # Equal sums of floating-point numbers in another order may differ in the last bits.
    wins, losses = int((differences > 1e-12).sum()), int((differences < -1e-12).sum())
    return Comparison(
        difference=float(differences.mean()),
        low=low,
        high=high,
        p=_sign_flips(sums),
        wins=wins,
        losses=losses,
        p_sign=sign_test(wins, losses),
        unit="corpus" if by_corpus else "question",
    )


def _sign_flips(sums: NDArray[np.float64]) -> float:
    """p of the sum under random signs, the observed signs counted as one draw."""
    moved = sums[np.abs(sums) > 1e-12]
    generator = np.random.default_rng(SEED)
    observed = abs(float(moved.sum()))
    extreme = 1
    for _ in range(RESAMPLES // _CHUNK):
        signs = generator.integers(0, 2, (_CHUNK, len(moved)), dtype=np.int8) * 2 - 1
        extreme += int((np.abs(signs @ moved) >= observed - 1e-9).sum())
    return extreme / (RESAMPLES + 1)


def _interval(sums: NDArray[np.float64], counts: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the percentile interval of the mean over questions, when units are drawn with replacement."""
    generator = np.random.default_rng(SEED)
    means = []
    for _ in range(RESAMPLES // _CHUNK):
        drawn = generator.integers(0, len(sums), (_CHUNK, len(sums)))
        means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail])
    return float(low), float(high)


def sign_test(wins: int, losses: int) -> float:
    """Two-sided p of so uneven a split of fair coins."""
    tosses = wins + losses
    tail = sum(math.comb(tosses, k) for k in range(min(wins, losses) + 1))
    return min(1.0, tail / 2 ** (tosses - 1)) if tosses else 1.0


def interval_of_two(
    measure: Callable[[Sequence[float], Sequence[float]], float],
    ours: Sequence[float],
    theirs: Sequence[float],
) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a measure of two independent samples, both drawn with replacement."""
    generator = np.random.default_rng(SEED)
    one, other = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    values = [
        measure(list(generator.choice(one, len(one))), list(generator.choice(other, len(other))))
        for _ in range(RESAMPLES // 10)
    ]
    tail = (1 - COVERAGE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)
