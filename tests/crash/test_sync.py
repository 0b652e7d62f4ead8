"""An acknowledged write was synced: a kill cannot show that, since the system keeps what a process wrote."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.store import MODEL_DIR

WRITES = 20
SECONDS = 60

WRITER = f"""
import os, sys
from recalld.v1 import memory_service_pb2 as pb
from recalld.v1.types_pb2 import Namespace
from recalld_sidecar._core import Core

core = Core(sys.argv[1], sys.argv[2])
for number in range({WRITES}):
    items = [pb.WriteItem(content=f"Note {{number}}.")]
    request = pb.WriteRequest(namespace=Namespace(segments=["a"]), items=items).SerializeToString()
    os.write(1, b"ask %d\\n" % number)
    core.dispatch("/recalld.v1.MemoryService/Write", "", request, None)
    os.write(1, b"ack %d\\n" % number)
core.close()
"""


def test_each_acknowledgement_follows_a_sync(tmp_path: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    calls = "trace=write,fdatasync,fsync,msync,sync_file_range"
    command = [strace, "-f", "-qq", "-o", str(trace), "-e", calls]
    probe = subprocess.run([*command, "true"], capture_output=True, check=False, timeout=SECONDS)
    if probe.returncode != 0:
        pytest.skip("this machine does not let a process be traced")
    subprocess.run(
        [*command, sys.executable, "-c", WRITER, str(tmp_path / "data"), MODEL_DIR],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=SECONDS,
    )
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    for number in range(WRITES):
        (asked,) = [at for at, line in enumerate(lines) if f'write(1, "ask {number}\\n"' in line]
        (acked,) = [at for at, line in enumerate(lines) if f'write(1, "ack {number}\\n"' in line]
        synced = [line for line in lines[asked:acked] if re.search(r"sync\(.*= 0$|sync resumed>.*= 0$", line)]
        assert synced, f"write {number} was acknowledged without a sync"
