"""`recalld demo`: what recalld does with a history, shown on a store of its own.

It starts a sidecar, writes a history through the client, asks the questions that come with it, and prints
what memory gave, whether the evidence for the answer was in it, how long the calls took, and how many tokens
were spared. It leaves nothing behind, and no sidecar, store or setting of the user's is touched.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from recalld import Client, RecalldError

from recalld_sidecar._core import build_profile
from recalld_sidecar.demo import render
from recalld_sidecar.demo.corpus import Corpus, CorpusError, load
from recalld_sidecar.demo.measure import measure
from recalld_sidecar.demo.process import SidecarError, running_sidecar

EXAMPLE = Path(__file__).parent.parent / "data" / "demo" / "example.jsonl"
"""The bundled history."""

_CALL_SECONDS = 60.0
_COLUMNS = (72, 120)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the demo's flags."""
    parser.add_argument(
        "--data",
        type=Path,
        default=EXAMPLE,
        metavar="FILE",
        help="JSON lines, .gz or not, one corpus a line: a name (corpus), docs (id, text, time, speaker, "
        "session, kind, key) and queries (id, text, relevant, groups, superseded, answer, kind, abstain); "
        "default: a bundled example",
    )
    parser.add_argument(
        "--corpus", metavar="N|ID", help="only the Nth corpus of the file, or the one of this id"
    )
    parser.add_argument(
        "--queries", type=_count, metavar="N", help="only the first N questions of each corpus"
    )
    parser.add_argument(
        "--repeats", type=_count, default=300, metavar="N", help="times each kind of call is timed (300)"
    )
    parser.add_argument(
        "--budget", type=_count, default=600, metavar="N", help="most tokens of each brief (600)"
    )
    parser.add_argument("--json", action="store_true", help="answer in JSON")


def run(args: argparse.Namespace) -> int:
    """Run the demo and return the exit status."""
    try:
        corpora = _choose(args.data, args.corpus, args.queries)
        name = "bundled example" if args.data == EXAMPLE else args.data.name
        with running_sidecar() as address, Client(address, timeout=_CALL_SECONDS) as client:
            report = measure(client, name, corpora, budget=args.budget, repeats=args.repeats)
    except (CorpusError, SidecarError, RecalldError) as error:
        print("recalld:", " ".join(str(error).split()), file=sys.stderr)
        return 1
    if args.json:
        print(json.dumps(render.to_json(report, build_profile()), ensure_ascii=False, indent=2))
    else:
        least, most = _COLUMNS
        columns = max(least, min(shutil.get_terminal_size((100, 24)).columns, most))
        for line in render.to_text(report, columns, build_profile()):
            print(line)
    return 0


def _choose(path: Path, wanted: str | None, queries: int | None) -> Sequence[Corpus]:
    """Read the corpora that are asked for. All of a file is read, so that what is wrong in it shows first."""
    corpora = list(load(path))
    if wanted is not None:
        named = [corpus for corpus in corpora if corpus.id == wanted]
        number = int(wanted) if wanted.isascii() and wanted.isdigit() else 0
        corpora = named or corpora[number - 1 : number] if number else named
        if not corpora:
            raise CorpusError(f"{path}: no corpus {wanted!r} in it")
    corpora = [replace(corpus, questions=corpus.questions[:queries]) for corpus in corpora]
    if not any(corpus.questions for corpus in corpora):
        raise CorpusError(f"{path}: no questions in it")
    return corpora


def _count(argument: str) -> int:
    number = int(argument)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{argument} is not at least 1")
    return number
