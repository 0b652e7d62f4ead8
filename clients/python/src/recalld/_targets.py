"""What a client is given as its target, and the way to a store that it means."""

from pathlib import Path

from ._arguments import Tls
from ._channel import connection
from ._embedded import AsyncEmbeddedTransport, EmbeddedTransport
from ._errors import invalid
from ._grpc import AsyncGrpcTransport, GrpcTransport
from ._transport import AsyncTransport, Transport

_DIRECTORY = "dir:"


def transport(target: str, *, tls: bool | Tls, api_key: str | None) -> Transport:
    """Choose the way for code that blocks; InvalidArgument if the arguments of a client cannot be used."""
    directory = _directory(target, tls, api_key)
    if directory is not None:
        return EmbeddedTransport(directory)
    return GrpcTransport(connection(target, tls=tls, api_key=api_key))


def async_transport(target: str, *, tls: bool | Tls, api_key: str | None) -> AsyncTransport:
    """Choose the way for asyncio, as `transport` does."""
    directory = _directory(target, tls, api_key)
    if directory is not None:
        return AsyncEmbeddedTransport(directory)
    return AsyncGrpcTransport(connection(target, tls=tls, api_key=api_key))


def _directory(target: str, tls: bool | Tls, api_key: str | None) -> Path | None:
    """Give the directory that a target names; None when it names an address."""
    if not target.startswith(_DIRECTORY):
        return None
    name = target.removeprefix(_DIRECTORY)
    if not name or "\0" in name:
        raise invalid("target", f"must name a directory, as in dir:/path, not {target!r}")
    if tls is not False:
        raise invalid("tls", "is for a connection: a directory is opened in this process")
    if api_key is not None:
        raise invalid("api_key", "is for a connection: a directory is opened in this process")
    try:
        # One name for each directory, by which the clients of a process find that they share it.
        return Path(name).expanduser().resolve()
    except RuntimeError as error:
        raise invalid("target", str(error)) from error
