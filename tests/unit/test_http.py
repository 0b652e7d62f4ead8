"""The HTTP server: routes, refusals, and the loopback."""

import http.client
import socket
from collections.abc import Iterator
from http import HTTPStatus

import pytest
from recalld_sidecar.config import TcpAddress
from recalld_sidecar.http import HttpError, HttpServer, Reply


def fail() -> Reply:
    raise ZeroDivisionError


@pytest.fixture
def server() -> Iterator[HttpServer]:
    routes = {
        "/text": lambda: Reply(HTTPStatus.OK, "gr\u00fcn".encode()),
        "/down": lambda: Reply(HTTPStatus.SERVICE_UNAVAILABLE, b"", "application/x-empty"),
        "/fail": fail,
    }
    made = HttpServer(TcpAddress("127.0.0.1", 0), routes)
    made.start()
    yield made
    made.stop()


def ask(
    server: HttpServer, method: str, path: str, body: bytes | None = None
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection(server.address.host, server.address.port, timeout=30)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, response.read(), dict(response.getheaders())
    finally:
        connection.close()


def test_a_route_answers(server: HttpServer) -> None:
    status, body, headers = ask(server, "GET", "/text?x=1")
    assert (status, body) == (200, "gr\u00fcn".encode())
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["Content-Length"] == "5"
    assert headers["Server"] == "recalld"


def test_a_route_chooses_status_and_type(server: HttpServer) -> None:
    status, body, headers = ask(server, "GET", "/down")
    assert (status, body, headers["Content-Type"]) == (503, b"", "application/x-empty")


@pytest.mark.parametrize("path", ["/", "/text/", "/TEXT", "/..", "text"])
def test_other_paths_are_not_found(server: HttpServer, path: str) -> None:
    assert ask(server, "GET", path)[0] == 404


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_get_is_allowed(server: HttpServer, method: str) -> None:
    status, body, headers = ask(server, method, "/text", b"GET /text HTTP/1.1\r\n\r\n")
    assert (status, headers["Allow"]) == (405, "GET")
    assert body == (b"" if method == "HEAD" else b"only GET\n")


def test_a_body_is_not_taken_for_a_request(server: HttpServer) -> None:
    with socket.create_connection((server.address.host, server.address.port), timeout=30) as raw:
        hidden = b"GET /text HTTP/1.1\r\nHost: a\r\n\r\n"
        head = f"POST /text HTTP/1.1\r\nHost: a\r\nContent-Length: {len(hidden)}\r\n\r\n".encode()
        raw.sendall(head + hidden)
        raw.shutdown(socket.SHUT_WR)
        answer = raw.makefile("rb").read()
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_route_that_fails_tells_nothing(server: HttpServer) -> None:
    assert ask(server, "GET", "/fail")[:2] == (500, b"failed\n")
    assert ask(server, "GET", "/text")[0] == 200


def test_a_connection_carries_several_requests(server: HttpServer) -> None:
    connection = http.client.HTTPConnection(server.address.host, server.address.port, timeout=30)
    for _ in range(3):
        connection.request("GET", "/text")
        assert connection.getresponse().read()
    connection.close()


def test_ipv6() -> None:
    try:
        server = HttpServer(TcpAddress("::1", 0), {})
    except HttpError:
        pytest.skip("no IPv6 on this machine")
    server.start()
    try:
        assert ask(server, "GET", "/")[0] == 404
    finally:
        server.stop()


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(HttpError, match=f"127.0.0.1:{port}: Address already in use"):
            HttpServer(TcpAddress("127.0.0.1", port), {})


def test_a_server_that_was_not_started_gives_its_port_back() -> None:
    server = HttpServer(TcpAddress("127.0.0.1", 0), {})
    server.stop()
    HttpServer(server.address, {}).stop()
