"""A sidecar as a child of this process: started, waited for, and stopped with its parent.

What the child does is in `_child`. The Unix socket lies in a private folder, so that only this user can reach
it. Nothing here opens a store.
"""

import json
import logging
import os
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
from weakref import WeakSet

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

    Its log goes to the logger `recalld.sidecar`. Stop it with `close`, or by leaving a `with` block; in a fork of
    the process that spawned it both do nothing.
    """

    def __init__(self, process: "subprocess.Popen[str]", folder: Path, stop_seconds: float) -> None:
        self._process = process
        self._folder = folder
        self._stop_seconds = stop_seconds
        self._owner = os.getpid()
        self._lines: deque[str] = deque(maxlen=_LINES_KEPT)
        assert process.stderr is not None
        self._reader = threading.Thread(
            target=self._read, args=(process.stderr,), name="recalld-sidecar-log", daemon=True
        )
        self._reader.start()
        _spawned.add(self)

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
        if self._owner != os.getpid():
            return
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

    def _let_go(self, null: int) -> None:
        """Give up a fork's ends of its pipes; not by closing them, for which locks may be held that nobody frees."""
        for pipe in (self._process.stdin, self._process.stderr):
            if pipe is not None and not pipe.closed:
                os.dup2(null, pipe.fileno(), inheritable=False)

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
    try:
        stop_seconds = float(settings.get("drain_seconds", _DRAIN_SECONDS)) + _STOP_SECONDS
    except (TypeError, ValueError) as error:
        raise invalid("drain_seconds", "must be a number of seconds") from error
    if find_spec("recalld_sidecar") is None:
        raise needs_sidecar("recalld.spawn")
    flags = ["--data-dir", fspath(data_dir), *_flags({"http": "off"} | settings)]
    folder = Path(tempfile.mkdtemp(prefix="recalld-"))
    command = [sys.executable, "-P", str(Path(__file__).with_name("_child.py")), str(folder), "serve"]
    command += ["--listen", f"unix:{_socket(folder)}", *flags]
    try:
        process = subprocess.Popen(  # noqa: S603 - it is our own program
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C in a terminal is for the parent, which may go on after it.
            process_group=0,
        )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    sidecar = Sidecar(process, folder, stop_seconds)
    try:
        sidecar._wait_until_serving(start_timeout)  # noqa: SLF001 - a part of the same thing
    except BaseException:
        sidecar.close()
        raise
    return sidecar


_spawned: WeakSet[Sidecar] = WeakSet()


def _let_go_in_fork() -> None:
    """Leave the sidecars to the parent: with the pipes open here too, they would outlive it."""
    if sidecars := tuple(_spawned):
        null = os.open(os.devnull, os.O_RDWR)
        for sidecar in sidecars:
            sidecar._let_go(null)  # noqa: SLF001 - a part of the same thing
        os.close(null)


os.register_at_fork(after_in_child=_let_go_in_fork)


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
