"""The methods of the contract, from its descriptors: where each is reached and what it answers."""

from dataclasses import dataclass
from typing import Any

from google.protobuf.message_factory import GetMessageClass

from .v1 import admin_service_pb2, memory_service_pb2


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a service."""

    path: str
    """How gRPC names it: `/recalld.v1.MemoryService/Search`."""
    answer: Any
    """The generated class of its answers."""


METHODS = {
    method.name: Method(f"/{service.full_name}/{method.name}", GetMessageClass(method.output_type))
    for module in (memory_service_pb2, admin_service_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
"""Every method by its name; no two services have one of the same name."""
