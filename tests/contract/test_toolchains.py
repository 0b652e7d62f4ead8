"""Programs in other languages, with what any of their users has: they see what the Python client sees.

Each lies in a folder of its own, is built there on the first run (which may download its libraries), and knows nothing
of recalld but the proto files. A language that is not installed is skipped, but not in CI.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import recalld
from recalld import Client, Namespace, Query, Search

from tests.support.sidecar import RunningSidecar, running_sidecar

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD_SECONDS = 900
"""Longest build, on a machine that has downloaded nothing yet."""
RUN_SECONDS = 120
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
"""Where tools are looked for: buf is installed beside this Python."""

pytestmark = pytest.mark.timeout(BUILD_SECONDS + 2 * RUN_SECONDS)


def go(folder: Path) -> list[str]:
    plugins = "google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc"
    (folder / "build").mkdir(exist_ok=True)
    run(folder, "go", "build", "-o", "build/", *plugins.split())
    run(folder, "buf", "generate")
    run(folder, "go", "build", "-o", "build/contract", ".")
    return [str(folder / "build/contract")]


def typescript(folder: Path) -> list[str]:
    installed = folder / "node_modules/.package-lock.json"
    if not is_newer(installed, folder / "package-lock.json"):
        run(folder, "npm", "ci", "--ignore-scripts")
        installed.touch()
    run(folder, "node", "node_modules/typescript/bin/tsc")
    return ["node", str(folder / "build/main.js")]


def java(folder: Path) -> list[str]:
    descriptors, classpath = folder / "target/recalld.binpb", folder / "target/classpath"
    run(folder, "mvn", "-q", "-B", "compile", "dependency:build-classpath", f"-Dmdep.outputFile={classpath}")
    run(ROOT, "buf", "build", "--path", "proto/recalld/v1", "-o", str(descriptors))
    path = os.pathsep.join([str(folder / "target/classes"), classpath.read_text()])
    return ["java", "-cp", path, "io.recalld.contract.Main", str(descriptors)]


def rust(folder: Path) -> list[str]:
    run(folder, "cargo", "build", "--quiet", "--locked", "--target-dir", "build")
    return [str(folder / "build/debug/recalld-contract")]


@dataclass(frozen=True)
class Toolchain:
    """How the program of a language is built."""

    needs: tuple[str, ...]
    build: Callable[[Path], list[str]]
    """Builds it in its folder and gives the command that runs it."""


TOOLCHAINS = {
    "go": Toolchain(("go", "buf"), go),
    "typescript": Toolchain(("node", "npm"), typescript),
    "java": Toolchain(("java", "javac", "mvn", "buf"), java),
    "rust": Toolchain(("cargo",), rust),
}


@pytest.fixture(scope="module", params=["native", "python"])
def sidecar(request: pytest.FixtureRequest) -> Iterator[RunningSidecar]:
    """A sidecar that serves by either front, on a Unix socket and on TCP."""
    with running_sidecar(flags=["--front", request.param, "--listen", "127.0.0.1:0"]) as running:
        yield running


@pytest.fixture(scope="module", params=TOOLCHAINS)
def program(request: pytest.FixtureRequest) -> tuple[str, list[str]]:
    """The language and the command of its program."""
    language: str = request.param
    chain = TOOLCHAINS[language]
    missing = [tool for tool in chain.needs if shutil.which(tool, path=PATH) is None]
    if missing:
        reason = f"{language} needs {', '.join(missing)}, which this machine does not have"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return language, chain.build(HERE / language)


def run(folder: Path, *command: str) -> str:
    """Run a command of a build and give what it prints."""
    ran = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        env=os.environ | {"PATH": PATH},
        check=False,
    )
    assert ran.returncode == 0, f"{' '.join(command)}:\n{ran.stdout[-4000:]}\n{ran.stderr[-4000:]}"
    return ran.stdout


def is_newer(made: Path, source: Path) -> bool:
    return made.exists() and made.stat().st_mtime >= source.stat().st_mtime


def hits(found: Search) -> list[dict[str, Any]]:
    names = ("id", "key", "summary", "content_tokens")
    return [{name: getattr(hit, name) for name in names} for hit in found]


def seen_from_python(namespace: Namespace) -> dict[str, Any]:
    """What the programs print, of what they have written."""
    meal, seat = (details := namespace.get(keys=["meal", "none", "seat"]))
    brief = namespace.brief("book a flight", budget_tokens=200)
    with namespace.search_stream() as stream:
        streamed = [stream.submit(query) for query in ("seat", "meal", Query("x", limit=0))]
    with pytest.raises(recalld.InvalidArgument) as caught:
        namespace.search("x", limit=0)
    error, failed = caught.value, streamed[2].exception()
    assert isinstance(failed, recalld.InvalidArgument)
    return {
        "health": "SERVING",
        "outcomes": ["WRITE_OUTCOME_STORED"] * 2,
        "hits": hits(namespace.search("which seat does she like?", limit=5)),
        "content": meal.content,
        "order": str(seat.metadata["order"]),
        "missing": list(details.missing_keys),
        "brief": brief.text,
        "tokens": brief.tokens,
        "stream": {str(tag): hits(future.result()) for tag, future in enumerate(streamed[:2])},
        "failed": {"2": str(failed.code.value[0])},
        "error": {
            "code": error.code.value[0],
            "reason": error.reason,
            "domain": "recalld",
            "fields": [violation.field for violation in error.violations],
        },
    }


def test_a_program_sees_what_python_sees(program: tuple[str, list[str]], sidecar: RunningSidecar) -> None:
    language, command = program
    ran = subprocess.run(
        [*command, *sidecar.addresses], capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    assert ran.returncode == 0, ran.stderr
    answers = json.loads(ran.stdout)
    assert answers.keys() == set(sidecar.addresses)
    with Client(sidecar.address, timeout=RUN_SECONDS) as client:
        for number, address in enumerate(sidecar.addresses):
            expected = seen_from_python(client.namespace("toolchains", language, str(number)))
            assert expected["order"] == str(2**53 + 1)
            assert expected["content"].endswith("\u00c9t\u00e9 \u4e2d\u6587 \U0001f680")
            assert answers[address] == expected, address
