"""Decodes quoted strings and identifiers.

    'it''s'                     two quotes are one
    'foo' ⏎ 'bar'               strings separated only by a line end are one
    E'a\\tb \\x41 \\101 \\u0041'     backslashes; octal and hexadecimal ones are bytes of UTF-8
    U&'\\0041 \\+000041'          code points; UESCAPE '!' replaces the backslash
    U&"\\0041"                   the same for identifiers

The caller adds the positions of errors, because it knows where the string begins.
"""

from __future__ import annotations

import re
from typing import Final

from qserver.errors import CharacterNotInRepertoire, InvalidEscapeSequence, SqlSyntaxError
from qserver.lexing.lexer import QUOTE_INSIDE

_QUOTE: Final = re.compile(QUOTE_INSIDE)
_ESCAPE: Final = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))",
    re.DOTALL,
)
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_CLAUSE: Final = re.compile(r"""(.*["'])[ \t\n\r\f]*uescape[ \t\n\r\f]*'([^']*)'""", re.I | re.S)
_NO_ESCAPE_SIGN: Final = frozenset("+'\" \t\n\r\f0123456789abcdefABCDEF")
_HIGHEST_POINT = 0x10FFFF


def unquoted(body: str) -> str:
    """Return the text of a plain string; `body` is the part between the outer quotes."""
    if "'" not in body:
        return body
    return _QUOTE.sub(lambda found: "'" if len(found.group()) == 2 else "", body)


def escaped_text(body: str) -> str:
    """Return the text of an E'' string. Escapes are found first: `\\'` is no doubled quote."""
    if "\\" not in body:
        return unquoted(body)
    pieces: list[bytes] = []
    position = 0
    for found in _ESCAPE.finditer(body):
        pieces.append(unquoted(body[position : found.start()]).encode())
        pieces.append(_escaped(found))
        position = found.end()
    pieces.append(unquoted(body[position:]).encode())
    return _checked(b"".join(pieces))


def unicode_text(text: str) -> str:
    """Return the text of a U& string or identifier, given with quotes and UESCAPE clause."""
    sign = "\\"
    clause = _CLAUSE.fullmatch(text)
    if clause:
        text, sign = clause.groups()
        if len(sign) != 1 or sign in _NO_ESCAPE_SIGN:
            raise SqlSyntaxError(f"invalid Unicode escape character at or near \"'{sign}'\"")
    body = text[3:-1]
    body = body.replace('""', '"') if text[2] == '"' else unquoted(body)
    mark = re.escape(sign)
    escape = re.compile(rf"{mark}(?:({mark})|([0-9A-Fa-f]{{4}})|\+([0-9A-Fa-f]{{6}}))?")
    return _paired(escape.sub(lambda found: _point_or_sign(found, sign), body))


def _escaped(found: re.Match[str]) -> bytes:
    octal, hexadecimal, short, long, letter = found.groups()
    if octal:
        return bytes([int(octal, 8) & 255])
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if short or long:
        return _point(int(short or long, 16)).encode("utf-8", "surrogatepass")
    if letter in ("u", "U"):
        raise InvalidEscapeSequence(
            "invalid Unicode escape", hint="Unicode escapes must be \\uXXXX or \\UXXXXXXXX."
        )
    return _LETTERS.get(letter, letter).encode()


def _point_or_sign(found: re.Match[str], sign: str) -> str:
    doubled, short, long = found.groups()
    if doubled:
        return sign
    if not short and not long:
        raise SqlSyntaxError(
            "invalid Unicode escape", hint="Unicode escapes must be \\XXXX or \\+XXXXXX."
        )
    return _point(int(short or long, 16))


def _point(point: int) -> str:
    if not 0 < point <= _HIGHEST_POINT:
        raise SqlSyntaxError("invalid Unicode escape value")
    return chr(point)


def _checked(data: bytes) -> str:
    """Decode UTF-8, refusing invalid bytes and NUL."""
    try:
        text = data.decode("utf-8", "surrogatepass")
        bad = b"\0" if "\0" in text else b""
    except UnicodeDecodeError as error:
        text, bad = "", data[error.start : error.end]
    if bad:
        sequence = " ".join(f"0x{byte:02x}" for byte in bad)
        raise CharacterNotInRepertoire(f'invalid byte sequence for encoding "UTF8": {sequence}')
    return _paired(text)


def _paired(text: str) -> str:
    """Combine surrogate pairs into characters and refuse a lone surrogate."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise SqlSyntaxError("invalid Unicode surrogate pair") from None
