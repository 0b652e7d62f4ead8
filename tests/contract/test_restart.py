"""A sidecar that goes and comes back: what its clients are told meanwhile, and that they go on afterwards."""

from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from recalld import AsyncClient, Client, RecalldError, Search, SearchStream, Unavailable

from tests.support.sidecar import RunningSidecar, running_sidecar
from tests.support.store import wait_until

SECONDS = 60


@pytest.fixture(params=["native", "python"])
def front(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def serve(folder: Path, front: str) -> AbstractContextManager[RunningSidecar]:
    """A sidecar that always has the same address."""
    flags = ["--front", front, "--listen", "127.0.0.1:0", "--listen", f"unix:{folder}/fixed.sock"]
    return running_sidecar(folder / "data", flags=flags)


def answers(stream: SearchStream) -> bool:
    try:
        return isinstance(stream.submit("seat").result(), Search)
    except Unavailable:
        return False


def test_a_stream_is_opened_anew(tmp_path: Path, front: str) -> None:
    with Client(f"unix:{tmp_path}/fixed.sock", timeout=SECONDS) as client:
        with serve(tmp_path, front) as sidecar:
            alice = client.namespace("a")
            alice.write("Alice prefers aisle seats.", key="seat")
            stream = alice.search_stream()
            assert stream.submit("seat").result()[0].key == "seat"
            # An idle stream does not keep it from ending in good order.
            assert sidecar.stop() == 0
            assert "were abandoned" not in sidecar.output()
        assert not answers(stream)
        with serve(tmp_path, front):
            wait_until(lambda: answers(stream), "the stream answers again")
            stream.close()
            assert alice.search("seat")[0].key == "seat"


async def test_what_is_in_hand_is_lost_once_and_not_asked_twice(tmp_path: Path) -> None:
    async with AsyncClient(f"unix:{tmp_path}/fixed.sock", timeout=SECONDS) as client:
        alice = client.namespace("a")
        with serve(tmp_path, "native") as sidecar:
            await alice.write("Alice prefers aisle seats.", key="seat")
            async with alice.search_stream() as stream:
                outcomes = []
                async for outcome in stream.search_many(["seat"] * 200):
                    outcomes.append(outcome)
                    if len(outcomes) == 50:
                        sidecar.process.kill()
            sidecar.wait()
    assert len(outcomes) == 200
    assert all(isinstance(outcome, Search) for outcome in outcomes[:50])
    lost = [outcome for outcome in outcomes if isinstance(outcome, RecalldError)]
    assert lost
    assert all(isinstance(error, Unavailable) for error in lost)
