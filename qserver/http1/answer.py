"""Renders answers: the application's status and headers, and the server's own.

The framing of the body follows from the answer and the request:

    whole body                     Content-Length
    body in parts, HTTP/1.1        Transfer-Encoding: chunked
    body in parts, HTTP/1.0        the connection ends with the body
    HEAD, 204, 304                 no body, whatever the application gives
"""

from __future__ import annotations

from email.utils import formatdate
from enum import Enum
from http import HTTPStatus
from time import monotonic, time
from typing import Final

from qserver.http1.application import Response
from qserver.http1.errors import InvalidAnswer
from qserver.http1.head import Head
from qserver.http1.headers import Headers

STATUS_LINES: Final = {
    each.value: b"HTTP/1.1 %d %s\r\n" % (each.value, each.phrase.encode())
    for each in HTTPStatus
    if each.value >= 200
}
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
BODILESS: Final = (204, 304)
CLOSE: Final = b"connection: close\r\n"
KEEP_ALIVE: Final = b"connection: keep-alive\r\n"


class Framing(Enum):
    """How a client finds the end of a body that comes in parts."""

    NO_BODY = "there is none"
    CHUNKS = "chunks"
    CONNECTION = "the end of the connection"


def is_bodiless(response: Response, head: Head | None) -> bool:
    return response.status in BODILESS or (head is not None and head.is_head)


def framing_of(response: Response, head: Head) -> Framing:
    if is_bodiless(response, head):
        return Framing.NO_BODY
    return Framing.CHUNKS if head.modern else Framing.CONNECTION


class HeadRenderer:
    """Renders heads; caches the date for one second."""

    __slots__ = ("_date", "_until")

    def __init__(self) -> None:
        self._until = 0.0
        """The date holds until then, by the monotonic clock."""
        self._date = b""

    def render(
        self,
        response: Response,
        body: bytes | None,
        head: Head | None,
        keep_alive: bool,
        now: float,
    ) -> bytes:
        """A whole answer with its body; with None, the head of one whose body comes in parts.

        `head` is None if the server could not read the request's head. `now` is by the monotonic
        clock.
        """
        status, request_id = response.status, response.request_id
        if body is None:
            chunked = head is not None and framing_of(response, head) is Framing.CHUNKS
            framing, body = b"transfer-encoding: chunked\r\n" if chunked else b"", b""
        elif status in BODILESS:
            framing = body = b""
        else:
            framing = b"content-length: %d\r\n" % len(body)
            if head is not None and head.is_head:
                body = b""
        if not keep_alive:
            framing += CLOSE
        elif head is not None and not head.modern:
            framing += KEEP_ALIVE
        if not request_id.isprintable():
            raise InvalidAnswer(f"{request_id!r} is no request id")
        if now >= self._until:
            self._renew_date()
        return b"%b%bx-request-id: %b\r\n%b%b\r\n%b" % (
            STATUS_LINES.get(status) or _status_line(status),
            response.headers.lines,
            request_id.encode(),
            framing,
            self._date,
            body,
        )

    def _renew_date(self) -> None:
        now = time()
        self._date = b"date: %b\r\n" % formatdate(now, usegmt=True).encode()
        self._until = monotonic() + 1 - now % 1


class MarkedRenderer(HeadRenderer):
    """Adds headers to all answers, but to those that have them."""

    __slots__ = ("_marks",)

    def __init__(self, marks: Headers) -> None:
        super().__init__()
        self._marks = marks

    def render(
        self,
        response: Response,
        body: bytes | None,
        head: Head | None,
        keep_alive: bool,
        now: float,
    ) -> bytes:
        return super().render(response.marked(self._marks), body, head, keep_alive, now)


def _status_line(status: int) -> bytes:
    if not 200 <= status <= 999:
        raise InvalidAnswer(f"{status!r} is not the status of an answer")
    return b"HTTP/1.1 %d \r\n" % status
