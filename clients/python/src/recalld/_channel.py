"""How a client reaches a sidecar: what an address may be, the channel's options, TLS, and a key.

Both clients take all of it from here. This module must never open a connection, and never let a key travel
where others can read it.
"""

import ipaddress
import re
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import grpc

from ._arguments import Tls
from ._errors import invalid
from ._version import __version__

# A batch may be 16 MiB, and an answer to Get more; gRPC's own limit of 4 MiB would refuse both.
_MOST_BYTES = 32 * 1024 * 1024

_UNIX_SOCKET = re.compile(r"unix:(///|/|)[^/].*")
# Neither part may hold what would make it a URI: gRPC takes an unknown scheme for a host and looks it up.
_HOST_AND_PORT = re.compile(r"([^\s/:\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")

# What a header may hold, and no space: that would end the key.
_VISIBLE_ASCII = re.compile(r"[!-~]+")

Options = list[tuple[str, str | int]]


@dataclass(frozen=True, slots=True)
class Connection:
    """What a channel to a sidecar is made of, and what each call on it carries."""

    target: str
    options: Options
    credentials: grpc.ChannelCredentials | None
    """None: not encrypted."""
    metadata: tuple[tuple[str, str], ...] = field(repr=False)
    """Headers of each call; a key is among them, so they are never shown."""

    def channel(self, interface: Any) -> Any:
        """Make a channel, which connects with its first call. `interface` is `grpc` or `grpc.aio`."""
        if self.credentials is None:
            return interface.insecure_channel(self.target, options=self.options)
        return interface.secure_channel(self.target, self.credentials, options=self.options)


def connection(target: str, *, tls: bool | Tls, api_key: str | None) -> Connection:
    """Check the arguments of a client and say how it connects; InvalidArgument if they cannot be used."""
    options = channel_options(target)
    credentials = _credentials(tls)
    if api_key is None:
        return Connection(target, options, credentials, ())
    # The message must not repeat what may be most of a key.
    if not isinstance(api_key, str) or not _VISIBLE_ASCII.fullmatch(api_key):
        raise invalid("api_key", "must be visible ASCII characters without spaces")
    if credentials is None and not _stays_on_this_host(target):
        raise invalid("api_key", f"would be sent to {target} for all to read: connect with tls")
    return Connection(target, options, credentials, (("authorization", f"Bearer {api_key}"),))


def channel_options(target: str) -> Options:
    """Check a target and give the channel's options for it.

    A target is `unix:/path`, `unix:///path`, `unix:relative/path` or `host:port`; InvalidArgument if not.
    """
    options: Options = [
        ("grpc.max_send_message_length", _MOST_BYTES),
        ("grpc.max_receive_message_length", _MOST_BYTES),
        ("grpc.primary_user_agent", f"recalld-python/{__version__}"),
        # A sidecar is beside its agents: a proxy for the web is never the way to it.
        ("grpc.enable_http_proxy", 0),
        # By default a lost connection is tried again after a second, later after minutes, and calls fail
        # meanwhile. On one host it costs nothing to try sooner.
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 1000),
    ]
    if _UNIX_SOCKET.fullmatch(target):
        # gRPC would send the socket's path, which HTTP/2 servers need not take for an authority.
        options.append(("grpc.default_authority", "localhost"))
    elif not _HOST_AND_PORT.fullmatch(target):
        raise invalid("target", f"must be unix:/path, host:port or dir:/path, not {target!r}")
    return options


def _credentials(tls: bool | Tls) -> grpc.ChannelCredentials | None:
    if isinstance(tls, bool):
        return grpc.ssl_channel_credentials() if tls else None
    if not isinstance(tls, Tls):
        raise invalid("tls", f"must be True, False or a Tls, not {type(tls).__name__}")
    # gRPC ends the process when it gets only one of them.
    if (tls.private_key is None) != (tls.certificate_chain is None):
        raise invalid("tls", "private_key and certificate_chain must be given together")
    return grpc.ssl_channel_credentials(
        root_certificates=_pem("root_certificates", tls.root_certificates),
        private_key=_pem("private_key", tls.private_key),
        certificate_chain=_pem("certificate_chain", tls.certificate_chain),
    )


def _pem(name: str, path: str | PathLike[str] | None) -> bytes | None:
    if path is None:
        return None
    try:
        content = Path(path).read_bytes()
    except (OSError, TypeError, ValueError) as error:
        raise invalid(f"tls.{name}", f"cannot be read: {error}") from error
    # gRPC takes an empty file for one that was not given, and would trust the public authorities instead.
    if b"-----BEGIN " not in content:
        raise invalid(f"tls.{name}", f"{path} is not a PEM file")
    return content


def _stays_on_this_host(target: str) -> bool:
    """Tell whether nobody but this host sees what is sent to a target."""
    if _UNIX_SOCKET.fullmatch(target):
        return True
    host = target.rpartition(":")[0].strip("[]")
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
