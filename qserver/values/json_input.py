"""Reads JSON as PostgreSQL does: `json_from_text` keeps the text, `jsonb_from_text` its meaning.

msgspec reads nearly every text, in C. If msgspec refuses a text, `_Reader` reads it again, slowly:
it raises PostgreSQL's error, or accepts one of the few texts that are JSON all the same (numbers of
thousands of digits, and for `json`, which does not look into its strings, halves of surrogate
pairs).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from json import JSONDecoder
from typing import Any, Final

import msgspec

from qserver.errors import (
    InvalidTextRepresentation,
    ProgramLimitExceeded,
    QserverError,
    StatementTooComplex,
    UntranslatableCharacter,
)
from qserver.limits import JSON_DEPTH_MAX, VALUE_BYTES_MAX
from qserver.values.jsonb import Jsonb, Structure, jsonb_of
from qserver.values.text_input import numeric_from_text

_ALNUM: Final = r"[^\x00-/:-@\[-^`{-\x7f]"  # also _ and what is not ASCII: fast to compile
_TOKEN: Final = re.compile(
    rf"""(?P<mark>[{{}}\[\],:])
      | (?P<string>"(?>[^"\\]|\\.)*+")
      | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?!{_ALNUM}|\.(?![0-9]))
      | (?P<word>true|false|null)(?!{_ALNUM})""",
    re.VERBOSE | re.DOTALL,
)
_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_WRONG: Final = re.compile(
    rf"-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]*)?{_ALNUM}*|-{_ALNUM}*|{_ALNUM}+|.", re.DOTALL
)
_NESTING: Final = re.compile(r'"(?>[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_ESCAPE: Final = re.compile(r'\\(?:u([0-9a-fA-F]{4})|(["\\/bfnrt]))')
_LOOKED_AT: Final = re.compile(rf"[\x00-\x1f]|{_ESCAPE.pattern}|\\")
"""Characters of a string that may be invalid: control characters, escapes, other backslashes."""

COUNTED_LENGTH_MIN: Final = 8 * 1024
NUMBER_BYTES: Final = 40
"""What a short number takes in memory, for each of its characters."""

_CONSTANTS: Final = {"true": True, "false": False, "null": None}


def json_from_text(text: str) -> str:
    """The text itself, if it is valid JSON."""
    _check_depth(text)
    try:
        _check(text)
    except (msgspec.DecodeError, UnicodeError, QserverError):
        _Reader(text, into_strings=False).read()
    return text


def jsonb_from_text(text: str) -> Jsonb:
    """The canonical form of a JSON text."""
    return jsonb_of(structure_from_text(text))


def structure_from_text(text: str) -> Structure:
    """The structure of a JSON text; of equal keys the last wins."""
    _check_depth(text)
    try:
        value = _decode(text) if len(text) < COUNTED_LENGTH_MIN else _counted(text)
    except (msgspec.DecodeError, UnicodeError):
        return _Reader(text, into_strings=True).read()
    if "\\u0000" in text:  # or an escaped backslash before u0000; the reader can tell
        return _Reader(text, into_strings=True).read()
    return value


def _check_depth(text: str) -> None:
    if text.count("[") + text.count("{") <= JSON_DEPTH_MAX:
        return
    depth = 0
    for match in _NESTING.finditer(text):
        if match[0] in "[{":
            depth += 1
        elif match[0] in "]}":
            depth -= 1
        if depth > JSON_DEPTH_MAX:
            raise StatementTooComplex(
                "stack depth limit exceeded",
                detail=f"JSON may be nested {JSON_DEPTH_MAX} levels deep.",
            )


class _Reader:
    """The slow path: one token after another, with PostgreSQL's error messages."""

    def __init__(self, text: str, into_strings: bool) -> None:
        self._text = text
        self._into_strings = into_strings
        self._at = 0
        self._token = ""
        self._kind = ""

    def read(self) -> Structure:
        self._next()
        value = self._value()
        if self._kind != "end":
            raise self._expected("end of input")
        return value

    def _next(self) -> None:
        match = _BLANKS.match(self._text, self._at)
        assert match is not None, "no blanks are blanks too"
        start = match.end()
        token = _TOKEN.match(self._text, start)
        if start == len(self._text):
            self._kind, self._token, self._at = "end", "", start
        elif token is None:
            raise self._wrong_token(start)
        else:
            self._kind, self._token, self._at = token.lastgroup or "", token[0], token.end()
            if self._kind == "string":
                self._check_string(token[0])

    def _value(self) -> Structure:
        token, kind = self._token, self._kind
        if token == "{":
            return self._object()
        if token == "[":
            return self._array()
        if kind in ("mark", "end"):
            raise self._expected("JSON value")
        self._next()
        if kind == "string":
            return _STRINGS.decode(token) if self._into_strings else token
        if kind == "number":
            return numeric_from_text(token) if self._into_strings else token
        return _CONSTANTS[token]

    def _object(self) -> dict[str, Structure]:
        members: dict[str, Structure] = {}
        self._next()
        if self._token == "}":
            self._next()
            return members
        if self._kind != "string":
            raise self._expected('string or "}"')
        while True:
            if self._kind != "string":
                raise self._expected("string")
            key = _STRINGS.decode(self._token) if self._into_strings else self._token
            self._next()
            if self._token != ":":
                raise self._expected('":"')
            self._next()
            members[key] = self._value()
            if self._token == "}":
                self._next()
                return members
            if self._token != ",":
                raise self._expected('"," or "}"')
            self._next()

    def _array(self) -> list[Structure]:
        elements: list[Structure] = []
        self._next()
        if self._token == "]":
            self._next()
            return elements
        while True:
            elements.append(self._value())
            if self._token == "]":
                self._next()
                return elements
            if self._token != ",":
                raise self._expected('"," or "]"')
            self._next()

    # --- errors ----------------------------------------------------------------------------------

    def _check_string(self, token: str) -> None:
        for match in _LOOKED_AT.finditer(token):
            found = match[0]
            if found < " ":
                raise _bad_json(f"Character with value 0x{ord(found):02x} must be escaped.")
            if found == "\\":
                raise self._wrong_escape(token, match.start())
        if self._into_strings:
            _check_unicode(token)

    def _wrong_escape(self, token: str, at: int) -> QserverError:
        if token[at + 1] == "u":
            return _bad_json('"\\u" must be followed by four hexadecimal digits.')
        return _bad_json(f'Escape sequence "\\{token[at + 1]}" is invalid.')

    def _wrong_token(self, start: int) -> QserverError:
        if self._text[start] == '"':
            self._check_string(self._text[start:] + '"')
            return _bad_json(f'Token "{self._text[start:]}" is invalid.')
        match = _WRONG.match(self._text, start)
        assert match is not None, "there is a character"
        return _bad_json(f'Token "{match[0]}" is invalid.')

    def _expected(self, what: str) -> QserverError:
        if self._kind == "end":
            return _bad_json("The input string ended unexpectedly.")
        return _bad_json(f'Expected {what}, but found "{self._token}".')


def _check_unicode(token: str) -> None:
    """Raise for escapes that no text can hold: NUL, and halves of surrogate pairs."""
    high_at = None  # the end of an open first half
    for match in _ESCAPE.finditer(token):
        code = int(match[1], 16) if match[1] else -1
        if code == 0:
            raise UntranslatableCharacter(
                "unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text."
            )
        if high_at is not None and not (match.start() == high_at and 0xDC00 <= code < 0xE000):
            if match.start() == high_at and 0xD800 <= code < 0xDC00:
                raise _bad_json("Unicode high surrogate must not follow a high surrogate.")
            raise _bad_json("Unicode low surrogate must follow a high surrogate.")
        if high_at is None and 0xDC00 <= code < 0xE000:
            raise _bad_json("Unicode low surrogate must follow a high surrogate.")
        high_at = match.end() if high_at is None and 0xD800 <= code < 0xDC00 else None
    if high_at is not None:
        raise _bad_json("Unicode low surrogate must follow a high surrogate.")


def _bad_json(detail: str) -> InvalidTextRepresentation:
    return InvalidTextRepresentation("invalid input syntax for type json", detail=detail)


_STRINGS = JSONDecoder()
_decode: Callable[[str], Any] = msgspec.json.Decoder(float_hook=numeric_from_text).decode
_check: Callable[[str], Any] = msgspec.json.Decoder(float_hook=str).decode
"""Numbers of a text that is kept are not read: 1e131000 has as many digits."""


def _counted(text: str) -> Structure:
    """`_decode` of a long text, whose numbers may have far more digits than it has characters."""
    size = 0

    def number(digits: str) -> Decimal:
        nonlocal size
        value = numeric_from_text(digits)
        size += value.__sizeof__()
        if size > VALUE_BYTES_MAX + len(text) * NUMBER_BYTES:
            raise ProgramLimitExceeded(
                "value is too large",
                detail=f"Its numbers have more digits than {VALUE_BYTES_MAX} bytes hold.",
                hint="Cut it into parts, one per row.",
            )
        return value

    return msgspec.json.Decoder(float_hook=number).decode(text)
