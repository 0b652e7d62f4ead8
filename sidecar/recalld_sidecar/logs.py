"""Logs: one line an event on standard error, as JSON or for people.

Nothing here runs on the path of a successful call unless the level is `debug`. Texts of memories and queries
are never logged.
"""

import json
import logging
import sys
import time
from typing import Literal

FIELDS = (
    "request_id",
    "method",
    "code",
    "reason",
    "took_ms",
    "pid",
    "listen",
    "http",
    "data_dir",
)
"""Attributes that a record may carry besides its message (`extra=`), in the order of writing."""


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (RFC 3339, UTC), `level`, `message`, the fields, and `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        line: dict[str, object] = {"time": _utc(record), "level": record.levelname.lower()}
        line |= {"message": record.getMessage()} | _fields(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class TextFormatter(logging.Formatter):
    """One line for people: time, level, message, `field=value`; a traceback stands below."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        message = record.getMessage()
        if not message.isprintable():
            message = json.dumps(message)
        words = [_utc(record), f"{record.levelname:<7}", message]
        words += [f"{name}={_word(value)}" for name, value in _fields(record).items()]
        line = " ".join(words)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(level: str, form: Literal["json", "text"]) -> None:
    """Send everything of `level` and above to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)


def _utc(record: logging.LogRecord) -> str:
    seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{seconds}.{int(record.msecs):03}Z"


def _word(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if text.isprintable() and " " not in text else json.dumps(text)


def _fields(record: logging.LogRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
