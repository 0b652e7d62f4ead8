"""The sections of the report that are made from the answers to questions: one function a section.

They only summarise: everything was measured by `asking`, and every goal stands beside the row that it is for. A section
leaves out what the given sets do not have.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.load.report import Goal, at_least, at_most
from tests.quality import ablations, significance
from tests.quality.ablations import NEWEST
from tests.quality.asking import BUDGETS, DEPTHS, RECALLD, Result
from tests.quality.baseline import BM25_ALONE, OPPONENTS
from tests.quality.causes import CAUSES, EXPLANATION
from tests.quality.measures import auroc, mean
from tests.quality.report import Section
from tests.quality.sets import CHATS, LONG_CHATS, PUBLISHED_BM25, RULES

Results = Mapping[str, Sequence[Result]]
"""By set."""

PART = "recall"
RANKINGS = (RECALLD, *OPPONENTS)
DEPTH = 10

GAIN_ON_THE_MEAN = at_least(0.06)
GAIN_ON_EACH = at_least(0.04)
BRIEF_GOALS = {500: at_least(0.82), 1000: at_least(0.90), 2000: at_least(0.95)}
STRICT_GOALS = {1000: at_least(0.87)}
SESSION_GOALS = {5: at_least(0.985), 10: at_least(0.995)}
ABSTENTION_GOAL = at_least(0.80)
FRESH_GOALS = {CHATS: at_least(0.80), RULES: at_least(0.60)}
PRICE_OF_FRESHNESS = at_most(0.01)
NEVER_BELOW = at_least(0)

MOST_LOST = 30
"""Lost questions that are listed of each set."""


def _answerable(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.answerable]


def _kinds(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Answerable results by kind, in the order of the kinds' names."""
    kinds: dict[str, list[Result]] = {}
    for result in sorted(_answerable(results), key=lambda result: result.kind):
        kinds.setdefault(result.kind, []).append(result)
    return kinds


def _ranked(section: Section, name: str, results: Sequence[Result]) -> Iterator[tuple[object, ...]]:
    """Add recall and MRR of each ranking, and yield the lines of a table."""
    for ranking in RANKINGS:
        recalls = [mean([result.recall[ranking][depth] for result in results]) for depth in DEPTHS]
        mrr = mean([result.reciprocal[ranking] for result in results])
        for depth, value in zip(DEPTHS, recalls, strict=True):
            section.add(f"{name}: recall@{depth}, {ranking}", value)
        section.add(f"{name}: MRR, {ranking}", mrr)
        yield (name, len(results), ranking, *(f"{value:.3f}" for value in (*recalls, mrr)))


_RANKED = ("set", "questions", "ranking", *(f"R@{depth}" for depth in DEPTHS), "MRR")


def sets(results: Results) -> Section:
    """Recall and MRR of each set, beside the opponents and the published baseline."""
    section = Section("Recall by set", PART)
    lines = [line for name, of in results.items() for line in _ranked(section, name, _answerable(of))]
    gains = {}
    for name, of in results.items():
        if name in PUBLISHED_BM25:
            recalls = [result.recall[RECALLD][DEPTH] for result in _answerable(of)]
            gains[name] = mean(recalls) - PUBLISHED_BM25[name]
    if gains.keys() == PUBLISHED_BM25.keys():
        name = f"recall@{DEPTH} above the published BM25, mean of the sets"
        section.add(name, mean(list(gains.values())), goal=GAIN_ON_THE_MEAN)
    for name, gain in gains.items():
        section.add(f"recall@{DEPTH} above the published BM25, {name}", gain, goal=GAIN_ON_EACH)
    section.say(
        "Share of the evidence among the best hits, averaged over the questions that have an answer; a "
        "memory is one message. BM25, the embedder alone (cosine of whole messages) and their plain sum "
        "(.6 and .4 of z-scores) are computed by tests/quality/baseline.py and share no code with the "
        "product."
    )
    section.show(_RANKED, lines)
    if gains:
        section.say(f"Recall@{DEPTH} against the published BM25:")
        section.show(
            ("set", "recalld", "published BM25", "difference"),
            [
                (name, f"{PUBLISHED_BM25[name] + gain:.3f}", f"{PUBLISHED_BM25[name]:.3f}", f"{gain:+.3f}")
                for name, gain in gains.items()
            ],
        )
    return section


def kinds(results: Results) -> Section:
    """The same for each kind of question apart, of sets that have several."""
    section = Section("Recall by kind of question", PART)
    lines = [
        line
        for name, of in results.items()
        if len(_kinds(of)) > 1
        for kind, some in _kinds(of).items()
        for line in _ranked(section, f"{name}, {kind}", some)
    ]
    section.show(("set, kind", *_RANKED[1:]), lines, otherwise="No set has questions of several kinds.")
    return section


def briefs(results: Results) -> Section:
    """Evidence inside briefs."""
    section = Section("Evidence in briefs", PART)
    lines = []
    for name, of in results.items():
        some = _answerable(of)
        cells = []
        for budget in BUDGETS:
            recall = mean([result.briefs[budget].recall for result in some])
            strict = mean([result.briefs[budget].strict for result in some])
            goals = (
                (BRIEF_GOALS.get(budget), STRICT_GOALS.get(budget)) if name == LONG_CHATS else (None, None)
            )
            section.add(f"{name}: recall in a brief of {budget} tokens", recall, goal=goals[0])
            section.add(f"{name}: recall in a brief of {budget} tokens, strict", strict, goal=goals[1])
            cells.append(f"{recall:.3f} / {strict:.3f}")
        lines.append((name, *cells))
    section.say(
        "Share of the evidence inside the rendered brief, its frame counted (o200k_base): in any form / "
        "strict. Strict counts evidence only when what is quoted of it has half of the answer's words, of "
        "those that the whole memory has (without stop words, stemmed); evidence with no word of the "
        "answer counts when it is there."
    )
    section.show(("set", *(f"{budget:,}" for budget in BUDGETS)), lines)
    return section


def sessions(results: Results) -> Section:
    """Sessions with evidence among those of the best hits."""
    section = Section("Sessions found", PART)
    lines = []
    for name, of in results.items():
        some = [result for result in _answerable(of) if result.sessions]
        if not some:
            continue
        cells = []
        for depth in DEPTHS:
            first = mean([result.sessions[depth][0] for result in some])
            share = mean([result.sessions[depth][1] for result in some])
            every = mean([float(result.sessions[depth][1] == 1) for result in some])
            goal = SESSION_GOALS.get(depth) if name == CHATS else None
            section.add(f"{name}: a session with evidence in the top {depth}", first, goal=goal)
            section.add(f"{name}: every session with evidence in the top {depth}", every)
            section.add(f"{name}: share of sessions with evidence in the top {depth}", share)
            cells.append(f"{first:.3f} / {every:.3f} / {share:.3f}")
        lines.append((name, len(some), *cells))
    section.say(
        "Questions with a session with evidence among the sessions of the best hits / with every such "
        "session / share of such sessions."
    )
    section.show(
        ("set", "questions", *(f"top {depth}" for depth in DEPTHS)), lines, otherwise="No set names sessions."
    )
    return section


def abstention(results: Results) -> Section:
    """Whether the answer shows that nothing answers the question."""
    section = Section("Questions that nothing answers", PART)
    for name, of in results.items():
        without = [result for result in of if not result.answerable]
        if not without:
            continue
        answerable = _answerable(of)
        lines = []
        for number in sorted({number for result in of for number in result.best}):
            # Where nothing was found, nothing speaks for an answer.
            values = [
                [result.best.get(number, float("-inf")) for result in some] for some in (answerable, without)
            ]
            area = auroc(*values)
            low, high = significance.interval_of_two(auroc, *values)
            goal = ABSTENTION_GOAL if name == CHATS and number == "relevance" else None
            section.add(f"{name}: abstention AUROC by {number} of the best hit", area, goal=goal)
            lines.append((number, f"{area:.3f}", f"{low:.3f} to {high:.3f}"))
        told = mean([float(result.only_weak) for result in without])
        lost = mean([float(result.only_weak) for result in answerable])
        section.add(f"{name}: unanswerable, answered with nothing or weak hits", told)
        section.add(f"{name}: answerable, answered with nothing or weak hits", lost)
        section.say(
            f"{name}, {len(answerable)} answerable questions against {len(without)} that nothing answers; "
            "AUROC of what the response says of the best hit, with its 95 % interval (bootstrap):"
        )
        section.show(("best hit's", "AUROC", "interval"), lines)
        section.say(
            f"Answered with nothing or only with hits marked `weak`, at the default threshold: {told:.1%} "
            f"of the unanswerable and {lost:.1%} of the answerable questions."
        )
    if not section.text:
        section.say("No set has questions that nothing answers.")
    return section


def freshness(results: Results, ablated: Mapping[str, Results]) -> Section:
    """Whether the newest value of an updated fact comes first, and what that costs other questions."""
    section = Section("The newest value first", PART)
    lines = []
    for name, of in results.items():
        updates = [result for result in _answerable(of) if result.is_update]
        others = [result for result in _answerable(of) if not result.is_update]
        if not updates:
            continue
        values = [mean([result.fresh[ranking] for result in updates]) for ranking in RANKINGS]
        for ranking, value in zip(RANKINGS, values, strict=True):
            goal = FRESH_GOALS.get(name) if ranking == RECALLD else None
            section.add(f"{name}: fresh, plain memories, {ranking}", value, goal=goal)
        mrr = mean([result.reciprocal[RECALLD] for result in others]) if others else float("nan")
        lines.append((name, len(updates), *(f"{value:.3f}" for value in values), f"{mrr:.3f}"))
    for name, features in ablated.items():
        price = _price(features)
        if price is not None:
            goal = PRICE_OF_FRESHNESS if name in FRESH_GOALS else None
            section.add(f"{name}: MRR that `{NEWEST}` costs questions without an update", price, goal=goal)
    section.say(
        "Share of updated facts of which a statement of the newest value comes before every one of an old "
        "value. All memories are plain: nothing says which replaces which. The last column is recalld's "
        "MRR on the questions of the same set without an update; sorting by date alone would reach 1 and "
        "ruin it."
    )
    section.show(("set", "updates", *RANKINGS, "MRR elsewhere"), lines, otherwise="No set has updated facts.")
    return section


def _price(of: Mapping[str, Sequence[Result]]) -> float | None:
    """MRR of questions without an update without preferring the newest, less that with all features."""
    if NEWEST not in of:
        return None
    off, on = (ablations.summary(of[name]).get(ablations.MRR_WITHOUT_UPDATE) for name in (NEWEST, ""))
    has_updates = any(result.is_update for result in of[""])
    return off - on if off is not None and on is not None and has_updates else None


_COMPARED: Mapping[str, Callable[[Result, str], float]] = {
    f"recall@{DEPTH}": lambda result, ranking: result.recall[ranking][DEPTH],
    "MRR": lambda result, ranking: result.reciprocal[ranking],
}


def paired_tests(results: Results) -> Section:
    """Recalld against each opponent on the same questions."""
    section = Section("Paired tests", PART)
    lines = []
    for name, of in results.items():
        some = _answerable(of)
        corpora = [result.corpus for result in some]
        for measure, value in _COMPARED.items():
            for opponent in OPPONENTS:
                ours, theirs = (
                    [value(result, ranking) for result in some] for ranking in (RECALLD, opponent)
                )
                test = significance.compare(ours, theirs, corpora)
                section.add(f"{name}: {measure}, recalld less {opponent}", test.difference)
                section.add(f"{name}: {measure}, recalld less {opponent}: p", test.p, "p")
                lines.append(
                    (
                        name,
                        measure,
                        opponent,
                        f"{test.difference:+.3f}",
                        f"{test.low:+.3f} to {test.high:+.3f}",
                        f"{test.wins} / {test.losses}",
                        f"{test.p:.4f}",
                        f"{test.p_sign:.4f}",
                        test.unit,
                    )
                )
    section.say(
        "recalld less each opponent: mean difference, 95 % interval (bootstrap), questions won / lost, p "
        f"of a sign-flip permutation test ({significance.RESAMPLES:,} draws) and of the exact sign test, "
        "both two-sided and not adjusted for their number. Questions of one corpus share its memories: "
        f"where a set has {significance.ENOUGH_CORPORA} corpora or more, whole corpora are drawn and "
        "flipped; elsewhere questions are, which makes p smaller than it should be."
    )
    section.show(
        ("set", "measure", "against", "difference", "interval", "won / lost", "p", "p (sign)", "unit"),
        lines,
    )
    return section


def lost(results: Results) -> Section:
    """Lost questions by cause."""
    section = Section("Lost questions", PART)
    lines = []
    names = []
    for name, of in results.items():
        for kind, some in _kinds(of).items():
            count = Counter(result.cause for result in some)
            lines.append(
                (f"{name}, {kind}", len(some), len(some) - count[None], *(count[one] for one in CAUSES))
            )
        count = Counter(result.cause for result in _answerable(of))
        for one in CAUSES:
            section.add(f"{name}: lost, {one}", count[one], "questions")
        some = [result for result in _answerable(of) if result.cause]
        # Spread over the set, so that the list is not only of its first corpora.
        step = max(1, -(-len(some) // MOST_LOST))
        listed = [f"{result.question} ({result.kind}: {result.cause})" for result in some[::step]]
        names.append(
            f"{name}, {len(listed)} of {len(some)}: {', '.join(listed)}." if listed else f"{name}: none."
        )
    section.say(
        f"Questions of which not all evidence is among the best {DEPTH} hits. Each has one cause, the "
        "first whose rule holds:"
    )
    section.say(EXPLANATION.strip())
    section.show(("set, kind", "questions", "lost", *CAUSES), lines)
    section.say("Some of them, by id:")
    section.text += names
    return section


def ablation(ablated: Mapping[str, Results]) -> Section:
    """Each feature of the ranking off. `ablated` has the results by set and feature, all features under ""."""
    section = Section("Ablations", "ablations")
    lines = []
    for name, of in ablated.items():
        whole = ablations.summary(of[""])
        for measure, value in whole.items():
            section.add(f"{name}: {measure} with all features, of the questions of the ablations", value)
        lines.append((name, len(_answerable(of[""])), "all on", *_cells(whole, None)))
        for feature, results in of.items():
            if feature:
                off = ablations.summary(results)
                for measure, value in off.items():
                    section.add(f"{name}: {measure} that {feature} adds", whole[measure] - value)
                lines.append((name, "", f"without {feature}", *_cells(off, whole)))
    section.say(
        "The same questions with one weight of the ranking set to 0: the value, and its difference from "
        "all features on. Of large sets, evenly chosen corpora."
    )
    section.show(
        ("set", "questions", "features", *ablations.MEASURES), lines, otherwise="The core names no weights."
    )
    return section


def _cells(summary: Mapping[str, float], whole: Mapping[str, float] | None) -> Iterator[str]:
    for measure in ablations.MEASURES:
        value = summary.get(measure)
        if value is None:
            yield ""
        else:
            yield f"{value:.3f}" if whole is None else f"{value:.3f} ({value - whole[measure]:+.3f})"


def _by_kind(results: Results) -> Iterator[tuple[str, Sequence[Result]]]:
    """Sets with several kinds of questions, one kind after another; the others whole."""
    for name, of in results.items():
        kinds = _kinds(of)
        for kind, some in kinds.items():
            yield (f"{name}, {kind}" if len(kinds) > 1 else name), some


def synthetic(results: Results) -> Section:
    """Sets that nothing was tuned to."""
    section = Section("Synthetic sets", "synthetic")
    lines = []
    for name, of in _by_kind(results):
        corpora = [result.corpus for result in of]
        cells: list[object] = [name, len(of)]
        for measure, value in _COMPARED.items():
            ours, theirs = ([value(result, ranking) for result in of] for ranking in (RECALLD, BM25_ALONE))
            test = significance.compare(ours, theirs, corpora)
            goal: Goal | None = NEVER_BELOW if measure.startswith("recall") else None
            section.add(f"{name}: {measure}, recalld", mean(ours))
            section.add(f"{name}: {measure}, {BM25_ALONE}", mean(theirs))
            section.add(f"{name}: {measure}, recalld less {BM25_ALONE}", test.difference, goal=goal)
            cells += [f"{mean(ours):.3f}", f"{mean(theirs):.3f}", f"{test.difference:+.3f} (p {test.p:.3f})"]
        updates = [result for result in of if result.is_update]
        fresh = {
            ranking: mean([result.fresh[ranking] for result in updates])
            for ranking in (RECALLD, BM25_ALONE)
            if updates
        }
        for ranking, share in fresh.items():
            section.add(f"{name}: fresh, {ranking}", share)
        lines.append((*cells, " / ".join(f"{share:.3f}" for share in fresh.values())))
    section.say(
        "Made by rule from a fixed seed and without labels (tests/quality/synthetic.py), to see that "
        "nothing is tuned to the sets above: recalld against BM25 alone. By rare words: memories of a "
        "set, asked for by three of their five rarest words and one of another memory. By some of their "
        "words: by any two of their words and two of other memories; no sentence, so that meaning can "
        "only mislead. One slot differs: short templated memories. Codes: functions, order numbers and "
        "error codes that differ in a character. Updates: each attribute changes twice."
    )
    section.show(
        (
            "set",
            "questions",
            "R@10",
            "BM25",
            "difference",
            "MRR",
            "BM25",
            "difference",
            "fresh, and BM25's",
        ),
        lines,
    )
    return section
