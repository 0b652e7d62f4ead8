"""The sidecar opens no network connection: its whole life runs where there is no network, and none is tried.

Two witnesses, since each alone would miss something: without a network a connection that is tried and fails
might pass unnoticed, and a trace alone would not show that nothing needs one. A Unix socket is a file, so
that the test can talk to the sidecar in both cases.
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from recalld import Client, Item, Unavailable
from recalld.filters import field

from tests.support.sidecar import RunningSidecar, clean_environment
from tests.support.texts import sentences

SECONDS = 60
UNSHARE = ["unshare", "--map-root-user", "--net"]
"""Runs a command with a network of its own, in which there is nothing and even the loopback is down."""
STRACE = ["strace", "-D", "-f", "-qq", "-e", "trace=connect,bind,sendto,sendmsg,sendmmsg"]
"""Traces a command from outside (-D), so that the command keeps its place as our child."""

CONNECT = (
    "import socket; udp = socket.socket(type=socket.SOCK_DGRAM); udp.sendto(b'x', ('127.0.0.1', 9)); "
    "tcp = socket.socket(); tcp.setblocking(False); tcp.connect_ex(('127.0.0.1', 9))"
)


@contextmanager
def serve(wrapper: Sequence[str], folder: Path) -> Iterator[RunningSidecar]:
    """Run a sidecar as the child of a wrapper that becomes it, with nothing but a Unix socket."""
    socket = folder / "s"
    command = [*wrapper, sys.executable, "-m", "recalld_sidecar", "serve", "--data-dir", str(folder / "data")]
    process = subprocess.Popen(
        [*command, "--listen", f"unix:{socket}", "--http", "off", "--index-after", "200"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=clean_environment(),
    )
    sidecar = RunningSidecar(process, folder / "data")
    try:
        sidecar.wait_until_serving()
        yield sidecar
    finally:
        sidecar.stop()


def live_through(sidecar: RunningSidecar) -> None:
    """Make every kind of call, build an index, and drain."""
    with Client(sidecar.address, timeout=SECONDS) as client:
        alice = client.namespace("acme", "user", "alice")
        receipt = alice.write("Alice prefers aisle seats.", key="seat", kind="preference")
        alice.write_many([Item(text) for text in sentences(400, seed=5)])
        assert alice.search("which seat does she like?")[0].id == receipt.id
        assert alice.search("seat", filter=field("kind").equals("preference"))[0].id == receipt.id
        assert alice.get(keys=["seat"])[0].content == "Alice prefers aisle seats."
        assert "aisle" in alice.brief("book a seat").text
        assert client.count_tokens(["How many?"]).total > 0
        assert alice.stats().memories == client.stats().memories == 401
        assert alice.delete(keys=["seat"]).deleted == 1
    assert sidecar.stop() == 0
    with Client(sidecar.address, timeout=SECONDS, retries=0) as client, pytest.raises(Unavailable):
        client.stats()


def skip_unless_it_runs(wrapper: Sequence[str]) -> None:
    if shutil.which(wrapper[0]) is None:
        pytest.skip(f"{wrapper[0]} is not installed")
    probe = subprocess.run([*wrapper, "true"], capture_output=True, check=False, timeout=SECONDS)
    if probe.returncode != 0:
        pytest.skip(f"this machine does not permit `{' '.join(wrapper)}`")


def network_calls(trace: Path) -> list[str]:
    """Calls that name an address of a network."""
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line for line in lines if re.search(r"\{sa_family=AF_(?!UNIX)", line)]


def test_a_whole_life_without_a_network(tmp_path: Path) -> None:
    skip_unless_it_runs(UNSHARE)
    refused = subprocess.run(
        [*UNSHARE, sys.executable, "-c", CONNECT],
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert "Network is unreachable" in refused.stderr
    with serve(UNSHARE, tmp_path) as sidecar:
        live_through(sidecar)


def test_no_connection_is_tried(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    wrapper = [*STRACE, "-o", str(trace)]
    skip_unless_it_runs(wrapper)
    subprocess.run([*wrapper, sys.executable, "-c", CONNECT], check=True, timeout=SECONDS)
    assert len(network_calls(trace)) == 2
    with serve(wrapper, tmp_path) as sidecar:
        live_through(sidecar)
    assert network_calls(trace) == []
    # The trace did see what the sidecar did.
    assert "sa_family=AF_UNIX" in trace.read_text(encoding="utf-8", errors="replace")
