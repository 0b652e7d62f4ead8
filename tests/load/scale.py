"""How much is measured: all of it, or just enough to see that the harness works."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes of stores and numbers of calls."""

    memories: int
    """Of the smaller store."""
    many_memories: int
    """Of the larger one."""
    rounds: int
    calls: int
    """Calls of one contestant in one round."""
    writes: int
    """Writes of a round at one caller."""
    callers: int
    """Callers that write at the same time."""
    writes_a_caller: int
    """Writes of one of them in a round."""
    restarts: int
    text_length: int
    """Characters of a text whose tokens are counted."""
    embeddings: int
    """Texts that are embedded in one call."""


FULL = Scale(
    memories=10_000,
    many_memories=100_000,
    rounds=25,
    calls=200,
    writes=40,
    callers=64,
    writes_a_caller=16,
    restarts=7,
    text_length=100_000,
    embeddings=20_000,
)
QUICK = Scale(
    memories=200,
    many_memories=400,
    rounds=2,
    calls=10,
    writes=5,
    callers=4,
    writes_a_caller=2,
    restarts=1,
    text_length=2_000,
    embeddings=100,
)
