"""What an application may meet, or be blamed for.

That an address cannot be had is `qserver.errors.CannotListen`.
"""

from __future__ import annotations


class ClientGone(OSError):
    """Nobody's fault: the client left before its request had come, or before its answer had."""


class InvalidAnswer(RuntimeError):
    """The application's fault: what it gives is not an answer of HTTP."""
