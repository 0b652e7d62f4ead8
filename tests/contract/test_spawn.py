"""A sidecar as a child: it starts or says why not, and never outlives its parent."""

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import recalld
from recalld import AsyncClient, Client

from tests.support.store import wait_until

SECONDS = 60


def test_it_serves_until_the_block_ends(tmp_path: Path) -> None:
    with recalld.spawn(tmp_path / "data") as sidecar:
        socket = Path(sidecar.address.removeprefix("unix:"))
        assert socket.parent.stat().st_mode & 0o777 == 0o700
        with Client(sidecar.address, timeout=SECONDS) as client:
            client.namespace("a").write("kept", key="k")
        assert psutil.pid_exists(sidecar.pid)
    assert not psutil.pid_exists(sidecar.pid)
    assert not socket.parent.exists()
    sidecar.close()
    with recalld.spawn(str(tmp_path / "data")) as again, Client(again.address, timeout=SECONDS) as client:
        assert client.namespace("a").get(keys=["k"])[0].content == "kept"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_it_ends_with_its_parent(tmp_path: Path, number: int) -> None:
    program = """
import signal, sys, recalld
sidecar = recalld.spawn(sys.argv[1])
print(sidecar.pid, sidecar.address, flush=True)
signal.pause()
"""
    command = [sys.executable, "-c", program, str(tmp_path / "data")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid, address = parent.stdout.readline().split()
        child = psutil.Process(int(pid))
        assert child.is_running()
        parent.send_signal(number)
    wait_until(lambda: not child.is_running(), "the sidecar ends")
    wait_until(lambda: not Path(address.removeprefix("unix:")).parent.exists(), "its folder is gone")


def test_a_fork_of_its_parent_neither_stops_nor_keeps_it(tmp_path: Path) -> None:
    program = """
import os, signal, sys, recalld
sidecar = recalld.spawn(sys.argv[1])
ready, told = os.pipe()
fork = os.fork()
if fork == 0:
    sidecar.close()
    os.write(told, b"closed")
    sys.stdin.read()
    os._exit(0)
os.read(ready, 6)
with recalld.Client(sidecar.address, timeout=60) as client:
    client.stats()
print(fork, sidecar.pid, flush=True)
signal.pause()
"""
    command = [sys.executable, "-c", program, str(tmp_path / "data")]
    # The fork waits for the end of its input, which it shares with the parent.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        fork, sidecar = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
        wait_until(lambda: not sidecar.is_running(), "the sidecar ends")
        assert fork.is_running()


def test_ctrl_c_in_a_terminal_is_for_the_parent(tmp_path: Path) -> None:
    with recalld.spawn(tmp_path / "data") as sidecar:
        assert os.getpgid(sidecar.pid) != os.getpgid(0)


@pytest.mark.parametrize(
    ("data_dir", "settings"), [(7, {}), ("data", {"drain_seconds": "soon"}), ("data", {"listen": "x"})]
)
def test_what_cannot_be_started_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Any, settings: dict[str, Any]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises((TypeError, recalld.InvalidArgument)):
        recalld.spawn(data_dir, **settings)
    assert list(tmp_path.iterdir()) == []


def test_a_sidecar_that_does_not_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(recalld.Unavailable, match="does not exist: create it"):
        recalld.spawn(tmp_path / "missing" / "data")
    with pytest.raises(recalld.Unavailable, match="max_in_flight"):
        recalld.spawn(tmp_path / "data", max_in_flight=0)
    with pytest.raises(recalld.Unavailable, match="no-such-setting"):
        recalld.spawn(tmp_path / "data", no_such_setting=1)


def test_settings_are_those_of_the_configuration(tmp_path: Path) -> None:
    tokenizer = tmp_path / "missing.json"
    with pytest.raises(recalld.Unavailable, match=r"missing\.json"):
        recalld.spawn(tmp_path / "data", tokenizers={"mine": tokenizer})
    large = [recalld.Item(f"{number}{'x' * 1_000_000}") for number in range(12)]
    with (
        recalld.spawn(tmp_path / "data", max_store_bytes="8MiB", http="127.0.0.1:0") as sidecar,
        Client(sidecar.address, timeout=SECONDS) as client,
        pytest.raises(recalld.ResourceExhausted, match="STORE_FULL"),
    ):
        client.namespace("a").write_many(large)
    with pytest.raises(recalld.InvalidArgument) as caught:
        recalld.spawn(tmp_path / "data", listen="unix:/run/x")
    assert caught.value.field == "listen"


def test_its_log_is_the_parents(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "recalld.sidecar"), recalld.spawn(tmp_path / "data"):
        pass
    lines = [(record.levelname, record.message) for record in caplog.records]
    assert any(level == "INFO" and '"serving"' in message for level, message in lines)
    assert any('"stopped"' in message for _, message in lines)


def test_a_sidecar_that_does_not_end_is_killed(tmp_path: Path) -> None:
    sidecar = recalld.spawn(tmp_path / "data", drain_seconds=0)
    sidecar._stop_seconds = 0.1
    os.kill(sidecar.pid, signal.SIGSTOP)
    sidecar.close()
    assert not psutil.pid_exists(sidecar.pid)


def test_a_sidecar_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    with pytest.raises(recalld.DeadlineExceeded, match="too long to start"):
        recalld.spawn(tmp_path / "data", start_timeout=0)
    with Client(f"dir:{tmp_path / 'data'}", timeout=SECONDS) as client:
        assert client.stats().memories == 0


def test_without_the_sidecars_package_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recalld._spawn.find_spec", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="pip install recalld-sidecar"):
        recalld.spawn(tmp_path / "data")


async def test_asyncio_reaches_it_too(tmp_path: Path) -> None:
    with recalld.spawn(tmp_path / "data") as sidecar:
        async with AsyncClient(sidecar.address, timeout=SECONDS) as client:
            assert (await client.stats()).memories == 0
