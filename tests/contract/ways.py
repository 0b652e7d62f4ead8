"""The ways to a store that the client has, each of which must keep the same contract.

For modules whose tests run on all of them: `@pytest.fixture(scope="module", params=WAYS)`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import recalld

from tests.support.sidecar import running_sidecar

WAYS = ("served", "embedded", "spawned")
"""A sidecar that somebody started, the engine in this process, and a sidecar of this process."""


@contextmanager
def target_of(way: str, data_dir: Path) -> Iterator[str]:
    """Give what a client is told to reach the store in `data_dir`."""
    match way:
        case "served":
            with running_sidecar(data_dir) as sidecar:
                yield sidecar.address
        case "embedded":
            yield f"dir:{data_dir}"
        case "spawned":
            with recalld.spawn(data_dir) as child:
                yield child.address
        case _:
            raise ValueError(way)
