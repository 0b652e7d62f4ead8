"""Measures recall of searches and briefs on question sets, beside BM25 alone and meaning alone; writes a report.

It drives the core in this process through the same bytes that a client sends. Every corpus is a namespace of its
own. Nothing is fitted here: the product's defaults are used for all sets.
"""

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import mean

from google.protobuf.timestamp_pb2 import Timestamp
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1 import types_pb2
from recalld_sidecar import _core
from recalld_sidecar.demo import corpus as sets

from tests.quality import baseline

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "sidecar/recalld_sidecar/data/static-256"
DATA = ROOT.parent / "shared/data"
NAMES = ("longmemeval_s_user", "longmemeval_s_sample", "memorycode", "madial_zh", "madial_en")
BUDGETS = (250, 500, 1000, 2000)
DEPTHS = (5, 10, 20)
BATCH = 500
SERVICE = "/recalld.v1.MemoryService/"


class Store:
    """A core in a directory of its own, with one namespace a corpus."""

    def __init__(self, directory: str) -> None:
        self._core = _core.Core(directory, str(MODEL))

    def write(self, corpus: sets.Corpus) -> types_pb2.Namespace:
        """Store a corpus; keys are the documents' ids."""
        namespace = types_pb2.Namespace(segments=["quality", corpus.id[:128]])
        for start in range(0, len(corpus.docs), BATCH):
            items = [_item(doc) for doc in corpus.docs[start : start + BATCH]]
            request = pb.WriteRequest(namespace=namespace, items=items)
            self._core.dispatch(SERVICE + "Write", "quality", request.SerializeToString(), None)
        return namespace

    def search(self, request: pb.SearchRequest) -> list[str]:
        """Return keys, best first."""
        answer = self._core.dispatch(SERVICE + "Search", "quality", request.SerializeToString(), None)
        return [hit.key for hit in pb.SearchResponse.FromString(answer).hits]

    def brief(self, request: pb.BriefRequest) -> pb.BriefResponse:
        """Return a brief."""
        answer = self._core.dispatch(SERVICE + "Brief", "quality", request.SerializeToString(), None)
        return pb.BriefResponse.FromString(answer)

    def close(self) -> None:
        """Release the directory."""
        self._core.close()


def _item(doc: sets.Doc) -> pb.WriteItem:
    item = pb.WriteItem(key=doc.id, content=doc.text, kind="turn")
    time = sets.instant(doc.time)
    if time is not None:
        stamp = Timestamp()
        stamp.FromDatetime(time)
        item.occurred_at.CopyFrom(stamp)
    if doc.speaker or doc.session:
        item.sources.add(session=doc.session, speaker=doc.speaker)
    return item


@dataclass
class Scores:
    """What was measured over the answerable questions of a set, by ranking."""

    recall: dict[str, dict[int, list[float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )
    reciprocal: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    brief: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add_ranking(self, name: str, question: sets.Question, ranking: Sequence[str]) -> None:
        """Score one ranking of document ids."""
        for depth in DEPTHS:
            self.recall[name][depth].append(_found(question, ranking[:depth]))
        wanted = frozenset[str]().union(*question.groups)
        first = next((rank for rank, doc in enumerate(ranking, 1) if doc in wanted), None)
        self.reciprocal[name].append(1 / first if first else 0.0)


def _found(question: sets.Question, docs: Iterable[str]) -> float:
    """Share of the needed facts that a set of documents states."""
    have = set(docs)
    return sum(bool(have & group) for group in question.groups) / len(question.groups)


def evaluate(store: Store, corpora: Iterable[sets.Corpus]) -> Scores:
    """Measure a set."""
    scores = Scores()
    for corpus in corpora:
        namespace = store.write(corpus)
        bm25 = baseline.Bm25([doc.line for doc in corpus.docs])
        questions = [question for question in corpus.questions if question.groups and not question.abstain]
        vectors = _core.embed(str(MODEL), [question.text for question in questions])
        for question, vector in zip(questions, vectors, strict=True):
            search = pb.SearchRequest(namespace=namespace, query=question.text, limit=max(DEPTHS))
            scores.add_ranking("recalld", question, store.search(search))
            dense = pb.SearchRequest(namespace=namespace, vector=vector or [], limit=max(DEPTHS))
            scores.add_ranking("dense alone", question, store.search(dense) if vector else [])
            words = [corpus.docs[i].id for i in bm25.rank(question.text, max(DEPTHS))]
            scores.add_ranking("BM25 alone", question, words)
            for budget in BUDGETS:
                brief = store.brief(
                    pb.BriefRequest(namespace=namespace, query=question.text, budget_tokens=budget)
                )
                scores.brief[budget].append(_found(question, (memory.key for memory in brief.included)))
        print(".", end="", flush=True)
    print()
    return scores


def rows(name: str, scores: Scores) -> Iterator[dict[str, object]]:
    """Flatten what was measured into rows of the report."""
    for ranking, by_depth in scores.recall.items():
        for depth, values in by_depth.items():
            yield _row(f"{name}: recall@{depth}, {ranking}", mean(values))
        yield _row(f"{name}: MRR, {ranking}", mean(scores.reciprocal[ranking]))
    for budget, values in scores.brief.items():
        yield _row(f"{name}: recall in a brief of {budget} tokens", mean(values))


def _row(name: str, value: float) -> dict[str, object]:
    return {
        "name": name,
        "value": round(value, 4),
        "unit": "share",
        "goal": None,
        "met": None,
        "command": "make quality",
    }


def table(measured: dict[str, Scores]) -> str:
    """Render the report."""
    lines = [
        "| set | questions | ranking | R@5 | R@10 | R@20 | MRR |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, scores in measured.items():
        for ranking, by_depth in scores.recall.items():
            cells = [f"{mean(by_depth[depth]):.3f}" for depth in DEPTHS]
            count = len(scores.reciprocal[ranking])
            lines.append(
                f"| {name} | {count} | {ranking} | {' | '.join(cells)} | {mean(scores.reciprocal[ranking]):.3f} |"
            )
    lines += [
        "",
        "Evidence inside a brief, by budget in tokens (o200k_base):",
        "",
        "| set | " + " | ".join(str(budget) for budget in BUDGETS) + " |",
        "|---|" + "---|" * len(BUDGETS),
    ]
    for name, scores in measured.items():
        cells = [f"{mean(scores.brief[budget]):.3f}" for budget in BUDGETS]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder of question sets (*.jsonl.gz)")
    parser.add_argument("--sets", nargs="*", default=list(NAMES), help="names of the sets")
    parser.add_argument("--corpora", type=int, default=None, help="only the first corpora of each set")
    parser.add_argument("--report", type=Path, default=None, help="write FILE.md and FILE.json")
    arguments = parser.parse_args(argv)
    paths = {name: arguments.data / f"{name}.jsonl.gz" for name in arguments.sets}
    missing = [path for path in paths.values() if not path.exists()]
    if missing:
        print(
            f"no question set at {missing[0]}: give the folder with --data; its files are gzip JSON lines, one corpus "
            'a line: {"corpus", "docs": [{"id", "text", "time", "speaker", "session"}], "queries": [{"id", "text", '
            '"relevant"}]}',
            file=sys.stderr,
        )
        return 1
    measured = {}
    for name, path in paths.items():
        print(name, end=" ", flush=True)
        with tempfile.TemporaryDirectory() as directory:
            store = Store(directory)
            corpora = (
                c for i, c in enumerate(sets.load(path)) if arguments.corpora is None or i < arguments.corpora
            )
            measured[name] = evaluate(store, corpora)
            store.close()
    print(table(measured))
    if arguments.report:
        _write_report(arguments.report, measured)
    return 0


def _write_report(path: Path, measured: dict[str, Scores]) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    ).stdout.strip()
    about = {
        "commit": commit,
        "machine": f"{platform.machine()}, {platform.system()}",
        "date": datetime.now(UTC).date().isoformat(),
    }
    report = about | {"rows": [row for name, scores in measured.items() for row in rows(name, scores)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n", encoding="utf8")
    text = f"# Retrieval quality\n\nCommit {commit}, {about['date']}. Made by `make quality`.\n\n{table(measured)}"
    path.with_suffix(".md").write_text(text, encoding="utf8")


if __name__ == "__main__":
    sys.exit(main())
