"""The core in this process, asked as a sidecar asks it.

Requests go in and answers come out as bytes, as they do behind gRPC, so that nothing of the contract is
passed over. For tests to which a process of its own would add nothing but time.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]
from recalld.v1 import admin_service_pb2 as admin_pb
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.memory_pb2 import Memory
from recalld.v1.types_pb2 import Namespace
from recalld_sidecar._core import Core, CoreError
from recalld_sidecar.config import Config
from recalld_sidecar.services.admin import AdminService

MODEL_DIR = str(Config.model_fields["model_dir"].default)
"""The embedding model that ships with the sidecar."""

WAIT_SECONDS = 60
"""Longest wait for what a background thread does, on a busy machine."""


class Store:
    """An open data directory. The methods take the fields of the requests of the same names."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self._admin = AdminService(core)

    def answer(self, method: str, request: bytes) -> bytes:
        """Answer a method of MemoryService by its short name."""
        return self.core.dispatch(f"/recalld.v1.MemoryService/{method}", "test", request, None)

    def write(
        self, namespace: Sequence[str], items: Sequence[pb.WriteItem], *, idempotency_key: str = ""
    ) -> pb.WriteResponse:
        request = pb.WriteRequest(
            namespace=Namespace(segments=namespace), items=items, idempotency_key=idempotency_key
        )
        return pb.WriteResponse.FromString(self.answer("Write", request.SerializeToString()))

    def search(self, namespace: Sequence[str], query: str = "", **fields: Any) -> pb.SearchResponse:
        request = pb.SearchRequest(namespace=Namespace(segments=namespace), query=query, **fields)
        return pb.SearchResponse.FromString(self.answer("Search", request.SerializeToString()))

    def get(self, namespace: Sequence[str], **fields: Any) -> pb.GetResponse:
        request = pb.GetRequest(namespace=Namespace(segments=namespace), **fields)
        return pb.GetResponse.FromString(self.answer("Get", request.SerializeToString()))

    def get_all(self, namespace: Sequence[str], ids: Sequence[str]) -> dict[str, Memory]:
        """Fetch any number of memories that must all be there."""
        found: dict[str, Memory] = {}
        for start in range(0, len(ids), 1000):
            details = self.get(namespace, ids=ids[start : start + 1000])
            assert not details.missing_ids
            found |= {memory.id: memory for memory in details.memories}
        return found

    def delete(self, namespace: Sequence[str], **fields: Any) -> pb.DeleteResponse:
        request = pb.DeleteRequest(namespace=Namespace(segments=namespace), **fields)
        return pb.DeleteResponse.FromString(self.answer("Delete", request.SerializeToString()))

    def brief(self, namespace: Sequence[str], query: str = "", **fields: Any) -> pb.BriefResponse:
        request = pb.BriefRequest(namespace=Namespace(segments=namespace), query=query, **fields)
        return pb.BriefResponse.FromString(self.answer("Brief", request.SerializeToString()))

    def count_tokens(self, texts: Sequence[str], encoding: str) -> list[int]:
        request = pb.CountTokensRequest(texts=texts, encoding=encoding)
        response = pb.CountTokensResponse.FromString(self.answer("CountTokens", request.SerializeToString()))
        assert response.total == sum(response.counts)
        assert response.encoding == encoding
        return list(response.counts)

    def stats(self, namespace: Sequence[str]) -> admin_pb.NamespaceStats:
        request = admin_pb.GetStatsRequest(namespace=Namespace(segments=namespace))
        return self._admin.get_stats(request).namespace

    def store_stats(self) -> admin_pb.StoreStats:
        return self._admin.get_stats(admin_pb.GetStatsRequest()).store


@contextmanager
def open_store(data_dir: Path, **options: Any) -> Iterator[Store]:
    """Open a data directory, making it when it is missing; `options` are those of `Core`."""
    core = Core(str(data_dir), MODEL_DIR, **options)
    try:
        yield Store(core)
    finally:
        core.close()


def refusal(error: CoreError) -> tuple[str, dict[str, str]]:
    """Reason and metadata of a refused call."""
    status = status_pb2.Status.FromString(error.status)
    assert status.code == error.code
    info = error_details_pb2.ErrorInfo()
    assert sum(detail.Unpack(info) for detail in status.details) == 1
    assert info.domain == "recalld"
    return info.reason, dict(info.metadata)


@contextmanager
def refused(reason: str) -> Iterator[dict[str, str]]:
    """Expect a call to be refused for this reason; the refusal's metadata is there afterwards."""
    metadata: dict[str, str] = {}
    with pytest.raises(CoreError) as raised:
        yield metadata
    found, details = refusal(raised.value)
    assert found == reason
    metadata.update(details)


def wait_until(holds: Callable[[], bool], what: str) -> None:
    """Wait for a background thread to have done something."""
    end = time.monotonic() + WAIT_SECONDS
    while not holds():
        assert time.monotonic() < end, f"it did not happen: {what}"
        time.sleep(0.01)
