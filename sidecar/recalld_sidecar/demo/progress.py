"""Progress of long work on standard error: one line that changes on a terminal, a line each tenth elsewhere.

Work that is done before anyone would wonder says nothing.
"""

import sys
import time

_PATIENCE_SECONDS = 2.0
_STEPS = 10


class Progress:
    """How far one piece of work has come."""

    def __init__(self, work: str, total: int) -> None:
        """Begin `work`, which has `total` steps."""
        self._work = work
        self._total = total
        self._done = 0
        self._shown = ""
        self._began = time.monotonic()
        self._terminal = sys.stderr.isatty()

    def advance(self, steps: int = 1) -> None:
        """Count steps that are done; the last one takes the terminal's line away again."""
        self._done += steps
        if self._terminal and self._done >= self._total:
            self._show("")
        elif time.monotonic() - self._began >= _PATIENCE_SECONDS:
            # A terminal may change with every per cent, lines that stay only with every tenth.
            parts = 100 if self._terminal else _STEPS
            part = self._done * parts // self._total
            self._show(f"{self._work}: {part * 100 // parts} % of {self._total:,}")

    def _show(self, text: str) -> None:
        if text == self._shown:
            return
        if self._terminal:
            print(
                f"\r{text.ljust(len(self._shown))}", end="\r" if not text else "", file=sys.stderr, flush=True
            )
        else:
            print(text, file=sys.stderr, flush=True)
        self._shown = text
