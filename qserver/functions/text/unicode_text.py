"""unistr and normalize: Unicode escapes and normalization forms."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal, cast

from qserver.errors import InvalidParameterValue, SqlSyntaxError
from qserver.functions.costs import linear, unistr_cost
from qserver.functions.registry import Function
from qserver.values.types import BOOLEAN, TEXT

_ESCAPE: Final = re.compile(
    r"\\(?:(\\)|\+([0-9A-Fa-f]{6})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-9A-Fa-f]{4})|)"
)
_HIGH, _LOW, _LAST = 0xD800, 0xDC00, 0xE000
_FORMS: Final = ("NFC", "NFD", "NFKC", "NFKD")


def unistr(text: str) -> str:
    """Decode \\0061, \\+000061, \\u0061 and \\U00000061, all the letter a; \\\\ is a backslash."""
    result: list[str] = []
    at, high = 0, 0
    for match in _ESCAPE.finditer(text):
        code = _code(match)
        if high and (match.start() != at or not _LOW <= code < _LAST):
            raise SqlSyntaxError("invalid Unicode surrogate pair")
        result.append(text[at : match.start()])
        at = match.end()
        if _HIGH <= code < _LOW:
            high = code
            continue
        if _LOW <= code < _LAST:
            if not high:
                raise SqlSyntaxError("invalid Unicode surrogate pair")
            code = 0x10000 + ((high - _HIGH) << 10) + (code - _LOW)
            high = 0
        if not 0 < code <= 0x10FFFF:
            digits = match[2] or match[3] or match[4] or match[5]
            raise InvalidParameterValue(f"invalid Unicode code point: {digits}")
        result.append(chr(code))
    if high:
        raise SqlSyntaxError("invalid Unicode surrogate pair")
    return "".join([*result, text[at:]])


def _code(match: re.Match[str]) -> int:
    if match[1]:
        return ord("\\")
    digits = match[2] or match[3] or match[4] or match[5]
    if digits is None:
        raise SqlSyntaxError(
            "invalid Unicode escape",
            hint="Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.",
        )
    return int(digits, 16)


def normalize(text: str, form: str = "NFC") -> str:
    return unicodedata.normalize(_form(form), text)


def is_normalized(text: str, form: str = "NFC") -> bool:
    return unicodedata.is_normalized(_form(form), text)


def _form(name: str) -> Literal["NFC", "NFD", "NFKC", "NFKD"]:
    if name.upper() not in _FORMS:
        raise InvalidParameterValue(f"invalid normalization form: {name}")
    return cast(Literal["NFC", "NFD", "NFKC", "NFKD"], name.upper())


FUNCTIONS: Final = (
    Function("unistr", (TEXT,), TEXT, unistr, cost=unistr_cost),
    Function("normalize", (TEXT,), TEXT, normalize, cost=linear(60)),
    Function("normalize", (TEXT, TEXT), TEXT, normalize, cost=linear(60)),
    Function("is_normalized", (TEXT,), BOOLEAN, is_normalized),
    Function("is_normalized", (TEXT, TEXT), BOOLEAN, is_normalized),
)
