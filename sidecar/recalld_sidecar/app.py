"""The composition root: a configuration becomes a running sidecar, and a signal becomes its orderly end.

This is the only module that knows all the others. Nothing here may fork: gRPC has threads.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack
from http import HTTPStatus
from typing import Final

from prometheus_client import generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from recalld_sidecar import logs, metrics
from recalld_sidecar._core import Core
from recalld_sidecar.config import Config, TcpAddress, UnixAddress
from recalld_sidecar.front import FrontServer
from recalld_sidecar.http import HttpServer, Reply, Routes
from recalld_sidecar.server import GrpcServer, Server
from recalld_sidecar.services import Handler
from recalld_sidecar.services.admin import AdminService

_log = logging.getLogger(__name__)

_CLOSE_SECONDS = 1.0
"""Least time to close the directory, when draining has taken all of its own."""

_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Sidecar:
    """A data directory, opened and served."""

    def __init__(self, config: Config) -> None:
        """Open the directory and take the addresses.

        Raises CoreError, SocketError, ServerError or HttpError, having given back what was taken.
        """
        self._drain_seconds = config.drain_seconds
        self._serving = False
        with ExitStack() as undo:
            self._core = _open_core(config)
            undo.callback(self._core.close)
            handlers, control = _handlers(self._core, config.slo_ms / 1000)
            self._registry = metrics.registry(metrics.SidecarCollector(self._core, control))
            self._server = _server(config, self._core, handlers)
            undo.callback(self._server.close)
            self.listen: Final = [self._server.listen(address) for address in config.listen]
            """Where gRPC is served, with the ports that were chosen."""
            self._http = HttpServer(config.http, self._routes()) if config.http else None
            self.http: Final = self._http.address if self._http else None
            """Where HTTP is served, with the port that was chosen."""
            undo.pop_all()

    def start(self) -> None:
        """Begin to answer."""
        self._server.start()
        self._serving = True
        if self._http:
            self._http.start()

    def stop(self) -> bool:
        """Drain: take no more calls, let those in hand finish, and close.

        False when some were cancelled, or work so long that the directory is not closed yet. They will not be
        answered, and what was acknowledged is durable: end the process.
        """
        self._serving = False
        _log.info("draining")
        deadline = time.monotonic() + self._drain_seconds
        drained = self._server.stop(self._drain_seconds)
        if self._http:
            self._http.stop()
        # Closing waits for every call that is in the core, also for those whose callers have gone.
        closing = threading.Thread(target=self._core.close, name="recalld-close", daemon=True)
        closing.start()
        closing.join(max(deadline - time.monotonic(), _CLOSE_SECONDS))
        return drained and not closing.is_alive()

    def _routes(self) -> Routes:
        return {"/metrics": self._metrics, "/healthz": _alive, "/readyz": self._ready}

    def _metrics(self) -> Reply:
        return Reply(HTTPStatus.OK, generate_latest(self._registry), CONTENT_TYPE_PLAIN_0_0_4)

    def _ready(self) -> Reply:
        if self._serving:
            return Reply(HTTPStatus.OK, b"serving\n")
        return Reply(HTTPStatus.SERVICE_UNAVAILABLE, b"not serving\n")


def run(config: Config) -> int:
    """Serve until SIGTERM or SIGINT, drain, and return the exit status; a second signal ends it at once.

    Raises what `Sidecar` raises when it cannot start.
    """
    logs.configure(config.log_level, config.log_format)
    # What the sidecar writes is for its user alone.
    os.umask(0o077)
    # Blocked before any thread is there, so that every thread inherits it and only `sigwait` sees a signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    sidecar = Sidecar(config)
    sidecar.start()
    _log.info(
        "serving",
        extra={
            "pid": os.getpid(),
            "listen": [str(address) for address in sidecar.listen],
            "http": str(sidecar.http) if sidecar.http else "off",
            "data_dir": str(config.data_dir),
        },
    )
    received = signal.sigwait(_STOP_SIGNALS)
    for number in _STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP_SIGNALS)
    _log.info("received %s", signal.Signals(received).name)
    if sidecar.stop():
        _log.info("stopped")
        return 0
    _log.warning("stopped; calls that took longer than drain_seconds were abandoned")
    logging.shutdown()
    # The interpreter would wait for the threads that still work on them.
    os._exit(0)


def _open_core(config: Config) -> Core:
    if "data_dir" not in config.model_fields_set:
        # The core makes the directory itself but not its parents: one that is missing is a mistake or a disk
        # that is not mounted, unless it is on the way to our own default.
        config.data_dir.parent.mkdir(parents=True, exist_ok=True)
    return Core(
        str(config.data_dir),
        str(config.model_dir),
        address=_reachable_at(config.listen),
        max_store_bytes=config.max_store_bytes,
        max_in_flight=config.max_in_flight,
        max_queued_writes=config.max_queued_writes,
        index_after=config.index_after,
        max_index_bytes=config.max_index_bytes,
        slo_seconds=config.slo_ms / 1000,
        tokenizers={name: str(path) for name, path in config.tokenizers.items()},
    )


def _reachable_at(listen: tuple[UnixAddress | TcpAddress, ...]) -> str:
    """Choose the address that a second process on the directory is told; empty while none has a port yet."""
    known = [address for address in listen if isinstance(address, UnixAddress) or address.port]
    known.sort(key=lambda address: isinstance(address, TcpAddress))
    return str(known[0]) if known else ""


def _handlers(core: Core, slo_seconds: float) -> tuple[dict[str, Handler], list[metrics.ControlCounts]]:
    """Make the registry of everything that is served, and the counts of what Python answers."""
    handlers: dict[str, Handler] = dict.fromkeys(core.methods(), core.dispatch)
    control = []
    for method, handler in AdminService(core).handlers().items():
        counts = metrics.ControlCounts(method, slo_seconds)
        handlers[method] = counts.measured(handler)
        control.append(counts)
    return handlers, control


def _server(config: Config, core: Core, handlers: Mapping[str, Handler]) -> Server:
    """Make what serves gRPC: the native front with grpcio behind it, or grpcio alone."""
    is_native = config.front == "native"
    streams = dict.fromkeys(core.stream_methods(), core.dispatch)
    grpc = GrpcServer(handlers, streams, max_in_flight=config.max_in_flight, is_behind_front=is_native)
    if not is_native:
        return grpc
    return FrontServer(
        grpc,
        core,
        {method: handler for method, handler in handlers.items() if method not in core.methods()},
        folder=config.data_dir / "front",
        max_in_flight=config.max_in_flight,
        log_level=config.log_level,
        log_format=config.log_format,
    )


def _alive() -> Reply:
    return Reply(HTTPStatus.OK, b"alive\n")
