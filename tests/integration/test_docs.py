"""The documentation: its programs print what is shown, its commands exist, its tables are those of the code.

What it says is compared with what is: the running process, `Config`, the contract, and the Rust files that
state kinds, filter fields and limits.
"""

import configparser
import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import tomllib
import urllib.request
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import recalld_sidecar
from prometheus_client.parser import text_string_to_metric_families
from recalld import Client, Item, Outcome
from recalld.v1 import admin_service_pb2, memory_service_pb2
from recalld_sidecar import cli, logs
from recalld_sidecar.config import Config

from tests.support.sidecar import STOP_SECONDS, RunningSidecar, run_cli, running_sidecar
from tests.support.store import wait_until

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
GUIDE = ROOT / "docs/guide.md"
OPERATIONS = ROOT / "docs/operations.md"
CLIENT = ROOT / "clients/python/README.md"
OURS = [README, CONTRIBUTING, GUIDE, OPERATIONS]
ALL = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "clients").glob("*.md"),
    CLIENT,
    ROOT / "tools/model/README.md",
]

ADDRESS = "unix:/tmp/recalld.sock"
"""The address of all examples."""

PROGRAM = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
"""A program and, when it is shown, what it prints."""
SHELL = re.compile(r"^```sh\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```\n", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")


@pytest.fixture(scope="module")
def sidecar() -> Iterator[RunningSidecar]:
    with running_sidecar() as running:
        yield running


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def prose(path: Path) -> str:
    """The text without its fenced blocks."""
    return FENCED.sub("", read(path))


def section(path: Path, heading: str) -> str:
    """What stands below a heading of the second level."""
    parts = read(path).split(f"\n## {heading}\n")
    assert len(parts) == 2, f"{path} has not one section {heading!r}"
    return parts[1].split("\n## ")[0]


def table(path: Path, heading: str) -> list[list[str]]:
    """The cells of the one table of a section, without its head and without backticks."""
    rows = [line for line in section(path, heading).splitlines() if line.startswith("|")]
    assert set(rows[1]) == {"|", "-"}
    return [[cell.strip().replace("`", "") for cell in row.split("|")[1:-1]] for row in rows[2:]]


def commands(path: Path) -> Iterator[list[str]]:
    """The words of each command in the shell blocks."""
    for block in SHELL.findall(read(path)):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                yield words


def parse_command(words: list[str]) -> None:
    """Parse the words after `recalld` as the command does; it would exit on what it does not know."""
    try:
        cli._parser(chosen=words[0]).parse_args(words)
    except SystemExit as exited:
        raise AssertionError(f"not a command: recalld {shlex.join(words)}") from exited


# Programs and commands


@pytest.mark.parametrize("path", [README, GUIDE, CLIENT], ids=name_of)
def test_the_programs_run_and_print_what_is_shown(path: Path) -> None:
    programs = PROGRAM.findall(read(path))
    assert programs
    variables: dict[str, Any] = {"__name__": path.stem}
    with running_sidecar() as fresh:
        for program, shown in programs:
            code = compile(program.replace(ADDRESS, fresh.address), name_of(path), "exec")
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, variables)
            if shown:
                assert printed.getvalue() == shown


def test_the_excerpt_is_what_the_demo_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_scores(text: str) -> str:
        """Scores move with the clock: what is older has less recency."""
        return re.sub(r" 0\.\d{3} ", " score ", text)

    monkeypatch.setenv("COLUMNS", "100")
    (excerpt,) = re.findall(r"^```console\n(.*?)^```\n", read(README), re.MULTILINE | re.DOTALL)
    demo = run_cli("demo", "--repeats", "1")
    assert demo.returncode == 0, demo.stderr
    for part in excerpt.split("\n...\n"):
        assert without_scores(part) in without_scores(demo.stdout)


def test_every_shown_output_belongs_to_a_program() -> None:
    for path in (README, GUIDE, CLIENT):
        shown = sum(1 for _, output in PROGRAM.findall(read(path)) if output)
        assert read(path).count("```text\n") == shown, path


@pytest.mark.parametrize("path", [README, GUIDE, OPERATIONS], ids=name_of)
def test_the_shell_commands_are_commands(path: Path, sidecar: RunningSidecar) -> None:
    for words in commands(path):
        match words:
            case ["make", target]:
                assert target in make_targets()
            case ["pip", "install", *folders]:
                assert all((ROOT / folder / "pyproject.toml").is_file() for folder in folders)
            case ["recalld", *arguments]:
                parse_command(arguments)
            case [".venv/bin/buf", "curl", *arguments]:
                check_buf_curl(arguments, sidecar)
            case _:
                raise AssertionError(f"nothing is known of {words}")


def check_buf_curl(arguments: list[str], sidecar: RunningSidecar) -> None:
    """Run the call of any gRPC client, and find what was written."""
    socket = sidecar.address.removeprefix("unix:")
    with Client(sidecar.address) as client:
        client.namespace("acme", "user", "alice").write("Alice prefers aisle seats.")
    called = subprocess.run(
        ["buf", "curl", *(word.replace("/tmp/recalld.sock", socket) for word in arguments)],
        cwd=ROOT,
        env=os.environ | {"PATH": f"{ROOT / '.venv/bin'}:{os.environ.get('PATH', '')}"},
        capture_output=True,
        text=True,
        timeout=STOP_SECONDS,
        check=False,
    )
    assert called.returncode == 0, called.stderr
    assert "Alice prefers aisle seats." in called.stdout


@pytest.mark.parametrize("path", [*OURS, ROOT / "CHANGELOG.md"], ids=name_of)
def test_commands_in_the_text_are_commands(path: Path) -> None:
    for span in SPAN.findall(prose(path)):
        match span.removeprefix(".venv/bin/").split():
            case ["make", target]:
                assert target in make_targets(), span
            case ["recalld", "write" | "search" | "get" | "brief" | "delete"]:
                pass  # named without the arguments that they need
            case ["recalld", *arguments] if arguments:
                parse_command(arguments)


def test_operations_name_every_command() -> None:
    known = set(re.findall(r"^    ([a-z]+) ", run_cli("--help").stdout, re.MULTILINE))
    named = [span.split() for span in SPAN.findall(prose(OPERATIONS))] + list(commands(OPERATIONS))
    assert {words[1] for words in named if words[0] == "recalld" and len(words) > 1} == known


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", read(ROOT / "Makefile"), re.MULTILINE))


def test_contributing_names_every_make_target() -> None:
    targets = [target.removeprefix("make ") for target, _ in table(CONTRIBUTING, "Targets")]
    assert set(targets) == make_targets()
    assert len(targets) == len(set(targets))


def test_the_unit_of_systemd_starts_a_sidecar_and_lets_it_drain() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.read_string(section(OPERATIONS, "Under systemd").split("```ini\n")[1].split("```")[0])
    service = unit["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    assert Path(program).name == "recalld"
    parse_command(arguments)
    assert float(service["TimeoutStopSec"]) > Config.model_fields["drain_seconds"].default


# Tables


def test_the_configuration_is_that_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in [name for name in os.environ if name.startswith(("RECALLD_", "XDG_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/1")
    # The default of `model_dir` is written as a path inside the package.
    monkeypatch.chdir(Path(recalld_sidecar.__file__).parent)
    rows = table(OPERATIONS, "Configuration")
    assert [row[0] for row in rows] == list(Config.model_fields)
    for name, _, flag, variable, _ in rows:
        assert flag == f"--{name.replace('_', '-')}"
        assert variable == f"RECALLD_{name.upper()}"
    documented = Config.load({name: os.path.expandvars(default) for name, default, *_ in rows})
    assert documented.model_dump(mode="json") == Config.load({}).model_dump(mode="json")


def test_the_kinds_are_those_of_the_engine() -> None:
    def days(number: str, never: str) -> str:
        return f"{number} days" if number else never

    source = read(ROOT / "core_rs/engine/src/kinds.rs")
    kinds = re.findall(r'kind\("(\w+)", (?:None|Some\((\d+)\)), (?:None|Some\((\d+)\))\)', source)
    (others,) = re.findall(r"OTHER_HALF_LIFE.*\* (\d+)\)", source)
    (default,) = re.findall(r'DEFAULT_KIND: &str = "(\w+)"', source)
    expected = [[name, days(half_life, "does not age"), days(ttl, "none")] for name, half_life, ttl in kinds]
    assert len(expected) == 10
    assert table(GUIDE, "Kinds") == [*expected, ["your own", days(others, ""), "none"]]
    assert f"Without a kind a memory is a `{default}`" in section(GUIDE, "Kinds")


def test_the_filter_fields_are_those_of_the_engine() -> None:
    source = read(ROOT / "core_rs/engine/src/filter.rs")
    fields = re.findall(r'\("([a-z_.]+)", Self::', source)
    assert len(fields) == 13
    types = {"importance": "number", "confidence": "number"}
    types |= {field: "time" for field in fields if field.endswith("_at")}
    expected = [[field, types.get(field, "text")] for field in fields]
    assert table(GUIDE, "Filters") == [*expected, ["metadata.<path>", "any"]]


def test_the_outcomes_are_those_of_the_client() -> None:
    outcomes = [str(outcome) for outcome in Outcome if outcome is not Outcome.UNRECOGNIZED]
    assert [row[0] for row in table(GUIDE, "Receipts")] == outcomes


def test_the_errors_are_those_of_the_contract() -> None:
    source = read(ROOT / "proto/recalld/v1/errors.proto")
    reasons = re.findall(r"// ([A-Z_]+)\. (?:.*\n  //)*.*\n  ERROR_REASON_(\w+) = ", source)
    assert len(reasons) == 15
    assert [(code, reason) for reason, code, _ in table(GUIDE, "Errors")] == reasons


def test_the_limits_are_those_of_the_door() -> None:
    source = read(ROOT / "core_rs/api/src/limits.rs")
    found = re.findall(r"const (\w+): \w+ = ([\d_]+)(?: << (\d+))?;", source)
    limits = {name: int(number) << int(shift or 0) for name, number, shift in found}

    def count(*names: str) -> str:
        return ", ".join(f"{limits[name]:,}" for name in names)

    def size(name: str) -> str:
        for unit, shift in (("MiB", 20), ("KiB", 10)):
            if limits[name] % (1 << shift) == 0 and limits[name] >= 16 << 10:
                return f"{limits[name] >> shift} {unit}"
        return count(name)

    assert table(GUIDE, "Limits") == [
        ["segments of a namespace", count("MAX_SEGMENTS")],
        ["bytes of a segment", size("MAX_SEGMENT_BYTES")],
        ["items of a write", count("MAX_ITEMS")],
        ["bytes of a write's items", size("MAX_ITEMS_BYTES")],
        ["bytes of a content", size("MAX_CONTENT_BYTES")],
        ["bytes of a key", size("MAX_KEY_BYTES")],
        ["bytes of a kind", size("MAX_KIND_BYTES")],
        ["bytes of a summary", size("MAX_SUMMARY_BYTES")],
        ["tags of a memory, bytes of each", count("MAX_TAGS", "MAX_TAG_BYTES")],
        [
            "names at one level of metadata, bytes in all",
            f"{count('MAX_METADATA_NAMES')}, {size('MAX_METADATA_BYTES')}",
        ],
        ["depth of a value", count("MAX_VALUE_DEPTH")],
        ["sources of a memory", count("MAX_SOURCES")],
        ["bytes of an idempotency key", size("MAX_IDEMPOTENCY_KEY_BYTES")],
        ["depth and nodes of a filter", count("MAX_FILTER_DEPTH", "MAX_FILTER_NODES")],
        ["values of one in_", count("MAX_IN_VALUES")],
        ["bytes of a query", size("MAX_QUERY_BYTES")],
        ["hits of a search, default", count("MAX_HITS", "DEFAULT_HITS")],
        ["memories that a brief considers, default", count("MAX_BRIEF_MEMORIES", "DEFAULT_BRIEF_MEMORIES")],
        ["tokens of a brief, default", count("MAX_BUDGET", "DEFAULT_BUDGET")],
        ["ids and keys of a get or delete", count("MAX_NAMED")],
        ["texts of a token count, bytes in all", f"{count('MAX_TEXTS')}, {size('MAX_TEXTS_BYTES')}"],
        ["bytes of any other request", size("MAX_REQUEST_BYTES")],
    ]


def test_the_defaults_in_the_text_are_those_of_the_door() -> None:
    source = read(ROOT / "core_rs/api/src/limits.rs")
    defaults = dict(re.findall(r"const (DEFAULT_\w+): f64 = ([\d.]+);", source))
    (weights,) = re.findall(r"DEFAULT_WEIGHTS: \[f64; 3\] = \[([\d.]+), ([\d.]+), ([\d.]+)\]", source)
    text = " ".join(read(GUIDE).split())
    assert f"`importance` (0..1, default {defaults['DEFAULT_IMPORTANCE']})" in text
    assert f"`confidence` (0..1, default {float(defaults['DEFAULT_CONFIDENCE']):g})" in text
    assert "The weights are {}, {} and {} unless".format(*weights) in text


def test_the_metrics_are_those_of_the_process(sidecar: RunningSidecar) -> None:
    with Client(sidecar.address) as client:
        client.stats()
    with urllib.request.urlopen(f"{sidecar.http}/metrics", timeout=STOP_SECONDS) as response:
        families = list(text_string_to_metric_families(response.read().decode()))
    exposed = {
        (
            f"{family.name}_total" if family.type == "counter" else family.name,
            family.type,
            frozenset(label for sample in family.samples for label in sample.labels if label != "le"),
        )
        for family in families
        if family.name.startswith("recalld_")
    }
    documented = {
        (name, kind, frozenset(filter(None, labels.split(", "))))
        for name, kind, labels, _ in table(OPERATIONS, "Metrics")
    }
    assert documented == exposed
    others = {sample.name for family in families for sample in family.samples}
    assert set(re.findall(r"process_\w+", section(OPERATIONS, "Metrics"))) <= others


def test_the_health_table_answers(sidecar: RunningSidecar) -> None:
    routes = re.findall(r"GET (/\w+)", section(OPERATIONS, "Health"))
    assert len(routes) == 3
    for route in routes:
        with urllib.request.urlopen(f"{sidecar.http}{route}", timeout=STOP_SECONDS) as response:
            assert response.status == 200


def test_the_log_fields_are_those_of_the_log() -> None:
    assert set(logs.FIELDS) <= set(SPAN.findall(section(OPERATIONS, "Logs and request ids")))


def test_the_calls_are_those_of_the_services() -> None:
    memory = memory_service_pb2.DESCRIPTOR.services_by_name["MemoryService"]
    admin = admin_service_pb2.DESCRIPTOR.services_by_name["AdminService"]
    methods = {*memory.methods_by_name, *(f"AdminService.{name}" for name in admin.methods_by_name)}
    assert {row[0] for row in table(README, "What it answers")} == methods


def test_the_versions_are_those_of_the_packages() -> None:
    python = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["requires-python"].removeprefix(">=")
    rust = tomllib.loads(read(ROOT / "Cargo.toml"))["workspace"]["package"]["rust-version"]
    assert f"Python {python}, Rust {rust}" in read(README)
    assert f"Python {python} or later" in read(OPERATIONS)
    assert f"Rust {rust} or later" in read(OPERATIONS)


# The data directory


def test_the_data_directory_is_as_described_and_its_copy_is_a_backup(tmp_path: Path) -> None:
    data_dir, restored = tmp_path / "data", tmp_path / "restored"
    flags = ["--index-after", "10"]
    with running_sidecar(data_dir, flags=flags) as original, Client(original.address) as client:
        items = [Item(f"Memory number {number} of a trip.") for number in range(50)]
        client.namespace("acme").write_many(items)
        wait_until(lambda: any(data_dir.glob("index/*")), "the index is saved")
        documented = {row[0].removesuffix("/") for row in table(OPERATIONS, "Data directory")}
        assert {path.name for path in data_dir.iterdir()} == documented
    restored.mkdir()
    shutil.copy(data_dir / "data.mdb", restored)
    checked = run_cli("doctor", "--data-dir", str(restored), "--listen", f"unix:{tmp_path / 'socket'}")
    assert checked.returncode == 0, checked.stdout
    with running_sidecar(restored, flags=flags) as copy, Client(copy.address) as client:
        assert client.stats().memories == len(items)
        assert len(client.namespace("acme").search("a trip", limit=100)) == len(items)


# Links and pictures


def anchors(path: Path) -> set[str]:
    """The anchors of the headings, as forges make them."""
    headings = [heading.replace("`", "").lower() for heading in HEADING.findall(prose(path))]
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    for link in LINK.findall(prose(path)):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = path.parent / file if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("path", OURS, ids=name_of)
def test_paths_in_the_text_exist(path: Path) -> None:
    for span in SPAN.findall(prose(path)):
        # Reports are written by `make load` and `make quality`.
        if re.match(r"(core_rs|clients|docs|proto|sidecar|tests|tools)/\S+$", span) and "reports" not in span:
            assert (ROOT / span).exists(), span


def test_the_picture_is_an_image_with_a_description() -> None:
    root = ET.parse(ROOT / "docs/data-flow.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.findtext("{http://www.w3.org/2000/svg}title")
    assert root.findtext("{http://www.w3.org/2000/svg}desc")


def test_the_figures_have_their_place() -> None:
    assert re.findall(r"<!-- figures:(\w+) -->", section(README, "Figures")) == ["start", "end"]
