"""Measures retrieval on question sets and writes the report docs/reports/quality.

The core runs in this process and its children and is driven through the same bytes that a client sends. Every corpus is
a namespace of its own. Nothing is fitted here: the product's defaults are used for all sets.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from recalld_sidecar.demo.corpus import Corpus, CorpusError

from tests.quality import (
    ablations,
    asking,
    facts,
    filters,
    other_sections,
    recall_sections,
    report,
    scorecard,
    sets,
    synthetic,
    tools,
)
from tests.quality.asking import Result
from tests.quality.report import Section

PARTS = ("recall", "ablations", "synthetic", "facts", "tools", "filters", "scorecard")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is measured: all of it, or just enough to see that everything works."""

    corpora: int | None
    """Of each set."""
    ablation_questions: int
    """About so many of each set."""
    synthetic: synthetic.Scale
    filters: filters.Scale
    tool_results: int | None
    hidden: int
    """Memories for each way of being forbidden."""
    writes: int
    space_corpora: int


FULL = Scale(
    corpora=None,
    ablation_questions=450,
    synthetic=synthetic.Scale(corpora=8, questions=160),
    filters=filters.Scale(memories=20_000, small=100, queries=200, index_after=1_000),
    tool_results=None,
    hidden=100,
    writes=300,
    space_corpora=20,
)
QUICK = Scale(
    corpora=2,
    ablation_questions=10,
    synthetic=synthetic.Scale(corpora=1, questions=10),
    filters=filters.Scale(memories=1_500, small=20, queries=10, index_after=500),
    tool_results=20,
    hidden=5,
    writes=10,
    space_corpora=2,
)

DOCS_A_CHUNK = 6_000
"""Memories of the corpora that one process writes and asks at a time."""


@dataclass(frozen=True, slots=True)
class Job:
    """Something to measure in a process of its own."""

    part: str
    name: str
    cost: int
    """Roughly proportional to its time: the longest start first."""
    function: Callable[..., Any]
    arguments: tuple[Any, ...]


def plan(
    loaded: Mapping[str, Sequence[Corpus]],
    results: Sequence[sets.ToolResult],
    scale: Scale,
    parts: Sequence[str],
) -> Iterator[Job]:
    """Cut what is to be measured into jobs."""
    off = ablations.each_feature_off() if "ablations" in parts else {}
    for name, corpora in loaded.items() if {"recall", "ablations", "scorecard"} & set(parts) else ():
        ablated = asking.Ablations(ablations.sample(corpora, scale.ablation_questions), off)
        for chunk in _chunks(corpora):
            yield Job("recall", name, 3 * _size(chunk), asking.ask, (chunk, name, asking.BUDGETS, ablated))
    if "synthetic" in parts:
        for name, corpora in synthetic.generate(loaded, scale.synthetic).items():
            for chunk in _chunks(corpora):
                yield Job("synthetic", name, _size(chunk), asking.ask, (chunk, name, (), asking.Ablations()))
    for name, corpora in loaded.items() if "facts" in parts else ():
        for chunk in _chunks([corpus for corpus in corpora if facts.has_updates(corpus)]):
            yield Job("facts", name, _size(chunk), facts.measure, (chunk,))
    if "tools" in parts and results:
        size = sum(len(result.text) for result in results)
        yield Job("tools", "", size, tools.measure, (results[: scale.tool_results],))
    if "filters" in parts:
        enough = _shortest(loaded, scale.filters.memories)
        yield Job("filters", "", _size(enough), filters.measure, (enough, scale.filters))
    if "scorecard" in parts:
        few = next(iter(loaded.values()))[: scale.space_corpora]
        yield Job("forbidden", "", _size(few), scorecard.forbidden, (few, scale.hidden))
        yield Job("space", "", _size(few), scorecard.space, (few,))
        yield Job("lag", "", 0, scorecard.lag, (scale.writes,))


def _size(corpora: Iterable[Corpus]) -> int:
    """Characters of the corpora."""
    return sum(len(doc.text) for corpus in corpora for doc in corpus.docs)


def _chunks(corpora: Sequence[Corpus]) -> Iterator[list[Corpus]]:
    """Cut a set into runs of corpora of about equal numbers of docs."""
    chunk: list[Corpus] = []
    for corpus in corpora:
        chunk.append(corpus)
        if sum(len(one.docs) for one in chunk) >= DOCS_A_CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _shortest(loaded: Mapping[str, Sequence[Corpus]], memories: int) -> list[Corpus]:
    """Corpora with short docs that hold about one and a half times so many; some docs are the same."""
    everything = [corpus for corpora in loaded.values() for corpus in corpora if corpus.docs]
    everything.sort(key=lambda corpus: _size([corpus]) / len(corpus.docs))
    chosen: list[Corpus] = []
    for corpus in everything:
        if sum(len(one.docs) for one in chosen) < memories * 1.5:
            chosen.append(corpus)
    return chosen


def run(jobs: Sequence[Job], workers: int) -> dict[str, dict[str, list[Any]]]:
    """Do all jobs and return their results by part and name, in the order of the jobs."""
    done: dict[int, Any] = {}
    if workers == 1:
        done = {index: job.function(*job.arguments) for index, job in enumerate(jobs)}
    else:
        # Forked children would inherit the threads' locks of this process, but not the threads.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, mp_context=context) as pool:
            order = sorted(range(len(jobs)), key=lambda index: -jobs[index].cost)
            futures = {pool.submit(jobs[index].function, *jobs[index].arguments): index for index in order}
            for future in as_completed(futures):
                index = futures[future]
                done[index] = future.result()
                print(
                    f"{len(done)}/{len(jobs)} {jobs[index].part} {jobs[index].name}",
                    file=sys.stderr,
                    flush=True,
                )
    gathered: dict[str, dict[str, list[Any]]] = {}
    for index, job in enumerate(jobs):
        gathered.setdefault(job.part, {}).setdefault(job.name, []).append(done[index])
    return gathered


def sections(measured: Mapping[str, Mapping[str, list[Any]]], parts: Sequence[str]) -> Iterator[Section]:
    """Summarise what was measured."""
    asked = {name: _joined(chunks) for name, chunks in measured.get("recall", {}).items()}
    results = {name: of[""] for name, of in asked.items()}
    ablated = {name: _ablated(of) for name, of in asked.items()}
    if "recall" in parts:
        yield recall_sections.sets(results)
        yield recall_sections.kinds(results)
        yield recall_sections.briefs(results)
        yield recall_sections.sessions(results)
        yield recall_sections.abstention(results)
        yield recall_sections.freshness(results, ablated)
        yield recall_sections.paired_tests(results)
        yield recall_sections.lost(results)
    if "ablations" in parts:
        yield recall_sections.ablation(ablated)
    if "synthetic" in parts:
        made = measured.get("synthetic", {})
        yield recall_sections.synthetic({name: _joined(chunks)[""] for name, chunks in made.items()})
    if "facts" in parts:
        yield other_sections.written_facts(
            {name: list(chain.from_iterable(of)) for name, of in measured.get("facts", {}).items()}
        )
    if "tools" in parts:
        yield other_sections.tool_results(measured["tools"][""][0] if "tools" in measured else {})
    if "filters" in parts:
        yield other_sections.filtered(measured["filters"][""][0])
    if "scorecard" in parts:
        forbidden, lag, space = (measured[part][""][0] for part in ("forbidden", "lag", "space"))
        yield other_sections.card(forbidden, lag, space, results)


def _joined(chunks: Iterable[Mapping[str, list[Result]]]) -> dict[str, list[Result]]:
    """Put the results of a set's chunks together, by feature that was off."""
    joined: dict[str, list[Result]] = {"": []}
    for chunk in chunks:
        for feature, results in chunk.items():
            joined.setdefault(feature, []).extend(results)
    return joined


def _ablated(of: Mapping[str, list[Result]]) -> dict[str, list[Result]]:
    """Keep of the results with all features those of the corpora that were asked without some."""
    features = {feature: results for feature, results in of.items() if feature}
    corpora = {result.corpus for results in features.values() for result in results}
    return {"": [result for result in of[""] if result.corpus in corpora], **features}


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=sets.DATA, help="folder of question sets (*.jsonl.gz)")
    parser.add_argument(
        "--sets", nargs="+", default=None, help="names of the sets; all of the folder without it"
    )
    parser.add_argument("--corpora", type=int, default=None, help="only the first corpora of each set")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument(
        "--report", type=Path, default=None, metavar="FILE", help="write FILE.md and FILE.json"
    )
    parser.add_argument(
        "--quick", action="store_true", help="only see that everything works; says little of quality"
    )
    arguments = parser.parse_args(argv)
    scale = QUICK if arguments.quick else FULL
    started = time.monotonic()
    try:
        paths = sets.choose(arguments.data, arguments.sets)
        most = arguments.corpora or scale.corpora
        loaded = {name: sets.load(path, most) for name, path in paths.items()}
        jobs = list(plan(loaded, list(sets.tool_results(arguments.data)), scale, arguments.only))
    except (sets.NoSetsError, CorpusError) as error:
        print(error, file=sys.stderr)
        return 1
    measured = run(jobs, arguments.workers)
    found = list(sections(measured, arguments.only))
    print(report.goals(found))
    if arguments.report:
        minutes = (time.monotonic() - started) / 60
        report.write(arguments.report, found, list(_conditions(loaded, arguments.quick, most, minutes)))
    return 0


def _conditions(
    loaded: Mapping[str, Sequence[Corpus]], is_quick: bool, most: int | None, minutes: float
) -> Iterator[str]:
    """Say what was measured, and with what."""
    if is_quick:
        yield "A quick run, which says little of quality."
    cut = f", at most {most} corpora of each" if most else ""
    names = ", ".join(f"{name} ({sum(len(one.questions) for one in of):,})" for name, of in loaded.items())
    yield f"Sets with their numbers of questions: {names}{cut}. The run took about {minutes:.0f} minutes."
    weights = ", ".join(f"{name} {weight:g}" for name, weight in ablations.weights().items())
    yield f"One ranking for all sets, the product's defaults: {weights}."


if __name__ == "__main__":
    sys.exit(main())
