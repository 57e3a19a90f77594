"""The head of an answer, rendered: what the application said, and what HTTP asks of a server.

The application decides status and headers; how the body is delimited and whether the connection
goes on is decided here:

    body known at once, or length given   Content-Length
    length unknown, HTTP/1.1              Transfer-Encoding: chunked
    length unknown, HTTP/1.0              the connection ends with the body
    HEAD, 204, 304                        no body, whatever the application sends

A header with a line break inside would let whoever chose its value write headers, or a whole second
answer. Names are checked one by one, and remembered; values all at once, by counting the line
breaks of the finished head.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from qserver.web.http1.errors import InvalidAnswer
from qserver.web.http1.head import TOKEN

STATUS_LINES: Final = {
    each.value: b"HTTP/1.1 %d %s\r\n" % (each.value, each.phrase.encode())
    for each in HTTPStatus
    if each.value >= 200
}
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
NAME: Final = re.compile(TOKEN)
NAMES_KEPT_MAX: Final = 512

# Headers that mean something to the server; all others are passed on as they are.
CONTENT_LENGTH, CONNECTION, DATE, REQUEST_ID, FRAMING = range(1, 6)
MEANINGS: Final = {
    b"content-length": CONTENT_LENGTH,
    b"connection": CONNECTION,
    b"date": DATE,
    b"x-request-id": REQUEST_ID,
    # The server frames bodies and owns the connection: what an application says of it is left out.
    b"transfer-encoding": FRAMING,
    b"keep-alive": FRAMING,
    b"upgrade": FRAMING,
}


@dataclass(slots=True)
class AnswerHead:
    """A rendered head, and what follows from it for the body."""

    data: bytes
    chunked: bool
    length: int | None
    """Bytes of body that have been promised; None if nothing was."""
    bodiless: bool
    keep_alive: bool
    request_id: bytes | None


class HeadRenderer:
    """Renders heads; remembers names that were checked, and the date of this second."""

    __slots__ = ("_date", "_names", "_second")

    def __init__(self) -> None:
        self._names: dict[bytes, int] = {}
        self._second = -1
        self._date = b""

    def render(
        self,
        status: int,
        headers: Iterable[tuple[bytes, bytes]],
        *,
        known_length: int | None,
        head_request: bool,
        modern: bool,
        keep_alive: bool,
    ) -> AnswerHead:
        """`known_length`: of a body that is there as a whole; None for one that comes in parts."""
        bodiless = head_request or status in (204, 304)
        length = None
        request_id = None
        dated = False
        lines = 3  # status, date, and the empty one
        names = self._names
        parts = [STATUS_LINES.get(status) or _status_line(status)]
        for name, value in headers:
            meaning = names.get(name)
            if meaning is None:
                meaning = self._learn(name)
            if meaning:
                if meaning == CONTENT_LENGTH:
                    length = _length(value, length)
                    continue
                if meaning == CONNECTION:
                    keep_alive = keep_alive and value.lower() != b"close"
                    continue
                if meaning == FRAMING or (meaning == DATE and dated):
                    continue
                if meaning == REQUEST_ID:
                    request_id = value
                else:
                    dated = True
                    lines -= 1
            parts += (name, b": ", value, b"\r\n")
            lines += 1
        if length is None:
            length = known_length
        chunked = length is None and not bodiless and modern
        if chunked:
            parts.append(b"transfer-encoding: chunked\r\n")
            lines += 1
        elif length is not None and status != 204:
            parts.append(b"content-length: %d\r\n" % length)
            lines += 1
        elif not bodiless:
            keep_alive = False
        if not dated:
            parts.append(self._date_line())
        if not keep_alive:
            parts.append(b"connection: close\r\n")
            lines += 1
        elif not modern:
            parts.append(b"connection: keep-alive\r\n")
            lines += 1
        parts.append(b"\r\n")
        data = b"".join(parts)
        if not data.count(b"\r\n") == data.count(b"\n") == data.count(b"\r") == lines:
            raise InvalidAnswer("a header has a line break in its value")
        if b"\0" in data:
            raise InvalidAnswer("a header has a NUL character in its value")
        return AnswerHead(data, chunked, length, bodiless, keep_alive, request_id)

    def render_lane(self, status: int, lines: bytes, body: bytes) -> bytes:
        """A whole answer whose header lines the application vouches for."""
        return b"%b%bcontent-length: %d\r\n%b\r\n%b" % (
            STATUS_LINES[status],
            lines,
            len(body),
            self._date_line(),
            body,
        )

    def _learn(self, name: bytes) -> int:
        if NAME.fullmatch(name) is None:
            raise InvalidAnswer(f"{name!r} is not the name of a header")
        meaning = MEANINGS.get(name.lower(), 0)
        if len(self._names) < NAMES_KEPT_MAX:
            self._names[name] = meaning
        return meaning

    def _date_line(self) -> bytes:
        now = int(time.time())
        if now != self._second:
            self._second = now
            self._date = b"date: %s\r\n" % formatdate(now, usegmt=True).encode()
        return self._date


def _length(value: bytes, before: int | None) -> int:
    if before is not None or not value.isdigit():
        raise InvalidAnswer(f"{value!r} is no Content-Length, or a second one")
    return int(value)


def _status_line(status: int) -> bytes:
    if not 200 <= status <= 999:
        raise InvalidAnswer(f"{status!r} is not the status of an answer")
    return b"HTTP/1.1 %d \r\n" % status
