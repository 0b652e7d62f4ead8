"""Log lines: one a record, whatever the record says."""

import json
import logging
import sys

import pytest
from recalld_sidecar.logs import JsonFormatter, TextFormatter


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("recalld", logging.WARNING, "file", 1, message, (), None)
    made.created, made.msecs = 1_700_000_000.25, 250.0
    made.__dict__.update(fields)
    return made


def with_traceback(message: str) -> logging.LogRecord:
    made = record(message)
    try:
        int("cause")
    except ValueError:
        made.exc_info = sys.exc_info()
    return made


def test_json_has_the_fields() -> None:
    line = JsonFormatter().format(record("call", took_ms=1.5, method="/a/B", request_id="r", color="red"))
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "warning",
        "message": "call",
        "request_id": "r",
        "method": "/a/B",
        "took_ms": 1.5,
    }


@pytest.mark.parametrize("made", [record('a\n{"level": "x"}\r\u2028', method="b\nc"), with_traceback("a")])
def test_json_is_one_line(made: logging.LogRecord) -> None:
    line = JsonFormatter().format(made)
    assert "\n" not in line
    assert "\r" not in line
    assert json.loads(line)["message"] == made.getMessage()


def test_json_has_the_traceback() -> None:
    assert (
        "ValueError: invalid literal" in json.loads(JsonFormatter().format(with_traceback("a")))["exception"]
    )


def test_text_is_for_people() -> None:
    line = TextFormatter().format(record("call", request_id="r", listen=["unix:/a", "127.0.0.1:1"]))
    assert line == "2023-11-14T22:13:20.250Z WARNING call request_id=r listen=unix:/a,127.0.0.1:1"


def test_text_cannot_be_split_by_what_it_says() -> None:
    line = TextFormatter().format(record("a\nb\x1b[2J", method="c\nd e"))
    assert "\n" not in line
    assert "\x1b" not in line
    assert 'method="c\\nd e"' in line
