"""Decodes a JSON array of objects while it arrives.

    [{"a": 1}, {"a": 2}, {"a":        a piece of the body
     ───────── run ─────  └ begun     whole objects are decoded together, the rest waits

A regular expression finds where objects end, by brackets and strings; msgspec then decodes them and
finds all other errors. Objects nested deeper than the expression handles are taken one by one.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, Final

import msgspec

from qserver.errors import InvalidRequest
from qserver.limits import BULK_ROW_BYTES_MAX
from qserver.web.bulk.bulk_rows import BOM, ROWS_AT_ONCE, TOO_LONG, Batches, ObjectBatches
from qserver.web.statements.requests import NOT_JSON, decoder_of

DEPTH: Final = 4
"""Brackets within an object that the expression follows."""

TOKENS_AT_ONCE: Final = 5000
"""Brackets and strings of a deeper object that are looked at before others run."""

RUN_BYTES_MAX: Final = 256 * 1024
"""Bytes in which whole objects are looked for at once."""

_STRING: Final = rb'"[^"\\]*+(?>\\.[^"\\]*+)*+"'
_SPACE: Final = rb"[ \t\r\n]*+"


def _object(depth: int) -> bytes:
    inner = rb'[^"{}\[\]]++|' + _STRING
    within = inner
    for _ in range(depth):
        within = rb"%b|[\[{](?>%b)*+[\]}]" % (inner, within)
    return rb"\{(?>%b)*+\}" % within


_OBJECT: Final = re.compile(_object(DEPTH), re.DOTALL)
_RUN: Final = re.compile(
    rb"(?>%b%b%b,){0,%d}+" % (_SPACE, _OBJECT.pattern, _SPACE, ROWS_AT_ONCE), re.DOTALL
)
_TOKEN: Final = re.compile(rb'[^"{}\[\]]*+(%b|["{}\[\]]|\Z)' % _STRING, re.DOTALL)
"""A bracket or a string, or the end, with what lies before it: so no place is searched twice."""
_BLANKS: Final = re.compile(_SPACE)

_many: Final[msgspec.json.Decoder[list[dict[str, Any]]]] = decoder_of(list[dict[str, Any]])
_one: Final[msgspec.json.Decoder[dict[str, Any]]] = decoder_of(dict[str, Any])


class JsonArrayDecoder:
    def __init__(self, only: tuple[str, ...] | None) -> None:
        self._batches = ObjectBatches(only)
        self._awaits = "["
        """The signs that may come next: `[`, `{` or `]`, `{`, `,` or `]`, none."""
        self._pieces: list[bytes] = []
        """What has arrived and is not decoded."""
        self._size = 0
        self._wanted = 0
        """Look again when there is so much: an object that has not ended is not read each time."""

    def feed(self, data: bytes, *, last: bool = False) -> Batches:
        self._pieces.append(data)
        self._size += len(data)
        if self._size < self._wanted and not last:
            return
        text = b"".join(self._pieces)
        at = self._begin(text) if self._awaits == "[" else 0
        while self._awaits != "[":
            at = _BLANKS.match(text, at).end()  # type: ignore[union-attr]
            if at == len(text):
                break
            sign = text[at : at + 1].decode("latin-1")
            if sign not in self._awaits:
                raise self._misplaced(sign)
            if sign in ",]":
                self._awaits = "{" if sign == "," else " "
                at += 1
                continue
            run = _RUN.match(text, at, at + RUN_BYTES_MAX)
            if run is not None and run.end() > at:
                yield from self._decoded(text[at : run.end() - 1])
                at, self._awaits = run.end(), "{"
                continue
            end = yield from _end_of_object(text, at)
            if (len(text) if end is None else end) - at > BULK_ROW_BYTES_MAX:
                raise self._batches.refuse(TOO_LONG)
            if end is None:
                break
            yield from self._decoded(text[at:end])
            at, self._awaits = end, ",]"
        if last and self._awaits != " ":
            raise InvalidRequest("the body is not JSON: it ends before the array does")
        self._pieces = [text[at:]]
        self._size = len(text) - at
        self._wanted = 2 * self._size

    def _begin(self, text: bytes) -> int:
        if text and len(text) < len(BOM) and BOM.startswith(text):
            return 0
        start = len(BOM) if text.startswith(BOM) else 0
        start = _BLANKS.match(text, start).end()  # type: ignore[union-attr]
        if text[start : start + 1] == b"[":
            self._awaits = "{]"
            return start + 1
        if start < len(text):
            raise InvalidRequest(
                "the body is not a JSON array of objects",
                hint="Send JSON lines as application/x-ndjson, and CSV as text/csv.",
            )
        return start

    def _misplaced(self, sign: str) -> InvalidRequest:
        if self._awaits == " ":
            return InvalidRequest("the body is not JSON: it goes on after its end")
        if "{" in self._awaits:
            return self._batches.refuse("is not a JSON object")
        return self._batches.refuse(f"has {sign!r} before it, and not a comma")

    def _decoded(self, objects: bytes) -> Batches:
        if len(objects) > RUN_BYTES_MAX:  # it is one
            yield from self._batches.of_long(objects)
            return
        try:
            found = _many.decode(b"[%b]" % objects)
        except NOT_JSON:
            yield from self._one_by_one(objects)
            return
        yield from self._batches.of(found)

    def _one_by_one(self, objects: bytes) -> Batches:
        """Yield the rows before the bad one, then raise its error."""
        good: list[dict[str, Any]] = []
        at = 0
        while (start := objects.find(b"{", at)) >= 0:
            at = (yield from _end_of_object(objects, start)) or len(objects)
            try:
                good.append(_one.decode(objects[start:at]))
            except NOT_JSON as error:
                yield from self._batches.of(good)
                raise self._batches.refuse_json(error) from None
        raise AssertionError("each object alone is JSON, and all together are not")


def _end_of_object(text: bytes, start: int) -> Generator[None, None, int | None]:
    """The end of the object that begins at `start`, or None. Yields now and then."""
    whole = _OBJECT.match(text, start, start + RUN_BYTES_MAX)
    if whole is not None:
        return whole.end()
    depth = 0
    for count, token in enumerate(_TOKEN.finditer(text, start), 1):
        if not count % TOKENS_AT_ONCE:
            yield None
        sign = text[token.start(1) : token.start(1) + 1]
        if sign in (b"{", b"["):
            depth += 1
        elif sign in (b"}", b"]"):
            depth -= 1
            if not depth:
                return token.end()
        elif token.end() - token.start(1) <= 1:
            return None  # a string that has not ended, or the end
    return None
