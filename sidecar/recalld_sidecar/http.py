"""A small HTTP server for metrics and probes, on the loopback.

It answers GET on the routes that it is given and nothing else, never reads a request's body, and shares no
thread with gRPC. It must never serve the content of a memory: it knows no callers.
"""

import logging
import socket
import socketserver
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from recalld_sidecar.config import TcpAddress

_log = logging.getLogger(__name__)

_IDLE_SECONDS = 10
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Reply:
    """What a route answers."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"


Routes = Mapping[str, Callable[[], Reply]]


class HttpError(Exception):
    """The HTTP server cannot start; the message names the address."""


class HttpServer:
    """Serves `routes` (path to reply) until it is stopped. Raises HttpError when it cannot bind."""

    def __init__(self, address: TcpAddress, routes: Routes) -> None:
        try:
            self._server = _Server(address, routes)
        except OSError as error:
            raise HttpError(f"cannot serve HTTP on {address}: {error.strerror}") from None
        self.address: Final = TcpAddress(address.host, self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": _POLL_SECONDS},
            name="recalld-http",
            daemon=True,
        )

    def start(self) -> None:
        """Serve in a thread of its own."""
        self._thread.start()

    def stop(self) -> None:
        """Stop listening; replies being written go on."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: TcpAddress, routes: Routes) -> None:
        self.routes = routes
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        super().__init__((address.host, address.port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer would ask the name service for the host's name here.
        socketserver.TCPServer.server_bind(self)
        host, port, *_ = self.server_address
        self.server_name = str(host)
        self.server_port = port

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        # A client that hangs up in the middle of a reply is no event.
        _log.debug("HTTP connection failed", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    server: _Server

    def version_string(self) -> str:
        return "recalld"

    def do_GET(self) -> None:
        route = self.server.routes.get(self.path.partition("?")[0])
        if route is None:
            self._send(Reply(HTTPStatus.NOT_FOUND, b"not found\n"))
            return
        try:
            reply = route()
        except Exception:  # noqa: BLE001  whatever a route raises, its caller gets an answer
            _log.exception("HTTP request failed", extra={"method": self.path})
            reply = Reply(HTTPStatus.INTERNAL_SERVER_ERROR, b"failed\n")
        self._send(reply)

    def _refuse(self) -> None:
        reply = Reply(HTTPStatus.METHOD_NOT_ALLOWED, b"only GET\n")
        # The body was not read, and must not be taken for the next request.
        self._send(reply, ("Allow", "GET"), ("Connection", "close"))

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _refuse  # noqa: N815

    def _send(self, reply: Reply, *headers: tuple[str, str]) -> None:
        self.send_response(reply.status)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Content-Length", str(len(reply.body)))
        self.send_header("Cache-Control", "no-store")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        _log.debug(format, *args)
