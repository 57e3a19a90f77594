"""Decodes long JSON in parts; other tasks run in between.

    [1, 2, {"a": [3]}, 4]
     ─────┐ └───┬───┘  └─ a part
     a part     └ nested: parts of its own

msgspec decodes a megabyte of small values in a tenth of a second, and nothing can interrupt it. So
msgspec first scans a long body as a whole (`msgspec.Raw`: a few milliseconds, finds invalid JSON),
and then decodes runs of some hundred members. This module does not check the syntax again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any, Final

from qserver.functions.costs import refuse_size
from qserver.limits import ROW_BYTES_MAX
from qserver.values.sizes import size_of

RUN_MEMBERS: Final = 256
"""Members of a list or object decoded at once."""

CONTAINER_BYTES: Final = 64
"""The charge for a member of an object, besides its value; a list or object costs twice this."""

_MEMBER: Final = rb'(?>[^\[\]{}",]++|"[^"\\]*+(?>\\.[^"\\]*+)*+")*+'
_PART: Final = re.compile(rb"((?>%b,){0,%d}+)(%b)" % (_MEMBER, RUN_MEMBERS, _MEMBER), re.DOTALL)
"""Members without a bracket, and the text after their last comma."""
_COMMA: Final = re.compile(rb"\s*,?")

Decode = Callable[[bytes], Any]


def decode_in_steps(text: bytes, decode: Decode) -> Generator[None, None, Any]:
    """The value of a text that is valid JSON. `decode` decodes its parts."""
    text = text.strip()
    if text[:1] not in (b"[", b"{"):
        return decode(text)
    container: Any = [] if text[:1] == b"[" else {}
    around: list[Any] = []
    at, total = 1, 0
    while True:
        if total > ROW_BYTES_MAX:
            raise refuse_size(total, ROW_BYTES_MAX)
        part = _PART.match(text, at)
        assert part is not None, "it matches nothing, too"
        end = part.end()
        sign = text[end : end + 1]
        is_nested = sign in (b"[", b"{")
        members = (part[1] if is_nested else part[0]).rstrip(b", \t\r\n")
        if members:
            total += _add(container, members, decode)
        yield None
        at = end + 1
        if is_nested:
            total += 2 * CONTAINER_BYTES
            nested: Any = [] if sign == b"[" else {}
            if type(container) is list:
                container.append(nested)
            else:
                container[decode(part[2].rstrip()[:-1])] = nested
            around.append(container)
            container = nested
        elif sign != b",":
            if not around:
                return container
            container = around.pop()
            at = _COMMA.match(text, at).end()  # type: ignore[union-attr]


def _add(container: Any, members: bytes, decode: Decode) -> int:
    """Add members to the container; return their size in bytes."""
    if type(container) is list:
        values = decode(b"[%b]" % members)
        container += values
        return size_of(values)
    added = decode(b"{%b}" % members)
    container.update(added)
    return CONTAINER_BYTES * len(added) + size_of([*added.values()])
