"""The control plane: one module for each gRPC service, each method from message to message.

A method takes plain values from its request, makes one call of the core, and puts plain values into its
response. The data plane (`Core.dispatch`) never comes through here.
"""

from collections.abc import Callable
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from recalld_sidecar import errors

Handler = Callable[[str, str, bytes, float | None], bytes]
"""The one shape of everything that answers a call, in Rust or Python.

Method, identity of the caller, serialised request and seconds left (None: no deadline) in; serialised
response out. Raises CoreError.
"""

_Request = TypeVar("_Request", bound=Message)


def handler(request_type: type[_Request], call: Callable[[_Request], Message]) -> Handler:
    """Make a handler of a method that takes and returns messages."""

    def answer(_method: str, _identity: str, request: bytes, _timeout: float | None) -> bytes:
        try:
            message = request_type.FromString(request)
        except DecodeError:
            raise errors.malformed_request(request_type.DESCRIPTOR.name) from None
        return call(message).SerializeToString()

    return answer
