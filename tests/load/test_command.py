"""`recalld load` against the real process. Whether an SLO is held is decided by SLOs that any or no machine holds."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from recalld import Client

from tests.support.sidecar import RunningSidecar, run_cli, running_sidecar

SMALL = ["--rate", "100", "--duration", "1s", "--namespaces", "2", "--memories", "50", "--timeout", "20s"]
ALWAYS, NEVER = ["--slo", "15s"], ["--slo", "0.001ms"]


@pytest.fixture(scope="module")
def sidecar() -> Iterator[RunningSidecar]:
    with running_sidecar() as running:
        yield running


def test_an_slo_that_is_held_is_0_and_nothing_stays(sidecar: RunningSidecar, tmp_path: Path) -> None:
    path = tmp_path / "reports" / "mine.v1"
    done = run_cli("load", "--target", sidecar.address, *SMALL, *ALWAYS, "--report", str(path))
    assert done.returncode == 0, done.stderr
    assert "2 namespaces of 50 memories; 80% Search, 10% Write, 10% Brief" in done.stdout
    assert "SLO held" in done.stdout
    found = json.loads(path.with_name("mine.v1.json").read_text("utf8"))
    assert found["held"] is True
    assert found["calls"]["all"]["codes"] == {"OK": 100}
    assert sum(found["calls"][name]["calls"] for name in ("Search", "Write", "Brief")) == 100
    text = path.with_name("mine.v1.md").read_text("utf8")
    assert done.stdout.strip() in text
    assert "](mine.v1.svg)" in text
    assert path.with_name("mine.v1.svg").is_file()
    with Client(sidecar.address) as client:
        assert client.stats().memories == 0


def test_an_slo_that_is_not_held_is_1(sidecar: RunningSidecar) -> None:
    done = run_cli("load", "--target", sidecar.address, *SMALL, *NEVER, "--writes", "0", "--json")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["held"] is False
    assert set(found["calls"]) == {"Search", "Brief", "all"}


def test_the_highest_rate_is_found_and_said(sidecar: RunningSidecar, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    flags = ["--find-rate", "--report", str(path)]
    done = run_cli("load", "--target", sidecar.address, *SMALL, *NEVER, *flags)
    assert done.returncode == 1
    assert "10 a second for 2 s: p99" in done.stderr
    assert "mine-rates.svg" in path.with_suffix(".md").read_text("utf8")


def test_memories_are_kept_when_told() -> None:
    with running_sidecar() as sidecar, Client(sidecar.address) as client:
        done = run_cli("load", "--target", sidecar.address, *SMALL, *ALWAYS, "--writes", "0", "--keep")
        assert done.returncode == 0, done.stderr
        kept = done.stderr.split("kept in namespaces ")[1].split("/...")[0]
        assert client.stats().memories == 100
        assert client.namespace(*kept.split("/"), "000001").stats().memories == 50


def test_a_report_that_cannot_be_written_is_said(sidecar: RunningSidecar, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    path = str(tmp_path / "file" / "mine")
    done = run_cli("load", "--target", sidecar.address, *SMALL, *ALWAYS, "--report", path)
    assert done.returncode == 2
    assert "SLO held" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("recalld: cannot write ")


def test_nobody_there_is_2(tmp_path: Path) -> None:
    done = run_cli("load", "--target", f"unix:{tmp_path}/none.sock")
    assert (done.returncode, done.stdout) == (2, "")
