"""What keeps the server from serving, and what it tells an application out of `send`.

That an address cannot be had is `qserver.errors.CannotListen`, that the application does not start
`qserver.errors.ApplicationFailed`.
"""

from __future__ import annotations

from qserver.errors import ApplicationFailed as ApplicationFailed


class ClientGone(OSError):
    """Nobody's fault: the client closed the connection, so nothing more can be sent to it."""


class InvalidAnswer(RuntimeError):
    """The application's fault: what it sends is not an HTTP answer, or not in the right order."""
