"""What `recalld.spawn` runs: a sidecar that ends when its standard input does.

The other end of that pipe is open only in the process that spawned it, and closes when it ends in any way:
that is surer than the signal that Linux can send, which comes already when the thread that spawned it ends.
Run by its path, so that nothing of the client is imported. `sys.argv` has the private folder of the socket,
which is removed at the end, and the arguments of the `recalld` command.
"""

import os
import runpy
import shutil
import signal
import sys
import threading


def _watch() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _main() -> None:
    # The sidecar waits for signals in its main thread; no other may take them.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    threading.Thread(target=_watch, daemon=True).start()
    _, folder, *arguments = sys.argv
    sys.argv = ["recalld", *arguments]
    try:
        runpy.run_module("recalld_sidecar", run_name="__main__")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _main()
