"""The command line without a sidecar: arguments, usage errors, and what fails in one line."""

import io
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recalld_sidecar import cli


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("RECALLD_"):
            monkeypatch.delenv(name)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=8))
def test_any_namespace_can_be_written(segments: list[str]) -> None:
    text = "/".join(quote(segment, safe="") for segment in segments)
    assert cli.parse_namespace(text) == tuple(segments)


def test_plain_segments_need_no_escapes() -> None:
    assert cli.parse_namespace("acme/user/Zo\u00eb B.") == ("acme", "user", "Zo\u00eb B.")
    assert cli.parse_namespace("a%2Fb%2fc/100%25") == ("a/b/c", "100%")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["search", "query"],
        ["search", "--namespace", "a"],
        ["search", "query", "--namespace", ""],
        ["search", "query", "--namespace", "/a"],
        ["search", "query", "--namespace", "a//b"],
        ["search", "query", "--namespace", "a%2"],
        ["search", "query", "--namespace", "a%FF"],
        ["search", "query", "--namespace", "a", "--limit", "many"],
        ["write", "x", "--namespace", "a", "--ttl", "1w"],
        ["write", "x", "--namespace", "a", "--occurred-at", "2026-05-12T09:30:00"],
        ["write", "x", "--namespace", "a", "--occurred-at", "yesterday"],
        ["write", "x", "--namespace", "a", "--metadata", "[1]"],
        ["write", "x", "--namespace", "a", "--metadata", "{"],
        ["serve", "--no-such-flag", "1"],
        ["serve", "extra"],
    ],
)
def test_wrong_usage_is_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exited:
        cli.main(arguments)
    assert exited.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "usage: recalld" in captured.err


@pytest.mark.parametrize("command", ["serve", "config", "doctor"])
def test_a_wrong_setting_is_one_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "--http", "0.0.0.0:80", "--index-after", "0"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("recalld: ")
    assert captured.err.count("\n") == 1
    assert "http (from --http)" in captured.err
    assert "index_after (from --index-after)" in captured.err


def test_config_prints_what_is_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "recalld.toml"
    file.write_text('log_level = "debug"\nhttp = "off"\n')
    monkeypatch.setenv("RECALLD_DATA_DIR", "/data")
    flags = ["--config", str(file), "--listen", "unix:/a", "--listen", "localhost:1"]

    assert cli.main(["config", "--json", *flags]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["listen"] == ["unix:/a", "127.0.0.1:1"]
    assert (printed["log_level"], printed["http"], printed["data_dir"]) == ("debug", "off", "/data")

    assert cli.main(["config", *flags]) == 0
    again = tmp_path / "again.toml"
    again.write_text(capsys.readouterr().out)
    monkeypatch.delenv("RECALLD_DATA_DIR")
    assert cli.main(["config", "--json", "--config", str(again)]) == 0
    assert json.loads(capsys.readouterr().out) == printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["write", "x", "--namespace", "a"],
        ["search", "x", "--namespace", "a"],
        ["get", "x", "--namespace", "a"],
        ["brief", "x", "--namespace", "a"],
        ["delete", "x", "--namespace", "a"],
        ["stats"],
    ],
)
def test_nobody_there_is_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"unix:{tmp_path}/none.sock"
    assert cli.main([*arguments, "--address", address, "--timeout", "5"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(
        f"recalld: no sidecar answers at {address}: start one with `recalld serve`"
    )
    assert captured.err.count("\n") == 1


def test_the_default_address_is_where_serve_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert cli.main(["stats", "--timeout", "5"]) == 1
    assert f"unix:{tmp_path}/recalld.sock" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("stdin", "content"), [(b"a\nb\n", "a\nb"), (b"a\r\n", "a"), (b"a\n\n", "a\n"), (b"", "")]
)
def test_content_can_come_from_standard_input(
    stdin: bytes, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
    assert cli._read_content("-") == content
    assert cli._read_content("as it is\n") == "as it is\n"


def test_content_must_be_utf8(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\xff")))
    assert cli.main(["write", "-", "--namespace", "a"]) == 1
    assert "not UTF-8" in capsys.readouterr().err


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert cli._printable("a\x1b[2Jb\rc\td\n\u4e2d") == "a\ufffd[2Jb\ufffdc\td\n\u4e2d"


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (timedelta(), "now"),
        (timedelta(seconds=59.9), "59 s ago"),
        (timedelta(minutes=90), "1 h ago"),
        (timedelta(days=400), "400 d ago"),
    ],
)
def test_ages_are_for_people(age: timedelta, text: str) -> None:
    assert cli._age(age) == text
