"""Taking a socket's path: stale ones go, live and foreign ones stay."""

import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from recalld_sidecar.sockets import SocketError, claimed, examine


@pytest.fixture
def folder() -> Iterator[Path]:
    # pytest's own folders can be too long for a socket.
    with tempfile.TemporaryDirectory(prefix="recalld-test-") as name:
        yield Path(name)


def bind(path: Path) -> socket.socket:
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bound.bind(str(path))
    return bound


def leave_stale(path: Path) -> None:
    with bind(path) as bound:
        bound.listen()


def test_a_free_path_is_bound_for_its_owner_alone(folder: Path) -> None:
    path = folder / "new" / "deep" / "a.sock"
    with claimed(path), bind(path):
        pass
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_stale_socket_is_removed(folder: Path) -> None:
    path = folder / "a.sock"
    leave_stale(path)
    assert examine(path) == "stale"
    with claimed(path):
        assert not path.exists()


def test_a_live_socket_is_left_alone(folder: Path) -> None:
    path = folder / "a.sock"
    with bind(path) as server:
        server.listen()
        assert examine(path) == "live"
        with pytest.raises(SocketError, match=f"another process serves unix:{path}"), claimed(path):
            pytest.fail("the path was given away")
        assert path.is_socket()


def test_a_live_socket_with_a_full_backlog_is_left_alone(folder: Path) -> None:
    path = folder / "a.sock"
    waiting = []
    with bind(path) as server:
        server.listen(0)
        refused = 0
        while not refused:
            client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            client.setblocking(False)
            waiting.append(client)
            refused = client.connect_ex(str(path))
        assert examine(path) == "live"
    for client in waiting:
        client.close()


@pytest.mark.parametrize("kind", ["file", "folder", "link to a socket", "dangling link"])
def test_what_is_not_a_socket_is_left_alone(folder: Path, kind: str) -> None:
    path = folder / "a.sock"
    target = folder / "target.sock"
    match kind:
        case "file":
            path.write_text("precious")
        case "folder":
            path.mkdir()
        case "link to a socket":
            leave_stale(target)
            path.symlink_to(target)
        case _:
            path.symlink_to(target)
    with pytest.raises(SocketError, match="is not a socket and was left alone"), claimed(path):
        pytest.fail("the path was given away")
    assert os.path.lexists(path)


def test_a_folder_that_others_can_write_to_is_refused(folder: Path) -> None:
    folder.chmod(0o777)
    with pytest.raises(SocketError, match="others can write"), claimed(folder / "a.sock"):
        pytest.fail("the path was given away")


def test_a_sticky_folder_is_accepted(folder: Path) -> None:
    folder.chmod(0o1777)
    with claimed(folder / "a.sock"), bind(folder / "a.sock"):
        pass


@pytest.mark.parametrize("mode", [0o710, 0o701, 0o755, 0o1777])
def test_a_private_folder_must_be_closed(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    with pytest.raises(SocketError, match="with mode 0700"), claimed(folder / "a.sock", private=True):
        pytest.fail("the path was given away")


def test_a_private_folder_must_not_be_a_link(folder: Path) -> None:
    (folder / "real").mkdir(mode=0o700)
    (folder / "link").symlink_to("real")
    with (
        pytest.raises(SocketError, match="with mode 0700"),
        claimed(folder / "link" / "a.sock", private=True),
    ):
        pytest.fail("the path was given away")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make another user's folder")
def test_what_belongs_to_another_user_is_refused(folder: Path) -> None:
    theirs = folder / "theirs"
    theirs.mkdir(mode=0o755)
    leave_stale(folder / "a.sock")
    os.chown(theirs, 65534, 65534)
    os.chown(folder / "a.sock", 65534, 65534)
    with pytest.raises(SocketError, match="belongs to another user"), claimed(theirs / "a.sock"):
        pytest.fail("the path was given away")
    with pytest.raises(SocketError, match="socket of another user"), claimed(folder / "a.sock"):
        pytest.fail("the path was given away")
    assert (folder / "a.sock").is_socket()


def test_a_folder_that_cannot_be_made_is_named(folder: Path) -> None:
    (folder / "file").touch()
    with (
        pytest.raises(SocketError, match=f"cannot use {folder / 'file'}"),
        claimed(folder / "file" / "a.sock"),
    ):
        pytest.fail("the path was given away")


def test_one_claim_keeps_others_waiting(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    with claimed(folder / "a.sock"), pytest.raises(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(descriptor)
