"""`recalld demo` as a child process, on the bundled example and on other files, and what it is made of."""

import gzip
import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recalld_sidecar import _core
from recalld_sidecar.demo import EXAMPLE, text
from recalld_sidecar.demo.corpus import Corpus, CorpusError, instant, load
from recalld_sidecar.demo.measure import Latency
from recalld_sidecar.demo.process import running_sidecar

from tests.support.sidecar import clean_environment

SECONDS = 100
COLUMNS = 100
BUDGET = 600


def start_demo(*arguments: str, folder: Path) -> subprocess.Popen[str]:
    """Start the command with `folder` for everything temporary."""
    return subprocess.Popen(
        [sys.executable, "-m", "recalld_sidecar", "demo", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=clean_environment() | {"TMPDIR": str(folder), "COLUMNS": str(COLUMNS), "PYTHONUTF8": "1"},
    )


def run_demo(*arguments: str, folder: Path) -> tuple[int, str, str]:
    """Run the command to its end; nothing of it may stay."""
    with start_demo(*arguments, folder=folder) as process:
        output, errors = process.communicate(timeout=SECONDS)
    assert list(folder.iterdir()) == []
    return process.returncode, output, errors


def succeed(*arguments: str, folder: Path) -> str:
    status, output, errors = run_demo(*arguments, folder=folder)
    assert status == 0, errors
    return output


def unspaced(text: str) -> str:
    """Without white space, so that it does not matter where lines are broken."""
    return "".join(text.split())


@pytest.fixture(scope="module")
def example() -> Corpus:
    (corpus,) = load(EXAMPLE)
    return corpus


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return succeed("--repeats", "3", folder=tmp_path_factory.mktemp("printed"))


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("document")
    value = json.loads(succeed("--repeats", "30", "--budget", str(BUDGET), "--json", folder=folder))
    assert isinstance(value, dict)
    return value


# The bundled example


def test_the_example_is_a_history_with_questions_of_many_kinds(example: Corpus) -> None:
    times = [instant(doc.time) for doc in example.docs]
    assert all(earlier and later and earlier <= later for earlier, later in pairwise(times))
    assert all(doc.speaker and doc.session for doc in example.docs)
    assert all(question.answer and question.kind for question in example.questions)
    assert all(question.abstain or question.groups for question in example.questions)
    assert all(group <= set(question.relevant) for question in example.questions for group in question.groups)
    assert all(question.superseded.isdisjoint(question.relevant) for question in example.questions)
    kinds = {question.kind for question in example.questions}
    assert kinds >= {"words", "meaning", "identifier", "update", "chinese", "cross_lingual", "abstain"}
    assert any(question.abstain for question in example.questions)


def test_the_example_updates_keys(example: Corpus) -> None:
    keys = [doc.key for doc in example.docs if doc.key]
    assert len(keys) > len(set(keys))


# What people read


def test_every_question_and_its_expected_answer_are_shown(printed: str, example: Corpus) -> None:
    shown = unspaced(printed)
    for number, question in enumerate(example.questions, 1):
        assert unspaced(f"Question {number} of {len(example.questions)}: {question.kind}") in shown
        assert unspaced(f"{question.text} Expected {question.answer}") in shown


def test_every_question_has_a_verdict(printed: str, example: Corpus) -> None:
    unanswerable = sum(question.abstain for question in example.questions)
    assert printed.count("\nEvidence: none exists, nothing in the history answers this; ") == unanswerable
    assert printed.count("\nEvidence: ") == len(example.questions)
    assert printed.count("\nBrief: ") == len(example.questions)


def test_it_fits_a_terminal_and_has_no_control_characters(printed: str) -> None:
    lines = printed.splitlines()
    assert max(map(text.width, lines)) <= COLUMNS
    assert all(line.isprintable() and line == line.rstrip() for line in lines)


def test_the_tables_at_the_end(printed: str) -> None:
    for line in (
        "recall in the first 5 hits ",
        "recall in the first 10 hits ",
        f"recall in a brief of {BUDGET} tokens ",
        "search, at the client ",
        "brief, at the client ",
        "the whole history, replayed ",
        "history : brief ",
    ):
        assert f"\n{line}" in printed


# What programs read


def test_evidence_is_found_for_most_questions(document: dict[str, Any], example: Corpus) -> None:
    answerable = [question for question in document["questions"] if not question["abstain"]]
    assert len(document["questions"]) == len(example.questions)
    assert document["recall"]["questions"] == len(answerable)
    # Ten hits picked blindly would hold evidence for one question in ten.
    assert document["recall"]["hits_10"] >= 0.6
    assert document["recall"]["brief"] >= 0.6
    assert sum(any(hit["evidence"] for hit in question["hits"]) for question in answerable) >= 12


def test_marks_are_those_of_the_data(document: dict[str, Any], example: Corpus) -> None:
    for answer, question in zip(document["questions"], example.questions, strict=True):
        for memory in [*answer["hits"], *answer["brief"]["included"]]:
            docs = set(memory["docs"])
            assert docs
            assert memory["evidence"] == (not docs.isdisjoint(question.relevant))
            if memory["superseded"]:
                assert docs <= question.superseded
        found = {doc for hit in answer["hits"] for doc in hit["docs"]}
        assert answer["evidence"]["needed"] == len(question.groups)
        assert answer["evidence"]["in_hits"] == sum(not group.isdisjoint(found) for group in question.groups)


def test_budgets_hold(document: dict[str, Any]) -> None:
    briefs = [question["brief"] for question in document["questions"]]
    counted = [_core.count_tokens(brief["text"], brief["encoding"]) for brief in briefs]
    assert counted == [brief["tokens"] for brief in briefs]
    assert min(counted) > 0
    assert max(counted) <= document["budget_tokens"] == BUDGET


def test_the_history_is_counted_exactly(document: dict[str, Any], example: Corpus) -> None:
    lines = [f"[{doc.time}] {doc.speaker}: {doc.text}" for doc in example.docs]
    assert document["tokens_per_question"]["history"] == sum(
        _core.count_tokens(line, "o200k_base") for line in lines
    )
    assert document["tokens_per_question"]["history"] > 10 * document["tokens_per_question"]["brief"]


def test_a_key_is_one_memory(document: dict[str, Any], example: Corpus) -> None:
    keys = [doc.key for doc in example.docs if doc.key]
    (corpus,) = document["corpora"]
    assert corpus["docs"] == len(example.docs)
    assert corpus["memories"] == len(example.docs) - len(keys) + len(set(keys))


def test_latencies_are_in_order(document: dict[str, Any]) -> None:
    for call in ("search", "brief"):
        client, server = (document["latency_ms"][call][where] for where in ("client", "server"))
        for latency in (client, server):
            assert 0 < latency["p50"] <= latency["p99"] <= latency["max"]
        assert all(server[name] <= client[name] for name in server)


# Other files


def write_corpora(path: Path, count: int) -> Path:
    """Corpora that differ in one name, each with a key that is updated, and two questions."""
    lines = []
    for number in range(1, count + 1):
        docs = [
            {"id": "a", "text": f"The harbour of Port{number} closes at nine.", "key": "harbour"},
            {"id": "b", "text": "Bread is baked on Mondays.", "time": "2026-01-02", "speaker": "eva"},
            {"id": "c", "text": f"The harbour of Port{number} now closes at ten.", "key": "harbour"},
        ]
        queries = [
            {"id": "1", "text": f"When does Port{number} close?", "relevant": ["c"], "superseded": ["a"]},
            {"id": "2", "text": "Who is the mayor?", "relevant": [], "abstain": True},
        ]
        lines.append(json.dumps({"corpus": f"port-{number}", "docs": docs, "queries": queries}) + "\n")
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(lines)
    return path


def test_several_corpora(tmp_path: Path) -> None:
    path = write_corpora(tmp_path / "ports.jsonl.gz", 14)
    folder = tmp_path / "tmp"
    folder.mkdir()
    output = succeed("--data", str(path), "--repeats", "1", folder=folder)
    assert "ports.jsonl.gz: 42 messages in 14 corpora, 28 questions" in output
    assert output.count("\nBrief: ") == 3
    assert "\n     4      -      -  Who is the mayor?\n" in output
    assert "\n     5    1/1    1/1  When does Port3 close?\n" in output
    assert "\n    23    1/1    1/1  When does Port12 close?\n        and 5 more: " in output
    assert "mean of 14 questions; 14 questions without an answer left out" in output.replace("\n", " ")


@pytest.mark.parametrize("wanted", ["2", "port-2"])
def test_one_corpus_of_several_and_its_first_question(tmp_path: Path, wanted: str) -> None:
    path = write_corpora(tmp_path / "ports.jsonl.gz", 3)
    folder = tmp_path / "tmp"
    folder.mkdir()
    arguments = ["--data", str(path), "--corpus", wanted, "--queries", "1", "--repeats", "1", "--json"]
    value = json.loads(succeed(*arguments, folder=folder))
    assert [corpus["id"] for corpus in value["corpora"]] == ["port-2"]
    assert [question["text"] for question in value["questions"]] == ["When does Port2 close?"]
    assert value["corpora"][0]["memories"] == 2
    docs = [hit["docs"] for hit in value["questions"][0]["hits"]]
    assert docs[0] == ["c"]
    assert ["a"] not in docs


def test_a_corpus_that_is_not_there(tmp_path: Path) -> None:
    status, output, errors = run_demo("--corpus", "7", folder=tmp_path)
    assert (status, output) == (1, "")
    assert errors == f"recalld: {EXAMPLE}: no corpus '7' in it\n"


DOC = {"id": "a", "text": "Hello."}
QUERY = {"id": "1", "text": "What?", "relevant": ["a"]}


def corpus_with(doc: Mapping[str, Any] | None = None, query: Mapping[str, Any] | None = None) -> str:
    value = {"corpus": "x", "docs": [DOC | dict(doc or {})], "queries": [QUERY | dict(query or {})]}
    return json.dumps(value)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"docs": [], "queries": []}', "corpus: missing or blank"),
        ('{"corpus": "first", "docs": [], "queries": []}', "corpus: 'first' stands in line 1 already"),
        ('{"corpus": "x", "queries": []}', "docs: missing"),
        ('{"corpus": "x", "docs": {}, "queries": []}', "docs: not a list"),
        ('{"corpus": "x", "docs": [3], "queries": []}', "docs[0]: not a JSON object"),
        (json.dumps({"corpus": "x", "docs": [DOC, DOC], "queries": []}), "docs[1].id: 'a' stands"),
        (corpus_with(doc={"text": " "}), "docs[0].text: missing or blank"),
        (corpus_with(doc={"id": 5}), "docs[0].id: not a string"),
        (corpus_with(doc={"time": "May"}), "docs[0].time: 'May' is not an ISO 8601 time or date"),
        (corpus_with(doc={"kind": ["fact"]}), "docs[0].kind: not a string"),
        (corpus_with(query={"relevant": None}), "queries[0].relevant: missing"),
        (corpus_with(query={"relevant": "a"}), "queries[0].relevant: not a list"),
        (corpus_with(query={"relevant": ["z"]}), "queries[0].relevant: 'z' is no id of a doc"),
        (corpus_with(query={"abstain": 1}), "queries[0].abstain: not true or false"),
        (corpus_with(query={"abstain": True}), "queries[0].relevant: not empty"),
        (corpus_with(query={"groups": [["a"], "a"]}), "queries[0].groups[1]: not a list"),
        (corpus_with(query={"groups": [[]]}), "queries[0].groups: a list in it is empty"),
        (corpus_with(query={"superseded": [1]}), "queries[0].superseded: 1 is no id of a doc"),
    ],
)
def test_a_wrong_line_is_named_with_its_field(tmp_path: Path, line: str, problem: str) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(f'{{"corpus": "first", "docs": [], "queries": []}}\n\n{line}\n', encoding="utf-8")
    with pytest.raises(CorpusError) as raised:
        list(load(path))
    assert str(raised.value).startswith(f"{path}: line 3: {problem}")


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("missing.jsonl", None, "No such file or directory"),
        ("empty.jsonl", b"\n", "no corpus in it"),
        ("packed.jsonl", gzip.compress(b"{}"), "not UTF-8 text; a gzip file's name ends in .gz"),
        ("plain.jsonl.gz", b"{}", "not a whole gzip file: "),
        ("cut.jsonl.gz", gzip.compress(b"{}" * 100)[:-9], "not a whole gzip file: "),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: bytes | None, problem: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CorpusError) as raised:
        list(load(path))
    assert str(raised.value).startswith(f"{path}: {problem}")


def test_a_wrong_file_is_one_line_and_exit_status_1(tmp_path: Path) -> None:
    path = tmp_path / "wrong.jsonl"
    path.write_text(corpus_with(doc={"text": None}), encoding="utf-8")
    folder = tmp_path / "tmp"
    folder.mkdir()
    status, output, errors = run_demo("--data", str(path), folder=folder)
    assert (status, output) == (1, "")
    assert errors == f"recalld: {path}: line 1: docs[0].text: missing or blank\n"


def test_what_the_sidecar_refuses_is_one_line_and_exit_status_1(tmp_path: Path) -> None:
    path = tmp_path / "refused.jsonl"
    path.write_text(corpus_with(doc={"key": "k" * 1000}), encoding="utf-8")
    folder = tmp_path / "tmp"
    folder.mkdir()
    status, output, errors = run_demo("--data", str(path), folder=folder)
    assert (status, output) == (1, "")
    assert errors.startswith("recalld: INVALID_FIELD: items[0].key: ")
    assert errors.count("\n") == 1


# The sidecar that it runs


def test_a_sidecar_that_does_not_start_is_one_line_and_exit_status_1(tmp_path: Path) -> None:
    folder = tmp_path / ("f" * 100)
    folder.mkdir()
    status, output, errors = run_demo(folder=folder)
    assert (status, output) == (1, "")
    assert errors.startswith("recalld: the sidecar ended with status 1: recalld: ")
    assert "too long for a Unix socket" in errors
    assert errors.count("\n") == 1


def test_it_is_stopped_when_the_work_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(psutil.Process().children())
    handler = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ZeroDivisionError), running_sidecar() as address:  # noqa: PT012
        (started,) = set(psutil.Process().children()) - before
        socket = Path(address.removeprefix("unix:"))
        assert socket.is_socket()
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        raise ZeroDivisionError
    assert not started.is_running()
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is handler


def test_it_is_stopped_when_the_demo_is_told_to_end(tmp_path: Path) -> None:
    with start_demo("--repeats", "1000000", folder=tmp_path) as process:
        assert process.stderr is not None
        assert " % of " in process.stderr.readline()
        (started,) = psutil.Process(process.pid).children()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 128 + signal.SIGTERM
    assert not started.is_running()
    assert list(tmp_path.iterdir()) == []


# Text and numbers


@given(st.text(), st.integers(10, 40))
def test_lines_hold_the_whole_text_and_fit(value: str, columns: int) -> None:
    line = text.printable(value)
    assert line.isprintable()
    lines = list(text.wrap(line, columns))
    assert unspaced("".join(lines)) == unspaced(line)
    assert all(text.width(part) <= columns for part in lines)
    assert text.width(text.pad(line, columns)) == columns
    assert text.width(text.cut(line, columns)) <= columns


def test_where_lines_are_broken() -> None:
    assert list(text.wrap("a brown fox, a dog", 11)) == ["a brown", "fox, a dog"]
    # A wide character may begin a line, but closing punctuation may not, nor may opening punctuation end one.
    assert list(text.wrap("普洱茶饼，存放。", 8)) == ["普洱茶", "饼，存", "放。"]  # noqa: RUF001
    assert list(text.wrap("（普洱）茶饼 abc茶def", 7)) == ["（普", "洱）茶", "饼 abc", "茶def"]  # noqa: RUF001
    assert list(text.wrap("0123456789abcdef", 10)) == ["0123456789", "abcdef"]


def test_widths() -> None:
    assert text.width("tea") == 3
    assert text.width("茶") == 2
    assert text.width("e\N{COMBINING ACUTE ACCENT}") == 1
    assert text.cut("普洱茶饼存放", 9) == "普洱茶..."
    assert text.pad("茶", 4) == "茶  "
    assert text.printable("a\x1b[2J\n b\t") == "a\N{REPLACEMENT CHARACTER}[2J b"


def test_percentiles_are_times_that_occurred() -> None:
    assert Latency.of([3.0]) == Latency(3.0, 3.0, 3.0)
    assert Latency.of(range(200, 0, -1)) == Latency(100, 198, 200)
    assert Latency.of([1.0, 2.0, 9.0]) == Latency(2.0, 9.0, 9.0)


def test_times_are_utc() -> None:
    assert instant(None) is None
    assert str(instant("2026-05-12")) == "2026-05-12 00:00:00+00:00"
    assert str(instant("2026-05-12T09:30+02:00")) == "2026-05-12 07:30:00+00:00"
