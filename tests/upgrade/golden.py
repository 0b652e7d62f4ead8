"""Writes a data directory with something of everything, and what it must answer for ever.

`python -m tests.upgrade.golden NAME` fills `NAME.tar.gz` and `NAME.json` beside this file with the build that
is installed. Run it once for each format that was released, before the next one exists: the files are evidence and are
never made again.
"""

import json
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.timestamp_pb2 import Timestamp
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.memory_pb2 import CONTENT_FORMAT_JSON
from recalld.v1.types_pb2 import Namespace, Source, Value, ValueList, ValueMap
from recalld_sidecar._core import Core
from recalld_sidecar.config import Config

from tests.support.filters import condition

FOLDER = Path(__file__).parent
MODEL_DIR = str(Config.model_fields["model_dir"].default)
INDEX_AFTER = 60
"""Passages from which a namespace of the golden directory has an approximate index."""

BIG, SMALL, CHINESE, EMPTIED = (("acme", "user", "alice"), ("acme",), ("租户", "用户"), ("gone",))
NAMESPACES = (BIG, SMALL, CHINESE, EMPTIED)
FOREVER = Duration(seconds=200 * 366 * 86_400)

CITIES = (
    "Lima Quito Oslo Bergen Turin Kyoto Nairobi Accra Porto Riga Zagreb Tallinn Hanoi Davao Cusco".split()
)
GOODS = "invoice ladder violin engine pillow ticket lantern anchor compass saddle kettle turbine".split()


def ask(core: Core, method: str, request: Any, answer: Any) -> Any:
    """Answer one call of MemoryService."""
    path = f"/recalld.v1.MemoryService/{method}"
    return answer.FromString(core.dispatch(path, "golden", request.SerializeToString(), None))


def write(
    core: Core, segments: Sequence[str], items: Sequence[pb.WriteItem], key: str = ""
) -> pb.WriteResponse:
    """Write items."""
    request = pb.WriteRequest(namespace=Namespace(segments=segments), items=items, idempotency_key=key)
    response: pb.WriteResponse = ask(core, "Write", request, pb.WriteResponse)
    return response


def many() -> list[pb.WriteItem]:
    """Enough different memories for an approximate index, some of more than one passage."""
    items = []
    for number in range(150):
        city, good = CITIES[number % len(CITIES)], GOODS[number % len(GOODS)]
        content = f"Order {1000 + number}: one {good} goes to {city} in week {number % 52}."
        if number % 10 == 0:
            content += f" The {good} was checked twice before it left for {city}." * 12
        items.append(
            pb.WriteItem(
                key=f"order-{number}",
                content=content,
                kind="event" if number % 3 else "fact",
                tags=[good, city.lower()],
                importance=number % 11 / 10,
                occurred_at=Timestamp(seconds=1_700_000_000 + number * 3600),
                metadata={
                    "number": Value(int_value=1000 + number),
                    "weight": Value(double_value=number * 0.37),
                    "route": Value(
                        map_value=ValueMap(
                            fields={
                                "from": Value(string_value="Lisbon"),
                                "stops": Value(
                                    list_value=ValueList(
                                        values=[Value(string_value=city), Value(bool_value=True)]
                                    )
                                ),
                            }
                        )
                    ),
                },
                sources=[
                    Source(
                        uri=f"mail:{number}", session=f"s{number % 4}", speaker="Bob" if number % 2 else ""
                    )
                ],
            )
        )
    return items


def fill(core: Core) -> None:
    """Write, repeat, change, delete and let expire."""
    write(core, BIG, many()[:100], "first-hundred")
    write(core, BIG, many()[:100], "first-hundred")
    write(core, BIG, many()[100:])
    # New versions, a repeat, a caller's vector, a long life, one that has expired and that nobody sweeps for ever.
    for round_ in range(3):
        write(core, BIG, [pb.WriteItem(key="seat", content=f"Alice now prefers seat {round_ + 1}A.")])
    write(core, BIG, [pb.WriteItem(content="The same sentence twice.", origin="agent:one")])
    write(core, BIG, [pb.WriteItem(content="The same sentence twice.", origin="agent:one")])
    vector = [0.0] * 256
    vector[3], vector[200] = 1.0, -0.5
    write(core, BIG, [pb.WriteItem(key="vector", content="Has a vector of its own.", vector=vector)])
    write(core, BIG, [pb.WriteItem(key="long-lived", content="Lives for two hundred years.", ttl=FOREVER)])
    names = [f"order-{number}" for number in range(30, 60, 2)]
    delete = pb.DeleteRequest(
        namespace=Namespace(segments=BIG), keys=[*names, "never-was"], idempotency_key="del"
    )
    ask(core, "Delete", delete, pb.DeleteResponse)
    write(core, BIG, [pb.WriteItem(key="order-30", content="Order 1030 was placed again, for Riga.")])
    document = json.dumps({"city": "Riga", "n": 2**60 + 1, "list": [1, 2, {"deep": None}]})
    write(
        core,
        SMALL,
        [
            pb.WriteItem(key="doc", content=document, content_format=CONTENT_FORMAT_JSON, kind="my-own"),
            pb.WriteItem(content="x" * 5000 + " a very long word", summary="A summary of its own."),
            pb.WriteItem(content="Short.", confidence=0.25, importance=1.0),
        ],
    )
    write(
        core,
        CHINESE,
        [
            pb.WriteItem(key="座位", content="用户喜欢靠过道的座位。", tags=["偏好"]),
            pb.WriteItem(content="会议改到二〇二四年五月十二日下午三点。"),
            pb.WriteItem(content="お客様は窓側の席を希望しています。"),
        ],
    )
    write(core, EMPTIED, [pb.WriteItem(content=f"Note {number} of what goes.") for number in range(20)])
    everything = pb.DeleteRequest(
        namespace=Namespace(segments=EMPTIED), filter=condition("kind", exists=True)
    )
    ask(core, "Delete", everything, pb.DeleteResponse)
    write(core, SMALL, [pb.WriteItem(key="fleeting", content="Gone at once.", ttl=Duration(nanos=1_000_000))])


def expected(core: Core) -> dict[str, Any]:
    """What the directory holds, as any later build must answer it."""
    namespaces = []
    for segments in NAMESPACES:
        hits = ask(
            core,
            "Search",
            pb.SearchRequest(
                namespace=Namespace(segments=segments), query="Order seat note 座位 席", limit=1000
            ),
            pb.SearchResponse,
        ).hits
        ids = sorted({id_ for hit in hits for id_ in (hit.id, *hit.duplicate_ids)})
        memories = []
        for id_ in ids:
            get = pb.GetRequest(namespace=Namespace(segments=segments), ids=[id_])
            memory = ask(core, "Get", get, pb.GetResponse).memories[0]
            versions = []
            for version in range(1, memory.version):
                get.as_of_version = version
                versions.append(MessageToDict(ask(core, "Get", get, pb.GetResponse).memories[0]))
            memories.append({"current": MessageToDict(memory), "earlier": versions})
        namespaces.append({"segments": list(segments), "memories": memories})
    return {"namespaces": namespaces}


def main(name: str) -> None:
    """Make the two files."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        core = Core(str(data), MODEL_DIR, index_after=INDEX_AFTER, max_store_bytes=1 << 26)
        fill(core)
        index = data / "index" / "0.hnsw"
        for _ in range(600):
            if index.exists():
                break
            time.sleep(0.1)
        state = expected(core)
        core.close()
        with tarfile.open(FOLDER / f"{name}.tar.gz", "w:gz", compresslevel=9) as tar:
            for path in sorted(data.rglob("*")):
                if path.is_file() and path.name != "lock.mdb":
                    tar.add(path, path.relative_to(data))
        text = json.dumps(state, ensure_ascii=False, indent=1, sort_keys=True)
        (FOLDER / f"{name}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
