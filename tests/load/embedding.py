"""The embedding alone."""

from collections.abc import Callable

from recalld_sidecar import _core
from recalld_sidecar.load.texts import MODEL, Texts

from tests.load.report import Figures
from tests.load.rounds import difference, in_turns
from tests.load.scale import Scale

CALLS = 3


def measure(scale: Scale) -> Figures:
    """Measure a query and a memory."""
    figures = Figures("Embedding, from Python")
    source = Texts(13)
    count = scale.embeddings
    memories = source.memories(count)
    for name, texts in (
        ("query of 10 words", source.queries(memories, count)),
        ("memory of 60 tokens", memories),
    ):
        # Nothing is known in an empty text, so nothing is embedded; the model is loaded all the same.
        timings = in_turns(
            {"texts": _embedding(texts), "empty": _embedding([""] * count)},
            rounds=scale.rounds,
            calls_a_round=CALLS,
        )
        cost = difference(timings["texts"].cpus, timings["empty"].cpus) / count
        figures.add(f"{name}: at most", cost * 1e6, "µs")
    figures.notes.append(
        f"Processor time of one call with {count:,} texts less that of one with as many empty texts, a "
        "text. It holds the making of a Python list of 256 numbers, which costs about as much as the "
        "embedding: so it is an upper bound. `cargo bench -p recalld-embed` measures the embedding itself."
    )
    return figures


def _embedding(texts: list[str]) -> Callable[[int], object]:
    return lambda _: _core.embed(str(MODEL), texts)
