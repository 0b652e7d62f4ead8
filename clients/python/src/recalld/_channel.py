"""How a client reaches a sidecar: what a target may be, and the options of the channel.

Both clients take both from here. This module must never open a connection.
"""

import re
from typing import Any

from ._errors import invalid
from ._version import __version__
from .v1.admin_service_pb2_grpc import AdminServiceStub
from .v1.memory_service_pb2_grpc import MemoryServiceStub

# A batch may be 16 MiB, and an answer to Get more; gRPC's own limit of 4 MiB would refuse both.
_MOST_BYTES = 32 * 1024 * 1024

_UNIX_SOCKET = re.compile(r"unix:(///|/|)[^/].*")
# Neither part may hold what would make it a URI: gRPC takes an unknown scheme for a host and looks it up.
_HOST_AND_PORT = re.compile(r"([^\s/:\[\]]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")

Options = list[tuple[str, str | int]]


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
        raise invalid("target", f"must be unix:/path or host:port, not {target!r}")
    return options


def methods(channel: Any) -> dict[str, Any]:
    """Give the methods of all services on a channel, of either interface of gRPC, by name."""
    return {**vars(MemoryServiceStub(channel)), **vars(AdminServiceStub(channel))}
