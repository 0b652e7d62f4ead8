"""`recalld doctor`: what is wrong with a data directory, its model and its sockets, each with its fix.

It reads and never repairs. A directory that a running sidecar holds is that sidecar's to read, so it is asked
for its counts instead.
"""

import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recalld import Client, RecalldError

from recalld_sidecar import _core
from recalld_sidecar._core import CoreError
from recalld_sidecar.config import Config, UnixAddress
from recalld_sidecar.sockets import SocketError, examine

_MODEL_FILES = ("model.safetensors", "vocab.txt", "neighbours.safetensors")
_MODEL_FIX = "install recalld-sidecar again, or give the folder of a model with --model-dir"

_TOKENIZER_FIX = "give the path of a tokenizer.json of Hugging Face's libraries, or remove the setting"

_LOCK_FILE = "LOCK"
"""In a data directory: `PID ADDRESS`, locked for as long as that process has the directory open."""

_OPEN_FIX = "do what the message says, or restore a backup"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `fix` is empty when nothing is wrong with it."""

    where: str
    what: str
    fix: str = ""


def examine_all(config: Config) -> list[Finding]:
    """Look at everything that a sidecar with this configuration would use."""
    return [*_model(config), *_tokenizers(config), *_directory(config), *_sockets(config)]


def _model(config: Config) -> Iterator[Finding]:
    where = str(config.model_dir)
    missing = [name for name in _MODEL_FILES if not (config.model_dir / name).is_file()]
    if missing:
        yield Finding(where, f"the embedding model lacks {' and '.join(missing)}", _MODEL_FIX)
        return
    try:
        _core.embed(where, ["memory"])
    except (CoreError, ValueError) as error:
        yield Finding(where, f"the embedding model cannot be used: {_text(error)}", _MODEL_FIX)
    else:
        yield Finding(where, "the embedding model can be used")


def _tokenizers(config: Config) -> Iterator[Finding]:
    for name, path in config.tokenizers.items():
        where = f"tokenizers.{name}"
        try:
            _core.count_tokens("memory", name, {name: str(path)})
        except CoreError as error:
            yield Finding(where, error.message.removeprefix(f"{where}: "), _TOKENIZER_FIX)
        else:
            yield Finding(where, f"{path} can be counted with")


def _directory(config: Config) -> Iterator[Finding]:
    where = str(config.data_dir)
    if not config.data_dir.is_dir():
        yield Finding(
            where, "there is no data directory", "start `recalld serve`, or give another --data-dir"
        )
        return
    try:
        problems = _core.verify(where, str(config.model_dir))
    except CoreError as error:
        holder = _holder(config.data_dir)
        if holder is None:
            yield Finding(where, f"the data directory cannot be opened: {_text(error)}", _OPEN_FIX)
        else:
            yield _ask(where, *holder)
        return
    for problem in problems:
        yield Finding(f"{where}: {problem.where}", problem.what, problem.fix)
    if not problems:
        yield Finding(where, "everything in the data directory can be read and agrees")


def _sockets(config: Config) -> Iterator[Finding]:
    for address in config.listen:
        if not isinstance(address, UnixAddress):
            continue
        try:
            state = examine(address.path)
        except SocketError as error:
            yield Finding(str(address), str(error), "move what lies there, or give another --listen")
            continue
        what = {
            "free": "nobody listens",
            "stale": "left behind by a process that is gone; the next start removes it",
            "live": "a process listens",
        }
        yield Finding(str(address), what[state])


def _holder(data_dir: Path) -> tuple[str, str] | None:
    """Read who holds a directory: process id and address. None when nobody does."""
    try:
        with (data_dir / _LOCK_FILE).open(encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                pid, _, address = file.read().strip().partition(" ")
                return pid, address
    except OSError:
        pass
    return None


def _ask(where: str, pid: str, address: str) -> Finding:
    held = f"process {pid} serves it at {address or 'an unknown address'}"
    if not address:
        return Finding(where, held, "stop that process and run doctor again")
    try:
        with Client(address) as client:
            stats = client.stats()
    except RecalldError as error:
        return Finding(where, f"{held} but does not answer ({error})", f"look at the log of process {pid}")
    counts = f"{stats.memories} memories, {stats.namespaces} namespaces, {stats.bytes_used} bytes"
    return Finding(where, f"{held} and answers: {counts}; stop it to have every record checked")


def _text(error: Exception) -> str:
    return error.message if isinstance(error, CoreError) else str(error)
