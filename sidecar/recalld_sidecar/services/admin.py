"""AdminService: looking after a store."""

from recalld.v1 import admin_service_pb2 as pb

from recalld_sidecar import __version__
from recalld_sidecar._core import Core
from recalld_sidecar.services import Handler, handler

SERVICE = pb.DESCRIPTOR.services_by_name["AdminService"].full_name


class AdminService:
    """The methods of AdminService on an open core."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def handlers(self) -> dict[str, Handler]:
        """Handlers by full method name."""
        return {f"/{SERVICE}/GetStats": handler(pb.GetStatsRequest, self.get_stats)}

    def get_stats(self, request: pb.GetStatsRequest) -> pb.GetStatsResponse:
        """Count what the store holds, and what one namespace holds when one is named."""
        store = self._core.store_stats()
        response = pb.GetStatsResponse(
            store=pb.StoreStats(
                store_id=store.store_id,
                format_version=store.format_version,
                embedder=store.embedder,
                embedder_fingerprint=store.embedder_fingerprint,
                dimensions=store.dimensions,
                position=store.position,
                namespaces=store.namespaces,
                memories=store.memories,
                bytes_used=store.bytes_used,
            ),
            server_version=__version__,
        )
        if request.HasField("namespace"):
            namespace = self._core.namespace_stats(list(request.namespace.segments))
            response.namespace.CopyFrom(
                pb.NamespaceStats(
                    memories=namespace.memories,
                    versions=namespace.versions,
                    passages=namespace.passages,
                    content_tokens=namespace.content_tokens,
                    indexed_passages=namespace.indexed_passages,
                ),
            )
        return response
