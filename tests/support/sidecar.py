"""A real sidecar process for tests: started, waited for, stopped, with its log at hand."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

START_SECONDS = 60
"""Longest wait for a sidecar to serve, on a busy machine and with checks compiled in."""
STOP_SECONDS = 60
"""Longest wait for a sidecar to end."""

FRONTS = ("native", "python")
FRONT_VARIABLE = "RECALLD_TEST_FRONT"
"""Names the front of every sidecar that a test runs; `native` when it is not set."""


class RunningSidecar:
    """A `recalld serve` process that answers."""

    def __init__(self, process: subprocess.Popen[str], data_dir: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self._lines: list[str] = []
        self._ended = False
        self._written = threading.Condition()
        self._serving: dict[str, Any] = {}
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._written:
                self._lines.append(line)
                self._written.notify_all()
        with self._written:
            self._ended = True
            self._written.notify_all()

    def wait_for_log(self, message: str) -> dict[str, Any]:
        """Wait for a log line with this message and return it."""

        def settled() -> bool:
            return self._ended or any(line.get("message") == message for line in self.logs())

        with self._written:
            assert self._written.wait_for(settled, START_SECONDS), f"no {message!r}: {self.output()}"
        found = [line for line in self.logs() if line.get("message") == message]
        assert found, f"the sidecar ended without {message!r}: {self.output()}"
        return found[-1]

    def wait_until_serving(self) -> None:
        """Wait for the health service to say SERVING."""
        self._serving = self.wait_for_log("serving")
        with connect(self.address) as channel:
            check = channel.unary_unary(
                "/grpc.health.v1.Health/Check",
                request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
                response_deserializer=health_pb2.HealthCheckResponse.FromString,
            )
            answer = check(health_pb2.HealthCheckRequest(), timeout=START_SECONDS, wait_for_ready=True)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def address(self) -> str:
        """The first address that it listens on, `unix:PATH` unless the flags say otherwise."""
        return str(self._serving["listen"][0])

    @property
    def addresses(self) -> list[str]:
        """All addresses, with the ports that were chosen."""
        return list(self._serving["listen"])

    @property
    def http(self) -> str:
        """Base URL of the HTTP server."""
        return f"http://{self._serving['http']}"

    @property
    def own_bytes(self) -> int:
        """Its resident memory without mapped files, which the system takes back at need."""
        status = Path(f"/proc/{self.pid}/status").read_text("ascii", "replace")
        (kilobytes,) = (line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:"))
        return int(kilobytes) * 1024

    @property
    def file_bytes(self) -> int:
        """The length of its data file."""
        return (self.data_dir / "data.mdb").stat().st_size

    def output(self) -> str:
        """What it has written to standard error so far."""
        return "".join(self._lines)

    def logs(self) -> list[dict[str, Any]]:
        """The lines of its log so far."""
        return [json.loads(line) for line in list(self._lines) if line.startswith("{")]

    def send(self, number: int) -> None:
        """Send a signal and do not wait."""
        self.process.send_signal(number)

    def wait(self) -> int:
        """Wait for its end and return the exit status, negative for a signal."""
        status = self.process.wait(STOP_SECONDS)
        self._reader.join(STOP_SECONDS)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return status

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end and return the exit status."""
        if self.process.poll() is None:
            self.send(number)
        return self.wait()


@contextmanager
def running_sidecar(
    data_dir: Path | None = None,
    *,
    flags: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> Iterator[RunningSidecar]:
    """Run a sidecar on `data_dir` (default: a fresh one) with a Unix socket and an HTTP port of its own.

    `flags` come after those and so can add `--listen` addresses or replace other settings. On leaving, the
    process is stopped if the test has not done so.
    """
    folder = Path(tempfile.mkdtemp(prefix="recalld-test-"))
    try:
        data_dir = data_dir or folder / "data"
        command = [sys.executable, "-m", "recalld_sidecar", "serve", "--data-dir", str(data_dir)]
        command += ["--front", os.environ.get(FRONT_VARIABLE, "native")]
        command += ["--listen", f"unix:{folder / 'recalld.sock'}", "--http", "127.0.0.1:0", *flags]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment() | dict(environment or {}),
        )
        sidecar = RunningSidecar(process, data_dir)
        try:
            sidecar.wait_until_serving()
            yield sidecar
        finally:
            try:
                sidecar.stop()
            except subprocess.TimeoutExpired:
                process.kill()
                sidecar.wait()
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def connect(address: str, *options: tuple[str, Any]) -> Any:
    """Open a channel as any user would; its type says nothing of what is sent on it, so tests have none."""
    return grpc.insecure_channel(address, options=options)


def clean_environment() -> dict[str, str]:
    """This process's environment without settings of recalld."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RECALLD_")}


def run_cli(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run the `recalld` command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "recalld_sidecar", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=STOP_SECONDS,
        env=clean_environment(),
        check=False,
    )
