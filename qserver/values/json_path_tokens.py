"""The tokens of an SQL/JSON path, one after the other, with PostgreSQL's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from qserver.errors import (
    InvalidTextRepresentation,
    QserverError,
    SqlSyntaxError,
    UntranslatableCharacter,
)

_OTHER: Final = r'[^?%$.\[\]{}()|&!=<>@#,*:\-+/\\" \t\n\r\f]'
_DECIMAL: Final = r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)"
_TOKEN: Final = re.compile(
    rf"""(?P<blank>[ \t\n\r\f]+|/\*.*?\*/)
      | (?P<comment>/\*)
      | (?P<number>{_DECIMAL}(?:[eE][+-]?[0-9]+)?)
      | (?P<variable>\$(?:{_OTHER})+)
      | (?P<quote>\$?")
      | (?P<operator>&&|\|\||\*\*|<=|<>|==|!=|>=|[?%$.\[\]{{}}()|&!=<>@\#,*:\-+/])
      | (?P<word>(?:{_OTHER}|\\u\{{[0-9A-Fa-f]+\}}|\\.?)+)""",
    re.VERBOSE | re.DOTALL,
)
_BAD_EXPONENT: Final = re.compile(rf"{_DECIMAL}[eE][+-]")
_JUNK: Final = re.compile(_OTHER)
_BLANKS: Final = re.compile(r"[ \t\n\r\f]+")
_ESCAPE: Final = re.compile(
    r"""\\(?:(?P<simple>[bfnrtv])
      | u(?P<short>[0-9A-Fa-f]{4}) | u\{(?P<long>[0-9A-Fa-f]{1,6})\}
      | x(?P<byte>[0-9A-Fa-f]{2})
      | (?P<bad_unicode>u(?:[0-9A-Fa-f]{0,3}|\{[0-9A-Fa-f]{0,6}))
      | (?P<bad_byte>x[0-9A-Fa-f]?)
      | (?P<itself>.))""",
    re.VERBOSE | re.DOTALL,
)
_STRING: Final = re.compile(r'[^"\\]+|(?P<end>")|(?P<escape>\\.?)', re.DOTALL)
_SIMPLE: Final = dict(zip("bfnrtv", "\b\f\n\r\t\v", strict=True))

KEYWORDS: Final = frozenset(
    {
        *("is", "to", "abs", "lax", "flag", "last", "null", "size", "true", "type", "with"),
        *("false", "floor", "double", "exists", "starts", "strict", "ceiling", "unknown"),
        *("datetime", "keyvalue", "like_regex"),
    }
)
_LOWER_CASE: Final = frozenset({"null", "true", "false"})


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: an operator or keyword itself, or "string", "variable", "number", "name", "end".

    `near` is what an error quotes: PostgreSQL has read on behind a word and a string."""

    kind: str
    text: str
    near: str


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens, and "end" at the end."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        assert match is not None and match.lastgroup is not None, "every character is in a token"
        kind, found, at = match.lastgroup, match[0], match.end()
        if kind == "comment":
            raise bad("unexpected end of comment", "")
        if kind == "number":
            _check_number(text, match)
            yield Token("number", found, found)
        elif kind == "variable":
            yield Token("variable", found[1:], found)
        elif kind == "quote":
            value, at = _string(text, at)
            yield Token("variable" if found[0] == "$" else "string", value, '"')
        elif kind == "operator":
            yield Token("!=" if found == "<>" else found, found, found)
        elif kind == "word":
            yield _word(found, _BLANKS.match(text, at))
    yield Token("end", "", "")


def bad(message: str, near: str) -> SqlSyntaxError:
    """Return an error as PostgreSQL words it."""
    place = f'at or near "{near}"' if near else "at end"
    return SqlSyntaxError(f"{message} {place} of jsonpath input")


def _check_number(text: str, match: re.Match[str]) -> None:
    wrong = _BAD_EXPONENT.match(text, match.start())
    if wrong is not None and wrong.end() > match.end():
        raise bad("invalid numeric literal", wrong[0])
    junk = _JUNK.match(text, match.end())
    if junk is not None:
        raise bad("trailing junk after numeric literal", match[0] + junk[0])


def _word(found: str, blanks: re.Match[str] | None) -> Token:
    name = _unescaped(found) if "\\" in found else found
    lower = name.lower()
    near = "" if blanks is None else blanks[0]
    if lower in KEYWORDS and (lower not in _LOWER_CASE or name == lower):
        return Token(lower, name, near)
    return Token("name", name, near)


def _string(text: str, start: int) -> tuple[str, int]:
    """Return a string whose opening quote has been read, and the place behind it."""
    for match in _STRING.finditer(text, start):
        if match["end"]:
            inside = text[start : match.start()]
            return (_unescaped(inside) if "\\" in inside else inside), match.end()
    _unescaped(text[start:])
    raise bad("unterminated quoted string", "")


def _unescaped(text: str) -> str:
    made: list[str] = []
    at = 0
    high = 0
    """The first half of a pair that has begun."""
    while at < len(text):
        match = _ESCAPE.match(text, at) if text[at] == "\\" else None
        digits = None if match is None else match["short"] or match["long"] or match["byte"]
        if high and (digits is None or match is None or match["byte"]):
            raise _half("low surrogate must follow a high surrogate")
        if match is None:
            if text[at] == "\\":
                raise bad("unexpected end after backslash", "\\")
            end = text.find("\\", at)
            end = len(text) if end < 0 else end
            made.append(text[at:end])
            at = end
            continue
        at = match.end()
        if digits is not None:
            character, high = _character(int(digits, 16), high)
            made.append(character)
        else:
            made.append(_other_escape(match))
    if high:
        raise _half("low surrogate must follow a high surrogate")
    return "".join(made)


def _other_escape(match: re.Match[str]) -> str:
    if match["bad_unicode"] is not None:
        raise bad("invalid Unicode escape sequence", match[0])
    if match["bad_byte"] is not None:
        raise bad("invalid hexadecimal character sequence", match[0])
    return match["itself"] or _SIMPLE[match["simple"]]


def _character(code: int, high: int) -> tuple[str, int]:
    """Return a character, or nothing and the first half of a pair."""
    if 0xD800 <= code < 0xDC00:
        if high:
            raise _half("high surrogate must not follow a high surrogate")
        return "", code
    if 0xDC00 <= code < 0xE000:
        if not high:
            raise _half("low surrogate must follow a high surrogate")
        return chr(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00)), 0
    if high:
        raise _half("low surrogate must follow a high surrogate")
    if code == 0:
        raise UntranslatableCharacter(
            "unsupported Unicode escape sequence", detail="\\u0000 cannot be converted to text."
        )
    if code > 0x10FFFF:
        raise SqlSyntaxError("invalid Unicode code point")
    return chr(code), 0


def _half(what: str) -> QserverError:
    return InvalidTextRepresentation(
        "invalid input syntax for type jsonpath", detail=f"Unicode {what}."
    )
