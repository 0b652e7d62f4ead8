"""The question sets: where they are, how they are read, and what is known of them.

Histories with questions are read by `recalld_sidecar.demo.corpus`, which checks them; this module adds the folder, the
tool results and the published baselines. A folder of one's own works as well: every `*.jsonl.gz` in it is a set. Sets
are material to measure with: nothing may be fitted to them, and nothing of them may be written into this repository.
"""

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from recalld_sidecar.demo import corpus
from recalld_sidecar.demo.corpus import Corpus

from tests.load.corpus import ROOT

DATA = ROOT.parent / "shared/data"
"""Where the sets lie beside a checkout."""

LONG_CHATS = "longmemeval_s_sample"
CHATS = "longmemeval_s_user"
RULES = "memorycode"
TOOL_RESULTS = "toolresults_dev"

PUBLISHED_BM25 = {CHATS: 0.856, LONG_CHATS: 0.727, RULES: 0.639, "madial_zh": 0.595, "madial_en": 0.560}
"""Recall@10 of BM25 alone over the same text, as the goals name it."""

SUFFIX = ".jsonl.gz"

FORMAT = """\
A set is a gzip file NAME.jsonl.gz of JSON lines, one history with its questions a line:
  {"corpus": id,
   "docs": [{"id", "text", "time", "speaker", "session"}],
   "queries": [{"id", "text", "relevant": [doc id], "kind", "answer", "groups": [[doc id]],
                "superseded": [doc id], "abstain": bool}]}
Docs need `id` and `text` and stand in the order of time; queries need `id`, `text` and `relevant`. `groups` lists docs
that state the same fact, `superseded` docs that state an older value, `abstain` says that nothing answers.
"""


class NoSetsError(Exception):
    """There is nothing to measure with; the message says what to do."""


def choose(folder: Path, names: Sequence[str] | None) -> dict[str, Path]:
    """Find the named sets of a folder, or all of them. Raises NoSetsError."""
    there = {path.name.removesuffix(SUFFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    there.pop(TOOL_RESULTS, None)
    if names is None:
        # Those with goals first, in the order in which the goals name them.
        names = [name for name in PUBLISHED_BM25 if name in there]
        names += [name for name in there if name not in PUBLISHED_BM25]
    missing = [name for name in names if name not in there]
    if missing or not names:
        what = f"no question set {missing[0]}" if missing else "no question sets"
        raise NoSetsError(
            f"{what} in {folder}. Give the folder that has them: make quality DATA=folder, or --data folder.\n{FORMAT}"
        )
    return {name: there[name] for name in names}


def load(path: Path, most: int | None) -> list[Corpus]:
    """Read the first corpora of a set, all without a number. Raises CorpusError."""
    corpora = list(islice(corpus.load(path), most))
    if not any(question.groups and not question.abstain for one in corpora for question in one.questions):
        raise corpus.CorpusError(f"{path}: no question in it has an answer")
    return corpora


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered, and which of its literals the agent used later."""

    id: str
    query: str
    """What the agent was after."""
    text: str
    is_error: bool
    needed: tuple[str, ...]


def tool_results(folder: Path) -> Iterator[ToolResult]:
    """Read the tool results of a folder, none when it has none."""
    path = folder / f"{TOOL_RESULTS}{SUFFIX}"
    if not path.exists():
        return
    with gzip.open(path, "rt", encoding="utf8") as file:
        for line in file:
            record = json.loads(line)
            yield ToolResult(
                id=record["id"],
                query=record["query"] or record["task"],
                text=record["result"],
                is_error=record["error"],
                needed=tuple(record["needed"]),
            )
