"""The engine in the client's process: who may open a directory, and what becomes of it."""

import asyncio
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import recalld
from recalld import AsyncClient, Client

from tests.support.sidecar import running_sidecar

SECONDS = 60
SEAT = "Alice prefers aisle seats."


def python(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_another_process_is_told_where_the_store_is_served(tmp_path: Path) -> None:
    with running_sidecar(tmp_path / "data") as sidecar:
        with Client(f"dir:{sidecar.data_dir}") as client, pytest.raises(recalld.Unavailable) as caught:
            client.stats()
        assert sidecar.address in str(caught.value)
        assert str(sidecar.pid) in str(caught.value)
        with Client(sidecar.address, timeout=SECONDS) as other:
            assert other.stats().memories == 0


def test_a_sidecar_is_told_which_process_has_the_store(tmp_path: Path) -> None:
    with Client(f"dir:{tmp_path / 'data'}", timeout=SECONDS) as client:
        client.stats()
        with pytest.raises(recalld.Unavailable, match=r"is in use by process \d+"):
            recalld.spawn(tmp_path / "data")


async def test_clients_of_a_process_share_the_store(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to("data")
    with Client(f"dir:{tmp_path / 'data'}", timeout=SECONDS) as first:
        token = first.namespace("a").write(SEAT, key="seat").token
        async with AsyncClient(f"dir:{tmp_path / 'link'}", timeout=SECONDS) as second:
            details = await second.namespace("a").get(keys=["seat"], at_least_as_fresh=token)
            assert details[0].content == SEAT
            await second.close()
        # It is still open for the first.
        assert first.stats().memories == 1
    # And for nobody now.
    with recalld.spawn(tmp_path / "data") as sidecar, Client(sidecar.address, timeout=SECONDS) as client:
        assert client.stats().memories == 1


def test_a_closed_client_opens_nothing(tmp_path: Path) -> None:
    client = Client(f"dir:{tmp_path / 'data'}")
    client.close()
    with pytest.raises(RuntimeError, match="closed"):
        client.stats()
    assert not (tmp_path / "data").exists()


def test_a_directory_that_cannot_be_opened_is_said_and_tried_again(tmp_path: Path) -> None:
    with Client(f"dir:{tmp_path / 'missing' / 'data'}", timeout=SECONDS) as client:
        with pytest.raises(recalld.RecalldError, match=re.escape(str(tmp_path / "missing"))):
            client.stats()
        (tmp_path / "missing").mkdir()
        assert client.stats().memories == 0


@pytest.mark.parametrize("made", [Client, AsyncClient])
@pytest.mark.parametrize(("argument", "value"), [("tls", True), ("api_key", "key")])
def test_what_is_for_a_connection_is_refused(made: Any, argument: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(recalld.InvalidArgument) as caught:
        made(f"dir:{tmp_path}", **{argument: value})
    assert caught.value.field == argument


@pytest.mark.parametrize("missing", ["recalld_sidecar._core", "recalld_sidecar.config"])
def test_without_the_sidecars_package_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with (
        Client(f"dir:{tmp_path}") as client,
        pytest.raises(ModuleNotFoundError, match="pip install recalld-sidecar"),
    ):
        client.stats()


def test_a_fork_is_told_that_it_has_no_store(tmp_path: Path) -> None:
    program = """
import asyncio, os, sys, recalld
client = recalld.Client(f"dir:{sys.argv[1]}", timeout=60)
client.namespace("a").write("before")
stream = client.namespace("a").search_stream()
stream.submit("before").result()
loop, later = asyncio.new_event_loop(), recalld.AsyncClient(f"dir:{sys.argv[1]}", timeout=60)
loop.run_until_complete(later.stats())
child = os.fork()
if child == 0:
    another = recalld.Client(f"dir:{sys.argv[1]}")
    asks = (
        client.stats,
        another.stats,
        lambda: stream.submit("before").result(),
        lambda: asyncio.run(later.stats()),
    )
    for ask in asks:
        try:
            ask()
        except RuntimeError as error:
            print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(client.stats().memories)
loop.run_until_complete(later.close())
client.close()
"""
    ran = python(program, tmp_path / "data")
    assert ran.returncode == 0, ran.stderr
    *told, count = ran.stdout.splitlines()
    assert ["forked" in message for message in told] == [True] * 4
    assert count == "1"


def test_closing_a_client_ends_its_streams(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with Client(f"dir:{tmp_path / 'data'}", timeout=SECONDS) as client:
        assert client.namespace("a").search_stream().submit("seat").result().hits == ()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread.name


async def test_closing_an_asyncio_client_ends_its_streams(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with AsyncClient(f"dir:{tmp_path / 'data'}", timeout=SECONDS) as client:
        assert (await client.namespace("a").search_stream().submit("seat")).hits == ()
    if left := asyncio.all_tasks() - before:
        assert not (await asyncio.wait(left, timeout=10))[1]


def test_a_process_may_end_without_closing(tmp_path: Path) -> None:
    program = """
import sys, recalld
client = recalld.Client(f"dir:{sys.argv[1]}", timeout=60)
stream = client.namespace("a").search_stream()
client.namespace("a").write("kept", key="k")
stream.submit("kept").result()
"""
    ran = python(program, tmp_path / "data")
    assert (ran.returncode, ran.stderr) == (0, "")
    with Client(f"dir:{tmp_path / 'data'}", timeout=SECONDS) as client:
        assert client.namespace("a").get(keys=["k"])[0].content == "kept"


def test_importing_the_client_imports_no_sidecar() -> None:
    program = "import recalld, sys; print([name for name in sys.modules if name.startswith('recalld_s')])"
    assert python(program).stdout.strip() == "[]"
