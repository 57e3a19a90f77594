"""Extracts parts of a JSON text as texts, for `->`, without reading the other parts.

The parts of a canonical text are canonical, so the same functions serve JSON and JSONB. msgspec
finds the parts in C and reads only one level; for a text that msgspec refuses (JSON may hold half a
surrogate pair), `_pieces` finds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from qserver.values.json_input import structure_from_text

_BLANKS: Final = " \t\n\r"
_TOKEN: Final = re.compile(r'"(?>[^"\\]|\\.)*+"|[{}\[\],:]|[^{}\[\],:"\s]+', re.DOTALL)
_KINDS: Final = {"{": "object", "[": "array", '"': "string", "t": "boolean", "f": "boolean"}


def kind_of(text: str) -> str:
    """object, array, string, number, boolean or null."""
    first = text.lstrip(_BLANKS)[:1]
    return "null" if first == "n" else _KINDS.get(first, "number")


def member(text: str, key: str) -> str | None:
    """The value of a key in an object's text; None if absent."""
    try:
        raw = _decode_object(text).get(key)
    except msgspec.MsgspecError:
        return dict(members(text)).get(key)
    return None if raw is None else bytes(raw).decode()


def members(text: str) -> list[tuple[str, str]]:
    """All keys and values of an object's text, repeated keys included."""
    pieces = _pieces(text)
    return [(structure_from_text(pieces[at]), pieces[at + 1]) for at in range(0, len(pieces), 2)]


def elements(text: str) -> list[str]:
    try:
        return [bytes(raw).decode() for raw in _decode_array(text)]
    except msgspec.MsgspecError:
        return _pieces(text)


def scalar_text(text: str) -> str | None:
    """A part as `->>` gives it: a string without its quotes, NULL for null, all else unchanged."""
    text = text.strip(_BLANKS)
    if text.startswith('"'):
        return str(structure_from_text(text))
    return None if text == "null" else text


def _pieces(text: str) -> list[str]:
    """The texts between the commas and colons of the outermost level."""
    pieces: list[str] = []
    depth, start, end = 0, 0, 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in "{[":
            depth += 1
            if depth == 1:
                start = end = match.end()
                continue
        elif token in "}]":
            depth -= 1
        if (depth == 1 and token in ",:") or depth == 0:
            if end > start:
                pieces.append(text[start:end].strip(_BLANKS))
            start = end = match.end()
        else:
            end = match.end()
    return pieces


_decode_object: Callable[[str], dict[str, msgspec.Raw]] = msgspec.json.Decoder(
    dict[str, msgspec.Raw]
).decode
_decode_array: Callable[[str], list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw]).decode
