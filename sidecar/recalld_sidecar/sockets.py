"""Taking the path of a Unix socket without stepping on anybody.

Binding a socket replaces what lies at its path, so this module looks first: it removes a socket only when it
is ours and nobody answers on it, and it never removes anything else. It also refuses folders in which another
user could put a socket of his own in the place of ours.
"""

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal


class SocketError(Exception):
    """A socket's path cannot be taken; the message says why and what to do."""


@contextmanager
def claimed(path: Path, *, private: bool = False) -> Iterator[None]:
    """Make `path` free to be bound, and keep other sidecars from binding it while the context lasts.

    A missing folder is made with mode 0700. `private` demands that mode of a folder that is there already.
    After the context the socket, if it was bound, has mode 0600. Raises SocketError.
    """
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise SocketError(f"cannot use {folder} for a socket: {error.strerror}") from None
    try:
        _check_folder(folder, os.fstat(descriptor), private=private)
        # Two sidecars that start together would both find a stale socket, and the second would then remove
        # the fresh one of the first. A folder of someone else's could stay locked by anyone for ever.
        if os.fstat(descriptor).st_uid == os.getuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        state = examine(path)
        if state == "live":
            raise SocketError(
                f"another process serves unix:{path}: stop it, talk to it, or give another path"
            )
        if state == "stale":
            path.unlink()
        yield
        if path.is_socket():
            path.chmod(0o600)
    finally:
        os.close(descriptor)


def examine(path: Path) -> Literal["free", "stale", "live"]:
    """Say what lies at `path`: nothing, a socket of ours on which nobody answers, or one that is served.

    Raises SocketError for anything else.
    """
    try:
        status = path.lstat()
    except FileNotFoundError:
        return "free"
    except OSError as error:
        raise SocketError(f"cannot look at {path}: {error.strerror}") from None
    if not stat.S_ISSOCK(status.st_mode):
        raise SocketError(f"{path} is not a socket and was left alone: move it, or give another path")
    if status.st_uid != os.getuid():
        raise SocketError(f"{path} is the socket of another user and was left alone: give another path")
    return "live" if _is_live(path) else "stale"


def _check_folder(folder: Path, status: os.stat_result, *, private: bool) -> None:
    uid = os.getuid()
    mode = stat.S_IMODE(status.st_mode)
    if private and (folder.is_symlink() or status.st_uid != uid or mode & 0o077):
        raise SocketError(
            f"{folder} must be a folder of ours with mode 0700: remove it, or give another socket"
        )
    if status.st_uid not in (uid, 0):
        raise SocketError(
            f"{folder} belongs to another user, who could replace the socket: give another folder"
        )
    if mode & 0o022 and not mode & stat.S_ISVTX:
        raise SocketError(
            f"others can write to {folder} and could replace the socket: chmod it or give another folder",
        )


def _is_live(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            # A full backlog, a refused permission: somebody is there.
            return True
        return True
