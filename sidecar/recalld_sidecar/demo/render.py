"""What the demo prints: a report for people, in plain text of a given width, or one JSON document.

Nothing is computed here that is not in the report, and both forms say the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from recalld import Signature

from recalld_sidecar import __version__
from recalld_sidecar.demo import text
from recalld_sidecar.demo.measure import DEPTHS, HITS, Answer, Report, Timing

FULL_ANSWERS = 3
"""Answers printed in full when there are several corpora."""
LISTED_ANSWERS = 20
"""Further answers printed, as one line each."""

_LABEL = 12
_KIND = 12


def to_text(report: Report, columns: int, build: str) -> Iterator[str]:
    """Render for people, line by line. `build` is the build profile of the core."""
    yield from _opening(report, columns)
    full = len(report.answers) if len(report.stored) == 1 else FULL_ANSWERS
    for number, answer in enumerate(report.answers[:full], 1):
        yield from _answer(answer, f"Question {number} of {len(report.answers)}", columns)
    if len(report.answers) > full:
        yield from _further_answers(report.answers, full, columns)
    yield from _evidence(report, columns)
    yield from _latency(report, build, columns)
    yield from _tokens(report, columns)


def _opening(report: Report, columns: int) -> Iterator[str]:
    docs = sum(len(stored.corpus.docs) for stored in report.stored)
    seconds = sum(stored.seconds for stored in report.stored)
    calls = sum(stored.calls for stored in report.stored)
    title = "recalld demo"
    yield title
    yield "=" * len(title)
    yield from _entry(
        "History",
        f"{report.data}: {_count(docs, 'message')} in {_count(len(report.stored), 'corpus', 'corpora')}, "
        f"{_count(len(report.answers), 'question')}",
        columns,
    )
    yield from _entry(
        "Sidecar",
        f"recalld {report.stats.server_version}, a process of its own on an empty store, over a Unix socket",
        columns,
    )
    yield from _entry(
        "Written",
        f"{_count(docs, 'message')} in {_count(calls, 'call')} and {seconds:.2f} s, "
        f"durable when acknowledged; now {_count(report.stats.memories, 'memory', 'memories')} in "
        f"{report.stats.bytes_used / (1 << 20):.1f} MiB",
        columns,
    )
    yield from _entry(
        "Asked",
        f"each question as a search for {HITS} hits, of which {DEPTHS[0]} are shown, and as a brief of at "
        f"most {report.budget:,} tokens; no model is called",
        columns,
    )
    yield from _entry(
        "Marks",
        "+ a memory with evidence for the answer, - one with an older value; recalld does not know of them",
        columns,
    )
    yield ""


def _answer(answer: Answer, title: str, columns: int) -> Iterator[str]:
    question = answer.question
    yield from _heading(f"{title}: {question.kind}" if question.kind else title)
    yield from text.wrap(text.printable(question.text), columns)
    if question.answer:
        yield from _entry("Expected", text.printable(question.answer), columns)
    yield ""
    yield f"     rank  score  tokens  {text.pad('kind', _KIND)}  date        summary"
    for rank, hit in enumerate(answer.search[: DEPTHS[0]], 1):
        yield _hit(answer, rank, hit, columns)
    if not answer.search:
        yield "     nothing found"
    yield ""
    brief = answer.brief
    yield (
        f"Brief: {brief.tokens:,} tokens of at most {answer.budget:,}, "
        f"{_count(len(brief.included), 'memory', 'memories')} included, {len(brief.omitted)} omitted"
    )
    if brief.text:
        yield ""
    marks = {memory.citation: _mark(answer, memory.id) for memory in brief.included}
    for line in brief.text.splitlines():
        citation = line.removeprefix("- ").partition(" ")[0]
        lines = text.wrap(text.printable(line), columns - 7)
        yield f"  {marks.get(citation, ' ')}  {next(lines, '')}".rstrip()
        yield from (f"       {further}" for further in lines)
    yield ""
    yield from text.wrap(_verdict(answer), columns)
    yield ""


def _hit(answer: Answer, rank: int, hit: Signature, columns: int) -> str:
    start = (
        f"  {_mark(answer, hit.id)}  {rank:4}  {hit.score:.3f}  {hit.content_tokens:6,}  "
        f"{text.pad(text.printable(hit.kind), _KIND)}  {hit.occurred_at:%Y-%m-%d}  "
    )
    return start + text.cut(text.printable(hit.summary), columns - text.width(start))


def _mark(answer: Answer, memory: str) -> str:
    if answer.is_evidence(memory):
        return "+"
    return "-" if answer.is_superseded(memory) else " "


def _verdict(answer: Answer) -> str:
    if answer.question.abstain:
        best = f"the best hit scores {answer.search[0].score:.3f}" if answer.search else "nothing was found"
        return f"Evidence: none exists, nothing in the history answers this; {best}"
    if not answer.answerable:
        return "Evidence: the data names none"
    facts = len(answer.question.groups)
    ranks = f" ({_ranks(answer.evidence_ranks)})" if answer.evidence_ranks else ""
    verdict = (
        f"Evidence: {answer.facts_in_hits()} of {facts} in the first {HITS} hits{ranks}, "
        f"{answer.facts_in_brief} of {facts} in the brief"
    )
    if answer.superseded_ranks:
        verdict += f"; an older value at {_ranks(answer.superseded_ranks)}"
    return verdict


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _further_answers(answers: Sequence[Answer], start: int, columns: int) -> Iterator[str]:
    legend = (
        f"facts in the first {HITS} hits and in the brief, of those that an answer needs; - has no answer"
    )
    yield from _section("Further questions", legend, columns)
    yield "   no.   hits  brief  question"
    end = start + LISTED_ANSWERS
    for number, answer in enumerate(answers[start:end], start + 1):
        hits, brief = "-", "-"
        if answer.answerable:
            facts = len(answer.question.groups)
            hits, brief = f"{answer.facts_in_hits()}/{facts}", f"{answer.facts_in_brief}/{facts}"
        line = f"{number:6,}  {hits:>5}  {brief:>5}  "
        yield line + text.cut(text.printable(answer.question.text), columns - len(line))
    if len(answers) > end:
        yield f"        and {len(answers) - end:,} more: all count below, and --json has them"
    yield ""


def _evidence(report: Report, columns: int) -> Iterator[str]:
    answerable = len(report.answerable)
    without = len(report.answers) - answerable
    left_out = f"; {_count(without, 'question')} without an answer left out" if without else ""
    legend = (
        "share of the facts that an answer needs; one is found when a memory that states it is there; "
        f"mean of {_count(answerable, 'question')}{left_out}"
    )
    yield from _section("Evidence found", legend, columns)
    for depth in DEPTHS:
        yield _row(f"recall in the first {depth} hits", _share(report.recall_in_hits(depth)))
    yield _row(f"recall in a brief of {report.budget:,} tokens", _share(report.recall_in_brief))
    yield ""


def _latency(report: Report, build: str, columns: int) -> Iterator[str]:
    note = "" if build == "release" else f"; the core is a {build} build, which is slower than a release"
    legend = (
        f"milliseconds; {_count(report.repeats, 'call')} of each kind, one at a time, round the questions"
    )
    yield from _section("Latency", legend + note, columns)
    yield _row("", "p50", "p99", "max")
    for call, timing in (("search", report.search), ("brief", report.brief)):
        rows = ((f"{call}, at the client", timing.client), ("  of it in the server", timing.server))
        for label, latency in rows:
            yield _row(label, f"{latency.p50:.2f}", f"{latency.p99:.2f}", f"{latency.max:.2f}")
    yield ""


def _tokens(report: Report, columns: int) -> Iterator[str]:
    encoding = report.answers[0].brief.encoding
    legend = f"exact counts in {encoding}, mean of {_count(len(report.answers), 'question')}"
    yield from _section("Tokens a question", legend, columns)
    yield _row("the whole history, replayed", f"{report.history_tokens:,.0f}")
    yield _row("a brief", f"{report.brief_tokens:,.0f}")
    if report.brief_tokens:
        yield _row("history : brief", f"{report.history_tokens / report.brief_tokens:,.1f} : 1")


def _section(title: str, legend: str, columns: int) -> Iterator[str]:
    yield from _heading(title)
    yield from text.wrap(legend, columns)
    yield ""


def _row(label: str, *values: str) -> str:
    return f"{label:<40}" + "".join(f"{value:>10}" for value in values)


def _heading(title: str) -> Iterator[str]:
    shown = text.printable(title)
    yield shown
    yield "-" * text.width(shown)


def _entry(label: str, value: str, columns: int) -> Iterator[str]:
    for index, line in enumerate(text.wrap(value, columns - _LABEL)):
        yield f"{'' if index else label:<{_LABEL}}{line}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def to_json(report: Report, build: str) -> dict[str, Any]:
    """Render for programs. Times are in milliseconds where the name says so, shares go from 0 to 1."""
    return {
        "client_version": __version__,
        "server_version": report.stats.server_version,
        "core_build": build,
        "data": report.data,
        "corpora": [
            {
                "id": stored.corpus.id,
                "docs": len(stored.corpus.docs),
                "memories": len(stored.docs),
                "write_calls": stored.calls,
                "write_seconds": stored.seconds,
                "history_tokens": stored.history_tokens,
            }
            for stored in report.stored
        ],
        "budget_tokens": report.budget,
        "questions": [_question(answer) for answer in report.answers],
        "recall": {
            "questions": len(report.answerable),
            **{f"hits_{depth}": report.recall_in_hits(depth) for depth in DEPTHS},
            "brief": report.recall_in_brief,
        },
        "latency_ms": {
            "repeats": report.repeats,
            "search": _timing(report.search),
            "brief": _timing(report.brief),
        },
        "tokens_per_question": {"history": report.history_tokens, "brief": report.brief_tokens},
    }


def _question(answer: Answer) -> dict[str, Any]:
    question, brief = answer.question, answer.brief
    return {
        "corpus": answer.stored.corpus.id,
        "id": question.id,
        "text": question.text,
        "kind": question.kind,
        "answer": question.answer,
        "abstain": question.abstain,
        "evidence": {
            "needed": len(question.groups),
            "in_hits": answer.facts_in_hits(),
            "in_brief": answer.facts_in_brief,
        },
        "hits": [
            {
                "id": hit.id,
                "docs": answer.docs(hit.id),
                "key": hit.key,
                "kind": hit.kind,
                "score": hit.score,
                "content_tokens": hit.content_tokens,
                "occurred_at": hit.occurred_at.isoformat(),
                "summary": hit.summary,
                "evidence": answer.is_evidence(hit.id),
                "superseded": answer.is_superseded(hit.id),
            }
            for hit in answer.search
        ],
        "brief": {
            "text": brief.text,
            "tokens": brief.tokens,
            "encoding": brief.encoding,
            "included": [
                {
                    "id": memory.id,
                    "docs": answer.docs(memory.id),
                    "form": memory.form,
                    "tokens": memory.tokens,
                    "evidence": answer.is_evidence(memory.id),
                    "superseded": answer.is_superseded(memory.id),
                }
                for memory in brief.included
            ],
            "omitted": [{"id": memory.id, "reason": memory.reason} for memory in brief.omitted],
        },
    }


def _timing(timing: Timing) -> dict[str, Any]:
    return asdict(timing)
