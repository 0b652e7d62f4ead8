"""Tokenizers of the configuration: a sidecar counts as Hugging Face's own library does, and refuses bad files.

The tokenizers are trained here, one of each family in use: byte pairs, unigrams and word pieces.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from recalld import Client, InvalidArgument, Item
from recalld_sidecar import _core
from recalld_sidecar.config import BUILT_IN_COUNTERS
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.support.reference_tokens import ENCODINGS, reference_count
from tests.support.scripts import SCRIPTS, texts_in
from tests.support.sidecar import RunningSidecar, run_cli, running_sidecar
from tests.support.texts import CORPORA

TEXTS = [text for corpus in CORPORA.values() for text in corpus]
NAMESPACE = ("tokenizers",)
NAMES = ("byte-pairs", "unigrams", "word.pieces")
QUERIES = ("which seat does she prefer?", "花生过敏 订单", "error E-1042 of the deployment", "🙂")


def byte_pairs() -> Tokenizer:
    """As GPT-2 and its successors have them; with all that a file can say and that a count must not follow."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokenizer.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=1500, initial_alphabet=alphabet, special_tokens=special)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]
    )
    tokenizer.enable_truncation(max_length=16)
    tokenizer.enable_padding(length=64)
    return tokenizer


def unigrams() -> Tokenizer:
    """As SentencePiece makes them: spaces are letters, one is put before the text."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.train_from_iterator(
        TEXTS, trainers.UnigramTrainer(vocab_size=1500, unk_token="<unk>", special_tokens=["<unk>", "</s>"])
    )
    return tokenizer


def word_pieces() -> Tokenizer:
    """As BERT has them: lower case, without accents, and one token for a word that has none."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=1500, special_tokens=["[UNK]", "[CLS]", "[SEP]"])
    )
    return tokenizer


class Witness:
    """Counts by the library itself: the text alone, in which nothing is special."""

    def __init__(self, path: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(path))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self._tokenizer.encode_special_tokens = True

    def count(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("tokenizers")
    made = {}
    for name, make in zip(NAMES, (byte_pairs, unigrams, word_pieces), strict=True):
        made[name] = folder / f"{name}.json"
        make().save(str(made[name]))
    return made


@pytest.fixture(scope="module")
def sidecar(files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSidecar]:
    """A sidecar that is told of its tokenizers by a file, and has a memory for each text."""
    config = tmp_path_factory.mktemp("config") / "recalld.toml"
    table = "\n".join(f"{json.dumps(name)} = {json.dumps(str(path))}" for name, path in files.items())
    config.write_text(f"[tokenizers]\n{table}\n", encoding="utf-8")
    with running_sidecar(flags=["--config", str(config)]) as running, Client(running.address) as client:
        client.namespace(*NAMESPACE).write_many([Item(text, key=str(at)) for at, text in enumerate(TEXTS)])
        yield running


@pytest.fixture
def client(sidecar: RunningSidecar) -> Iterator[Client]:
    with Client(sidecar.address, timeout=60) as client:
        yield client


def reference(name: str, files: dict[str, Path], text: str) -> int:
    """The count of a text by whoever knows best."""
    if name in files:
        return Witness(files[name]).count(text)
    if name in ENCODINGS:
        return reference_count(text, name)
    return _core.count_tokens(text, name)


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_the_library(client: Client, files: dict[str, Path], name: str) -> None:
    texts = [
        *TEXTS,
        *(text for script in SCRIPTS for text in texts_in(script)),
        "",
        " ",
        "<|im_end|></s>[SEP]",
    ]
    witness = Witness(files[name])
    counted = client.count_tokens(texts, encoding=name)
    assert list(counted.counts) == [witness.count(text) for text in texts]
    assert counted.encoding == name


@pytest.mark.parametrize("name", NAMES)
def test_long_texts_are_counted_in_parts_with_the_same_result(
    client: Client, files: dict[str, Path], name: str
) -> None:
    text = " ".join(texts_in("English")) * 40
    (count,) = client.count_tokens([text], encoding=name).counts
    exact = Witness(files[name]).count(text)
    assert len(text) > 300_000
    # A part may begin with a space of its own.
    assert exact <= count <= exact + 5


@pytest.mark.parametrize("name", [*BUILT_IN_COUNTERS, *NAMES])
@pytest.mark.parametrize("budget", [120, 400, 1200])
def test_a_brief_is_within_its_budget(client: Client, files: dict[str, Path], name: str, budget: int) -> None:
    for query in QUERIES:
        brief = client.namespace(*NAMESPACE).brief(query, budget_tokens=budget, encoding=name)
        assert brief.encoding == name
        assert brief.tokens == reference(name, files, brief.text) <= budget
        # The frame alone takes a good part of the smallest.
        assert brief.included or budget == 120


@pytest.mark.parametrize("name", ["approximate"])
@pytest.mark.parametrize("budget", [200, 1200])
def test_an_approximate_budget_holds_for_vocabularies(client: Client, name: str, budget: int) -> None:
    for query in QUERIES:
        brief = client.namespace(*NAMESPACE).brief(query, budget_tokens=budget, encoding=name)
        for encoding in ENCODINGS:
            assert reference_count(brief.text, encoding) <= budget


@pytest.mark.parametrize("name", [*BUILT_IN_COUNTERS, *NAMES])
@pytest.mark.parametrize("max_tokens", [1, 7, 100])
def test_contents_are_cut_to_the_tokens_asked_for(
    client: Client, files: dict[str, Path], name: str, max_tokens: int
) -> None:
    keys = [str(at) for at in range(len(TEXTS))]
    details = client.namespace(*NAMESPACE).get(keys=keys, max_tokens=max_tokens, encoding=name)
    assert len(details.memories) == len(TEXTS)
    cut = 0
    for memory, text in zip(details.memories, TEXTS, strict=True):
        whole = reference(name, files, text)
        assert memory.content_tokens == whole
        assert memory.truncated == (whole > max_tokens)
        assert text.startswith(memory.content)
        assert reference(name, files, memory.content) <= max_tokens
        if memory.truncated:
            cut += 1
        else:
            assert memory.content == text
    assert cut


def test_an_unknown_counter_is_an_error_that_lists_the_counters(client: Client) -> None:
    namespace = client.namespace(*NAMESPACE)
    listed = ", ".join(f"`{name}`" for name in (*BUILT_IN_COUNTERS, *NAMES))
    for call in (
        lambda: client.count_tokens(["x"], encoding="gpt2"),
        lambda: namespace.brief("x", encoding="gpt2"),
        lambda: namespace.get(keys=["0"], encoding="gpt2"),
    ):
        with pytest.raises(InvalidArgument) as raised:
            call()
        (violation,) = raised.value.violations
        assert violation.field == "encoding"
        assert violation.description == f'must be one of {listed}, not "gpt2"'


def test_the_command_line_counts_by_any_of_them(sidecar: RunningSidecar, files: dict[str, Path]) -> None:
    done = run_cli(
        *("brief", "seat", "--namespace", "tokenizers", "--address", sidecar.address, "--json"),
        *("--encoding", "unigrams", "--budget-tokens", "150"),
    )
    assert done.returncode == 0, done.stderr
    brief = json.loads(done.stdout)
    assert brief["encoding"] == "unigrams"
    assert brief["tokens"] == reference("unigrams", files, brief["text"]) <= 150


@pytest.fixture(
    params=["missing", "empty", "truncated", "another", "binary", "folder", "huge", "pipe", "partial"]
)
def bad_file(request: pytest.FixtureRequest, tmp_path: Path, files: dict[str, Path]) -> Path:
    """A path that holds no tokenizer to count with."""
    path = tmp_path / "tokenizer.json"
    whole = files["byte-pairs"].read_bytes()
    match request.param:
        case "empty":
            path.touch()
        case "truncated":
            path.write_bytes(whole[: len(whole) // 2])
        case "another":
            path.write_text('{"name": "package", "version": "1.0.0"}')
        case "binary":
            path.write_bytes(os.urandom(4096))
        case "folder":
            path.mkdir()
        case "huge":
            with path.open("wb") as file:
                file.truncate(1 << 40)
        case "pipe":
            os.mkfifo(path)
        case "partial":
            model = {"type": "WordLevel", "vocab": {"one": 0}, "unk_token": "two"}
            Tokenizer(models.WordLevel(vocab={"one": 0}, unk_token="two")).save(str(path))
            assert json.loads(path.read_text())["model"] == model
    return path


def test_a_bad_file_stops_the_start_and_is_found_by_the_doctor(bad_file: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    flags = ["--data-dir", str(data), "--listen", f"unix:{tmp_path / 's.sock'}", "--http", "off"]
    flags += ["--tokenizers", f"mine={bad_file}"]

    served = run_cli("serve", *flags)
    assert served.returncode == 1
    message = served.stderr.strip().splitlines()[-1]
    assert message.startswith(f"recalld: tokenizers.mine: {bad_file} ")
    # Nothing was made on the way.
    assert not data.exists()

    examined = run_cli("doctor", *flags, "--json")
    assert examined.returncode == 1
    (finding,) = [f for f in json.loads(examined.stdout) if f["where"] == "tokenizers.mine"]
    assert finding["fix"]
    assert message == f"recalld: tokenizers.mine: {finding['what']}"


def test_the_doctor_says_which_tokenizers_can_be_used(files: dict[str, Path], tmp_path: Path) -> None:
    flags = [f"--tokenizers={name}={path}" for name, path in files.items()]
    examined = run_cli("doctor", "--data-dir", str(tmp_path / "none"), *flags, "--json")
    found = {f["where"]: f for f in json.loads(examined.stdout) if f["where"].startswith("tokenizers.")}
    assert set(found) == {f"tokenizers.{name}" for name in files}
    assert not any(finding["fix"] for finding in found.values())


def test_the_core_counts_by_files_too(files: dict[str, Path]) -> None:
    tokenizers = {name: str(path) for name, path in files.items()}
    for name in files:
        for text in TEXTS[:8]:
            assert _core.count_tokens(text, name, tokenizers) == reference(name, files, text)
    with pytest.raises(ValueError, match=f"known are {', '.join([*BUILT_IN_COUNTERS, *NAMES])}"):
        _core.count_tokens("x", "other", tokenizers)
    with pytest.raises(_core.CoreError, match=r"tokenizers\.gone: /nowhere cannot be read"):
        _core.count_tokens("x", "gone", {"gone": "/nowhere"})
