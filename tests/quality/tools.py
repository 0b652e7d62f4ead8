"""Tool results: how much of what the agent needed later is left in a share of the tokens.

There is no call that compresses a tool result. What is measured is what an agent can do: write the result as a memory
of kind `tool_result` in a namespace of its own, and ask for a brief of it for what it is after, in so many tokens. The
brief's frame counts. Beside it stands the result cut off after as many tokens.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from recalld.v1 import memory_service_pb2 as pb

from tests.quality.sets import ToolResult
from tests.support.store import Store, open_store

SHARES = (0.3, 0.5)
"""Shares of a result's tokens that may be spent."""

BRIEF = "a brief"
CUT_OFF = "cut off"

_ERROR = re.compile(r"error|exception|traceback|fail|cannot|invalid|not found|no such", re.IGNORECASE)
_ERROR_WORDS = 8
"""Words from the first one that tells of an error: what has to be left for the error to be understood."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What is left of one result, by way of shortening it."""

    tokens: int
    """Of the whole result."""
    needed: int
    """Literals that the agent used later."""
    is_error: bool
    spent: dict[str, int] = field(default_factory=dict)
    literals: dict[str, int] = field(default_factory=dict)
    """Needed literals that are left."""
    error: dict[str, bool] = field(default_factory=dict)
    """The words that tell of the error are left."""


def measure(results: Sequence[ToolResult]) -> dict[float, list[Kept]]:
    """Shorten each result of which something was needed, or that is an error, to each share of its tokens."""
    kept: dict[float, list[Kept]] = {share: [] for share in SHARES}
    with TemporaryDirectory(prefix="recalld-quality-") as folder, open_store(Path(folder)) as store:
        for result in results:
            if result.needed or result.is_error:
                segments = ["tools", result.id]
                item = pb.WriteItem(key="result", content=result.text, kind="tool_result")
                tokens = store.write(segments, [item]).receipts[0].content_tokens
                for share in SHARES:
                    kept[share].append(_kept(store, segments, result, tokens, int(tokens * share)))
    return kept


def _kept(store: Store, segments: Sequence[str], result: ToolResult, tokens: int, budget: int) -> Kept:
    kept = Kept(tokens=tokens, needed=len(result.needed), is_error=result.is_error)
    if budget:
        brief = store.brief(segments, result.query, budget_tokens=budget).text
        head = store.get(segments, keys=["result"], max_tokens=budget).memories[0].content
    else:
        brief = head = ""
    for way, text in ((BRIEF, brief), (CUT_OFF, head)):
        kept.spent[way] = store.count_tokens([text], "o200k_base")[0] if text else 0
        one_line = _one_line(text)
        kept.literals[way] = sum(_one_line(literal) in one_line for literal in result.needed)
        kept.error[way] = result.is_error and all(word in one_line for word in telling_words(result.text))
    return kept


def telling_words(text: str) -> list[str]:
    """Return the words that tell of an error, from the first that names one."""
    match = _ERROR.search(text)
    words = text[match.start() if match else 0 :].split()
    return words[:_ERROR_WORDS]


def _one_line(text: str) -> str:
    return " ".join(text.split())
