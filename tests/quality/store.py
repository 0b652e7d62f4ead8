"""Corpora in a store: how they are written, and what the answers show of them.

Every corpus is a namespace of its own and a document is a memory whose key is the document's id. Nothing is given that
a writer would not have: the text, the time, the speaker and the session.
"""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256

from google.protobuf.timestamp_pb2 import Timestamp
from recalld.v1 import memory_service_pb2 as pb
from recalld_sidecar.demo.corpus import Corpus, Doc, instant

from tests.support.store import Store

BATCH = 500
_START = re.compile(r"- (?P<citation>\[[^\]]+\]) .*?:(?: (?P<text>.*))?$")


def turn(doc: Doc) -> pb.WriteItem:
    """Make the item that writes a document as what was said."""
    item = pb.WriteItem(key=doc.id, content=doc.text, kind=doc.kind or "turn")
    time = instant(doc.time)
    if time is not None:
        stamp = Timestamp()
        stamp.FromDatetime(time)
        item.occurred_at.CopyFrom(stamp)
    if doc.speaker or doc.session:
        item.sources.add(session=doc.session, speaker=doc.speaker)
    return item


def namespace(group: str, corpus: Corpus) -> list[str]:
    """Name the namespace of a corpus, whatever characters are in its id."""
    return ["quality", sha256(f"{group}/{corpus.id}".encode()).hexdigest()]


def write(store: Store, segments: Sequence[str], items: Sequence[pb.WriteItem]) -> list[str]:
    """Write items, many at a time, and return their ids."""
    ids: list[str] = []
    for start in range(0, len(items), BATCH):
        ids += (receipt.id for receipt in store.write(segments, items[start : start + BATCH]).receipts)
    return ids


def places(response: pb.SearchResponse, names: Mapping[str, str]) -> list[list[str]]:
    """Return the documents of each hit: its own, then those folded into it; `names` has the document of an id."""
    return [[hit.key, *(names[id_] for id_ in hit.duplicate_ids)] for hit in response.hits]


def quoted(brief: pb.BriefResponse) -> dict[str, str]:
    """Return what a brief quotes of each memory, by key.

    A quotation starts on a line `- [citation] date who: text`, and its further lines are indented.
    """
    keys = {memory.citation: memory.key for memory in brief.included}
    texts: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in brief.text.splitlines():
        start = _START.match(line)
        if start and start["citation"] in keys:
            lines = texts.setdefault(keys[start["citation"]], [])
            lines.append(start["text"] or "")
        elif line.startswith(" "):
            lines.append(line)
        else:
            lines = []
    return {key: "\n".join(lines) for key, lines in texts.items()}
