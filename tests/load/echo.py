"""An empty gRPC service: the least that a call through grpcio costs. Run as a process of its own.

It answers every call with the same bytes, as many as it was told; its server has grpcio's default options.
"""

import argparse
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import grpc

from tests.load.corpus import ROOT

METHOD = "/recalld.load.Echo/Answer"
THREADS = 64


class _Anything(grpc.GenericRpcHandler):
    def __init__(self, answer: bytes) -> None:
        self._handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
            lambda _request, _context: answer
        )

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> "grpc.RpcMethodHandler[Any, Any]":
        del handler_call_details
        return self._handler


@dataclass(frozen=True)
class Echo:
    """A running service."""

    address: str
    pid: int


@contextmanager
def running_echo(answer_bytes: int) -> Iterator[Echo]:
    """Run a service that answers with so many bytes."""
    with tempfile.TemporaryDirectory(prefix="recalld-echo-") as folder:
        address = f"unix:{folder}/echo.sock"
        command = [sys.executable, "-m", "tests.load.echo", address, str(answer_bytes)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert process.stdout is not None
        with process, process.stdout:
            try:
                assert process.stdout.readline() == "serving\n"
                yield Echo(address, process.pid)
            finally:
                process.terminate()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("answer_bytes", type=int)
    arguments = parser.parse_args()
    server = grpc.server(ThreadPoolExecutor(THREADS))
    server.add_generic_rpc_handlers((_Anything(bytes(arguments.answer_bytes)),))
    server.add_insecure_port(arguments.address)
    signal.signal(signal.SIGTERM, lambda *_: server.stop(None))
    server.start()
    print("serving", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
