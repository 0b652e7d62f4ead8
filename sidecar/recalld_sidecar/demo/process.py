"""A sidecar process of the demo's own: started on an empty store, waited for, and always stopped again.

It is the real `recalld serve`, reached as any client reaches it. What it keeps lies in a temporary folder
that only this user can enter, and goes with it. No setting of the user's own sidecar reaches it.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from recalld import Unavailable

from recalld_sidecar.config import ENV_PREFIX

START_SECONDS = 60
"""Longest wait for it to serve, on a busy machine."""
STOP_SECONDS = 60
"""Longest wait for it to end by itself; it drains for ten seconds at most."""

_POLL_SECONDS = 0.2
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


class SidecarError(Exception):
    """The sidecar did not start, or ended by itself; the message has the last thing it said."""


@contextmanager
def running_sidecar() -> Iterator[str]:
    """Run a sidecar and give its address. Must be called in the main thread. Raises SidecarError."""
    # By default these signals end Python at once, and nobody would stop the sidecar.
    handlers = {number: signal.signal(number, _leave) for number in _END_SIGNALS}
    try:
        with tempfile.TemporaryDirectory(prefix="recalld-demo-", ignore_cleanup_errors=True) as folder:
            yield from _run(Path(folder))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _run(folder: Path) -> Iterator[str]:
    address = f"unix:{folder / 'recalld.sock'}"
    log = folder / "log"
    command = [sys.executable, "-m", "recalld_sidecar", "serve", "--data-dir", str(folder / "data")]
    command += ["--listen", address, "--http", "off"]
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603  this very program, with arguments of our own
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=output,
            env={name: value for name, value in os.environ.items() if not name.startswith(ENV_PREFIX)},
        )
    try:
        _wait_until_serving(process, address, log)
        try:
            yield address
        except Unavailable:
            if process.poll() is None:
                raise
            raise SidecarError(_ended(process, log)) from None
    finally:
        process.terminate()
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        finally:
            # Does nothing once it has ended.
            process.kill()
            process.wait()


def _wait_until_serving(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    options = [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 100)]
    with grpc.insecure_channel(address, options) as channel:
        health: Any = health_pb2_grpc.HealthStub(channel)
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise SidecarError(_ended(process, log))
            with suppress(grpc.RpcError):
                health.Check(health_pb2.HealthCheckRequest(), timeout=_POLL_SECONDS, wait_for_ready=True)
                return
    raise SidecarError(f"the sidecar does not serve after {START_SECONDS} s")


def _ended(process: subprocess.Popen[bytes], log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return f"the sidecar ended with status {process.returncode}: {lines[-1] if lines else 'it said nothing'}"
