"""How much is measured: all of it, or just enough to see that the harness works."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Scale:
    """Sizes of stores and numbers of calls."""

    memories: int
    """Of the smaller store."""
    many_memories: int
    """Of the larger one."""
    huge_memories: int | None
    """Of the largest one, which takes long to fill; None leaves it out."""
    namespaces: tuple[int, ...]
    """Numbers of small namespaces of one store, which is compared with one of few."""
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
    turn_seconds: float
    """Length of one contestant's turn, where it is time and not a number of calls."""
    rate_seconds: float
    """Length of a run at one rate."""
    probe_seconds: float
    """Length of a probe for the highest rate."""
    rate_rounds: int
    """Rounds of what takes seconds."""
    endurance_seconds: float


FULL = Scale(
    memories=10_000,
    many_memories=100_000,
    huge_memories=None,
    namespaces=(1_000,),
    rounds=10,
    calls=200,
    writes=40,
    callers=64,
    writes_a_caller=16,
    restarts=5,
    text_length=100_000,
    embeddings=10_000,
    turn_seconds=0.3,
    rate_seconds=3.0,
    probe_seconds=1.0,
    rate_rounds=2,
    endurance_seconds=30.0,
)
LARGE = replace(FULL, huge_memories=1_000_000, namespaces=(1_000, 10_000, 100_000), endurance_seconds=600.0)
QUICK = Scale(
    memories=200,
    many_memories=400,
    huge_memories=None,
    namespaces=(20,),
    rounds=2,
    calls=10,
    writes=5,
    callers=4,
    writes_a_caller=2,
    restarts=1,
    text_length=2_000,
    embeddings=100,
    turn_seconds=0.02,
    rate_seconds=0.3,
    probe_seconds=0.1,
    rate_rounds=1,
    endurance_seconds=1.0,
)
