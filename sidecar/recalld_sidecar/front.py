"""The native front with grpcio behind it: one server to those who start and stop it.

The front answers the data plane in Rust and calls the handlers of the control plane; what else gRPC needs
(health, reflection, methods that nobody knows) it passes to grpcio on a socket of our own. This module binds,
starts and stops the two in the right order and must never look at a call.
"""

import os
import shutil
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from recalld_sidecar._core import Core, Front
from recalld_sidecar.access import logged
from recalld_sidecar.config import TcpAddress, UnixAddress, private_runtime_folder
from recalld_sidecar.server import GrpcServer, ServerError
from recalld_sidecar.services import Handler
from recalld_sidecar.sockets import claimed

_LATER_SECONDS = 1.0
"""How much longer grpcio drains: what the front cuts off must not look finished because grpcio did so just then."""


class FrontServer:
    """Serves a core and a registry of handlers through the native front.

    `grpc` must be behind a front and know all methods; `folder` is made, is for its private socket, and is
    removed at the end. Without a core, and without a handler for it, a method is answered by `grpc`.
    """

    def __init__(
        self,
        grpc: GrpcServer,
        core: Core | None,
        control: Mapping[str, Handler],
        *,
        folder: Path,
        max_in_flight: int,
        log_level: str = "info",
        log_format: str = "json",
    ) -> None:
        """Raise ServerError when the folder cannot be used."""
        self._grpc = grpc
        self._bound: list[UnixAddress] = []
        with ExitStack() as undo:
            # The folder's own path may be longer than that of a socket can be.
            socket = f"/proc/self/fd/{_opened(folder, undo)}/grpc.sock"
            grpc.listen_privately(f"unix:{socket}")
            self._front = Front(
                socket,
                core=core,
                control={method: logged(method, handler) for method, handler in control.items()},
                max_in_flight=max_in_flight,
                log_level=log_level,
                log_format=log_format,
            )
            self._folder = undo.pop_all()

    def listen(self, address: UnixAddress | TcpAddress) -> UnixAddress | TcpAddress:
        """As Server says."""
        try:
            if isinstance(address, TcpAddress):
                return TcpAddress(address.host, self._front.listen_tcp(address.host, address.port))
            with claimed(address.path, private=address.path.parent == private_runtime_folder()):
                self._front.listen_unix(str(address.path))
                self._bound.append(address)
        except OSError as error:
            raise ServerError(f"cannot listen on {address}: {error.strerror or error}") from None
        return address

    def close(self) -> None:
        """As Server says."""
        self._take_no_more()
        self._folder.close()

    def _take_no_more(self) -> None:
        self._front.drain()
        while self._bound:
            self._bound.pop().path.unlink(missing_ok=True)

    def start(self) -> None:
        """As Server says."""
        self._grpc.start()
        self._front.start()

    def stop(self, drain_seconds: float) -> bool:
        """As Server says."""
        deadline = time.monotonic() + drain_seconds
        self._grpc.say_not_serving()
        self._take_no_more()
        wait_for_grpc = self._grpc.drain(drain_seconds + _LATER_SECONDS)
        drained = self._front.stop(max(deadline - time.monotonic(), 0))
        grpc_drained = wait_for_grpc()
        self._folder.close()
        return drained and grpc_drained


def _opened(folder: Path, undo: ExitStack) -> int:
    """Make the folder of the private socket; a descriptor of it. `undo` closes and removes it."""
    # Whoever was here before is gone: the data directory has one process.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.mkdir(mode=0o700)
        undo.callback(shutil.rmtree, folder, ignore_errors=True)
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise ServerError(f"cannot use {folder} for a socket: {error.strerror}") from None
    undo.callback(os.close, descriptor)
    return descriptor
