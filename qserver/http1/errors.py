"""Errors that an application catches or causes.

An address that cannot be bound raises `qserver.errors.CannotListen`.
"""

from __future__ import annotations


class ClientGone(OSError):
    """Nobody's fault: the client left before its request or its answer was complete."""


class BodyRefused(ClientGone):
    """The client's fault: its body is malformed, too slow or too large; the server stops reading.

    The server answers, unless the application does.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class AnswerCut(Exception):
    """Nobody's fault: an answer that has begun cannot be finished, and has no words for why.

    The server ends the connection, so that the client does not take what it has for the whole.
    """


class InvalidAnswer(RuntimeError):
    """The application's fault: its answer is not valid HTTP."""


def is_only(error: Exception, kind: type[Exception]) -> bool:
    """Is `error` of this kind, or a group of nothing else?"""
    if isinstance(error, ExceptionGroup):
        return error.split(kind)[1] is None
    return isinstance(error, kind)
