"""The headers of an answer, checked and rendered once. Most answers share one `Headers`.

A line break in a value would let its author write further headers, or a whole second answer. The
server alone sends framing, connection, date and request id, so an application's headers may not
name them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from qserver.http1.errors import InvalidAnswer

TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
NAME: Final = re.compile(TOKEN)
SERVERS_OWN: Final = frozenset(
    {
        b"connection",
        b"content-length",
        b"date",
        b"keep-alive",
        b"transfer-encoding",
        b"upgrade",
        b"x-request-id",
    }
)


class Headers:
    """`pairs` to inspect, `lines` to send. Immutable."""

    __slots__ = ("lines", "pairs")

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self.pairs = tuple(pairs)
        self.lines = b"".join([b"%b: %b\r\n" % each for each in self.pairs])
        for name, _ in self.pairs:
            if NAME.fullmatch(name) is None:
                raise InvalidAnswer(f"{name!r} is not the name of a header")
            if name.lower() in SERVERS_OWN:
                raise InvalidAnswer(f"the header {name.decode()} is for the server to send")
        lines, count = self.lines, len(self.pairs)
        if not lines.count(b"\r\n") == lines.count(b"\n") == lines.count(b"\r") == count:
            raise InvalidAnswer("a header has a line break in its value")
        if b"\0" in lines:
            raise InvalidAnswer("a header has a NUL character in its value")

    def __repr__(self) -> str:
        return f"<{len(self.pairs)} headers, {len(self.lines)} bytes>"
