"""Remembers how far the store had come when this client last heard of it, so that it reads its own writes.

Tokens are opaque: this module must never compare them or look inside. What it relies on is the server's
promise that an answer's state is at least as new as the token its request carried.
"""

import threading


class Tokens:
    """The consistency token of one client; safe to use from many threads.

    A write's token always replaces the remembered one. A read's does only when its request carried the one
    that is still remembered: then it cannot be older. So reads never go back, and after a write the client
    sees that write. Of writes that overlap in time, the one whose answer came last is remembered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest = ""

    @property
    def newest(self) -> str:
        """The remembered token, empty when there is none."""
        return self._newest

    def wrote(self, token: str) -> None:
        """Remember the token of a write."""
        with self._lock:
            self._newest = token

    def read(self, sent: str, token: str) -> None:
        """Remember the token of a read that carried `sent`, unless another took its place meanwhile."""
        with self._lock:
            if self._newest == sent:
                self._newest = token

    def refused(self, sent: str) -> None:
        """Forget a token that the server does not know, so that the next call goes without."""
        self.read(sent, "")
