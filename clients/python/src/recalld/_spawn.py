"""A sidecar as a child of this process: started, waited for, and stopped with its parent.

What the child does is in `_child`. The Unix socket lies in a private folder, so that only this user can reach
it. Nothing here opens a store.
"""

import json
import logging
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from ._client import Client
from ._embedded import needs_sidecar
from ._errors import DeadlineExceeded, Unavailable, invalid

_log = logging.getLogger("recalld.sidecar")

_LINES_KEPT = 20
"""Last lines of its log that are told when a sidecar does not start."""
_LOOK_SECONDS = 0.01
"""How often to look whether it serves yet."""
_STOP_SECONDS = 5.0
"""How long it may take to end, beyond the calls in hand (`drain_seconds`), before it is killed."""
_DRAIN_SECONDS = 10.0


class Sidecar:
    """A sidecar that serves this process, and ends with it. Made by `spawn`.

    Its log goes to the logger `recalld.sidecar`. Stop it with `close`, or by leaving a `with` block.
    """

    def __init__(self, process: "subprocess.Popen[str]", folder: Path, stop_seconds: float) -> None:
        self._process = process
        self._folder = folder
        self._stop_seconds = stop_seconds
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        assert process.stderr is not None
        self._reader = threading.Thread(
            target=self._read, args=(process.stderr,), name="recalld-sidecar-log", daemon=True
        )
        self._reader.start()

    @property
    def address(self) -> str:
        """Where it serves, for `Client` and `AsyncClient`."""
        return f"unix:{_socket(self._folder)}"

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def close(self) -> None:
        """Let the calls in hand finish, and stop it; a second time does nothing."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        try:
            self._process.wait(self._stop_seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _wait_until_serving(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        socket = _socket(self._folder)
        with Client(self.address, retries=0) as client:
            while True:
                if self._process.poll() is not None:
                    self._reader.join()
                    raise Unavailable(f"the sidecar ended while it started:\n{self._log_tail()}")
                # A channel that found no socket would wait before it looks again.
                if socket.exists():
                    with suppress(Unavailable, DeadlineExceeded):
                        client.stats(timeout=1.0)
                        return
                if time.monotonic() > deadline:
                    raise DeadlineExceeded(f"the sidecar took too long to start:\n{self._log_tail()}")
                time.sleep(_LOOK_SECONDS)

    def _log_tail(self) -> str:
        return "".join(self._lines).rstrip()

    def _read(self, stderr: IO[str]) -> None:
        with stderr:
            for line in stderr:
                self._lines.append(line)
                _log.log(_level(line), "%s", line.rstrip("\n"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Sidecar({self.address!r})"


def spawn(data_dir: str | PathLike[str], *, start_timeout: float = 60.0, **settings: Any) -> Sidecar:
    """Start a sidecar of your own on a data directory, on a private Unix socket, and wait until it serves.

        with recalld.spawn("/var/lib/recalld") as sidecar, Client(sidecar.address) as client:
            ...

    Needs the package `recalld-sidecar`. `settings` are those of the sidecar's configuration, for example
    `index_after=5000` or `tokenizers={"mine": "mine.json"}`; HTTP is off unless `http` says where. It ends with
    this process, however that ends. Raises Unavailable with the last lines of its log when it does not start,
    and DeadlineExceeded after `start_timeout` seconds. Blocks; in asyncio, run it in a thread.
    """
    if "listen" in settings:
        raise invalid("listen", "is not a setting of a spawned sidecar, which has a private socket")
    if find_spec("recalld_sidecar") is None:
        raise needs_sidecar("recalld.spawn")
    folder = Path(tempfile.mkdtemp(prefix="recalld-"))
    settings = {"http": "off"} | settings
    command = [sys.executable, "-P", str(Path(__file__).with_name("_child.py")), str(folder), "serve"]
    command += ["--data-dir", fspath(data_dir), "--listen", f"unix:{_socket(folder)}", *_flags(settings)]
    try:
        process = subprocess.Popen(  # noqa: S603 - it is our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    drain_seconds = float(settings.get("drain_seconds", _DRAIN_SECONDS))
    sidecar = Sidecar(process, folder, drain_seconds + _STOP_SECONDS)
    try:
        sidecar._wait_until_serving(start_timeout)  # noqa: SLF001 - a part of the same thing
    except BaseException:
        sidecar.close()
        raise
    return sidecar


def _socket(folder: Path) -> Path:
    return folder / "recalld.sock"


def _flags(settings: Mapping[str, Any]) -> list[str]:
    flags = []
    for name, value in settings.items():
        values = [f"{key}={part}" for key, part in value.items()] if isinstance(value, Mapping) else [value]
        flags += [f"--{name.replace('_', '-')}={part}" for part in values]
    return flags


def _level(line: str) -> int:
    """Read the level of a line of the log; what is no such line is a complaint of something else."""
    try:
        return logging.getLevelNamesMapping()[json.loads(line)["level"].upper()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return logging.WARNING
