"""What each feature of the ranking is worth: the same questions with one weight set to 0.

All weights are those that the core names; a feature that is added there is ablated here without a change.
"""

from collections.abc import Mapping, Sequence

from recalld_sidecar import _core
from recalld_sidecar.demo.corpus import Corpus

from tests.quality.asking import ABLATION_BUDGET, RECALLD, Overrides, Result
from tests.quality.measures import mean

DEPTH = 10

ARMS = ("dense", "lexical")
"""The weights of the arms; the others refine what the arms found."""
NEWEST = "update"
"""The weight that makes the newest of several values come first."""

RECALL = "recall@10"
MRR = "MRR"
MRR_WITHOUT_UPDATE = "MRR without updates"
FRESH = "fresh"
BRIEF = f"brief of {ABLATION_BUDGET} tokens"
MEASURES = (RECALL, MRR, MRR_WITHOUT_UPDATE, FRESH, BRIEF)


def weights() -> dict[str, float]:
    """Return the product's weights of the ranking. What is said of single ones here must be so."""
    named = _core.ranking_defaults()
    missing = [name for name in (*ARMS, NEWEST) if name not in named]
    assert not missing, f"no weight of the ranking is called {missing}; there are {sorted(named)}"
    return named


def each_feature_off() -> dict[str, Overrides]:
    """Return the overrides that turn each feature off, by its name."""
    return {name: {name: 0.0} for name, weight in weights().items() if weight}


def arms_alone() -> Overrides:
    """Return the overrides that leave only the arms."""
    return {name: 0.0 for name in weights() if name not in ARMS}


def sample(corpora: Sequence[Corpus], questions: int) -> frozenset[str]:
    """Choose corpora, evenly over a set, until they hold about so many questions."""
    step = max(1, round(sum(len(corpus.questions) for corpus in corpora) / questions))
    return frozenset(corpus.id for corpus in corpora[::step])


def summary(results: Sequence[Result]) -> dict[str, float]:
    """Return the means that ablations are judged by; a measure is absent where no question has it."""
    answerable = [result for result in results if result.answerable]
    values: Mapping[str, Sequence[float]] = {
        RECALL: [result.recall[RECALLD][DEPTH] for result in answerable],
        MRR: [result.reciprocal[RECALLD] for result in answerable],
        MRR_WITHOUT_UPDATE: [result.reciprocal[RECALLD] for result in answerable if not result.is_update],
        FRESH: [result.fresh[RECALLD] for result in answerable if result.is_update],
        BRIEF: [result.briefs[ABLATION_BUDGET].recall for result in answerable],
    }
    return {name: mean(of) for name, of in values.items() if of}
