"""What an application may meet, or be blamed for.

That an address cannot be had is `qserver.errors.CannotListen`.
"""

from __future__ import annotations


class ClientGone(OSError):
    """Nobody's fault: the client left before its request had come, or before its answer had."""


class BodyRefused(ClientGone):
    """The client's fault: its body is malformed, too slow or too large, and is not read on.

    The server answers it, unless the application does.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class InvalidAnswer(RuntimeError):
    """The application's fault: what it gives is not an answer of HTTP."""
