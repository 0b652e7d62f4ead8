"""The sections of the report that are not made from the answers to the sets' questions: one function a section."""

from collections.abc import Mapping, Sequence

from tests.load.report import at_least, at_most
from tests.quality import facts, filters, scorecard, tools
from tests.quality.asking import BUDGETS, REACH, Result
from tests.quality.measures import mean, percentile
from tests.quality.report import Section, listed

FACTS_GOAL = at_least(0.98)
LITERALS_GOAL = at_least(0.90)
ERRORS_GOAL = at_least(1)
IDENTICAL = at_least(1)
APPROXIMATE_GOAL = at_least(0.98)
NONE_FORBIDDEN = at_most(0)
TURN_BUDGET = 1000


def written_facts(outcomes: Mapping[str, Sequence[facts.Outcome]]) -> Section:
    """Updated facts that were written under a key."""
    section = Section("Facts written as facts", "facts")
    lines = []
    for name, of in outcomes.items():
        newest = mean([float(outcome.newest_first) for outcome in of])
        found = mean([float(outcome.found) for outcome in of])
        old = mean([float(outcome.old_shown) for outcome in of])
        section.add(f"{name}: fresh, facts written as facts", newest, goal=FACTS_GOAL)
        section.add(f"{name}: facts written as facts, newest value in the top {facts.DEPTH}", found)
        section.add(f"{name}: facts written as facts, an old value shown", old, goal=at_most(0))
        lines.append((name, len(of), f"{newest:.3f}", f"{found:.3f}", f"{old:.3f}"))
    section.say(
        "Every statement of an updated fact written under one key in the order of time, each in place of "
        "the one before; the rest as turns. Fresh: in the whole ranking (up to 1,000 hits), the newest "
        "value stands, and before every old one. Shown: an old value is among all those hits, or in a "
        "brief of 1,000 tokens."
    )
    section.show(
        ("set", "facts", "fresh", f"newest in the top {facts.DEPTH}", "old value shown"),
        lines,
        otherwise="No set has updated facts.",
    )
    return section


def tool_results(kept: Mapping[float, Sequence[tools.Kept]]) -> Section:
    """What is left of tool results."""
    section = Section("Tool results", "tools")
    lines = []
    for share, of in kept.items():
        needed = sum(one.needed for one in of)
        errors = [one for one in of if one.is_error]
        if not needed or not errors:
            continue
        for way in (tools.BRIEF, tools.CUT_OFF):
            literals = sum(one.literals[way] for one in of) / needed
            told = mean([float(one.error[way]) for one in errors])
            spent = sum(one.spent[way] for one in of) / sum(one.tokens for one in of)
            has_goal = way == tools.BRIEF and share == min(kept)
            name = f"tool results at {share:.0%} of the tokens, {way}"
            section.add(f"{name}: needed literals kept", literals, goal=LITERALS_GOAL if has_goal else None)
            section.add(f"{name}: errors kept", told, goal=ERRORS_GOAL if has_goal else None)
            section.add(f"{name}: tokens spent", spent)
            lines.append((f"{share:.0%}", way, f"{literals:.3f}", f"{told:.3f}", f"{spent:.3f}"))
    section.say(
        "There is no call that compresses a tool result. Measured is what an agent can do: write the "
        "result as a memory of kind `tool_result` in a namespace of its own and ask for a brief of it, "
        "for what it is after, in so many of its tokens. Of a short result that leaves less than the "
        "brief's frame, and nothing. `cut off`: the result's beginning. Literals are those that the agent "
        "used later, counted over all results that have any; an error is kept when the words that tell of "
        "it are left."
    )
    section.show(
        ("budget", "way", "needed literals kept", "errors kept", "tokens spent"),
        lines,
        otherwise="The folder has no tool results.",
    )
    return section


def filtered(found: Sequence[filters.Found]) -> Section:
    """Searches beside brute force."""
    section = Section("Filters, small namespaces and the approximate index", "filters")
    for one in found:
        name = f"search against brute force, {one.name}"
        if one.name == filters.APPROXIMATE:
            section.add(f"{name}: recall@{filters.DEPTH}", one.recall, goal=APPROXIMATE_GOAL)
        else:
            section.add(f"{name}: identical", one.identical, goal=IDENTICAL)
    section.say(
        f"Searches by vector, {filters.DEPTH} hits, against numpy over the same vectors, quantised as they "
        "are stored; features that refine the arms are off. Identical: the same cosines at every place."
    )
    section.show(
        (
            "search",
            "memories allowed",
            "how the dense arm looked",
            "identical",
            f"recall@{filters.DEPTH}",
        ),
        [
            (
                one.name,
                f"{one.allowed:,}",
                ", ".join(one.methods),
                f"{one.identical:.3f}",
                f"{one.recall:.3f}",
            )
            for one in found
        ],
    )
    return section


def card(
    forbidden: Mapping[str, scorecard.Forbidden],
    lag: scorecard.Lag,
    space: scorecard.Space,
    results: Mapping[str, Sequence[Result]],
) -> Section:
    """The scorecard."""
    section = Section("Scorecard", "scorecard")
    for way, of in forbidden.items():
        section.add(f"forbidden memories returned, {way}", of.returned, "memories", NONE_FORBIDDEN)
        section.add(f"twins found, {way}", of.twins_found / of.twins_asked)
    for name, answers in results.items():
        answered = [result for result in answers if result.answerable]
        for budget in BUDGETS:
            reach = mean([result.briefs[budget].reach for result in answered])
            section.add(f"{name}: best {REACH} hits that reach a brief of {budget} tokens", reach)
        tokens = [float(result.briefs[TURN_BUDGET].tokens) for result in answered]
        section.add(f"{name}: tokens of a brief a turn, budget {TURN_BUDGET}", mean(tokens), "tokens")
        without = [result for result in answers if not result.answerable]
        if without:
            told = mean([float(result.only_weak) for result in without])
            missed = mean([float(result.only_weak) for result in answered])
            section.add(f"{name}: unanswerable questions told apart by `weak`", told)
            section.add(f"{name}: answerable questions lost to `weak`", missed)
    milliseconds = [1000 * seconds for seconds in lag.seconds]
    section.add("from acknowledgement to found, p50", percentile(milliseconds, 0.5), "ms")
    section.add("from acknowledgement to found, p99", percentile(milliseconds, 0.99), "ms")
    section.add("searches until a write is found, most", max(lag.searches), "searches", at_most(1))
    section.add("source a memory", space.source_bytes / space.memories, "bytes")
    section.add("disk a memory", space.store_bytes / space.memories, "bytes")
    section.add("index, as a multiple of the source", space.store_bytes / space.source_bytes - 1, "times")
    section.say(
        "Forbidden: memories that were deleted, have expired, lie in another namespace or were replaced, "
        f"each asked for by its own words in a search of {scorecard.LIMIT} hits and a brief; their "
        "untouched twins are asked for in the same way. From acknowledgement to found is the time of the "
        "first search after a write that has it, most of which is the search. The index is all of the "
        "data file but the contents' bytes."
    )
    section.say(listed(section.rows))
    return section
