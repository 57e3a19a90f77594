"""Values of every type, from the shortest to the longest that may be: what a hostile caller stores.

A kind of value says how it is made from a number of bytes, so the same contents come below, at and
above the sizes at which calls are charged and refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from qserver.errors import QserverError
from qserver.functions.costs import cast_cost
from qserver.limits import ARRAY_DIMENSIONS_MAX, STEPS_AT_ONCE_MAX, VALUE_BYTES_MAX
from qserver.values.casts import cast_function
from qserver.values.jsonb import Jsonb
from qserver.values.records import Record
from qserver.values.sizes import size_of
from qserver.values.types import JSONPATH, REG_KINDS, TEXT, TEXT_KINDS, Kind, SqlType

SIZES: Final = (20, 900, 1100, 60_000, 1_000_000, VALUE_BYTES_MAX // 4, VALUE_BYTES_MAX - 16)
"""Around those at which a call is charged, up to the largest."""


def _repeated(piece: str) -> Callable[[int], str]:
    return lambda size: piece * (size // len(piece.encode()))


def _between(first: str, piece: str, last: str) -> Callable[[int], str]:
    return lambda size: first + piece * ((size - 8) // len(piece.encode())) + last


def _numbered(first: str, piece: str, last: str) -> Callable[[int], str]:
    """Pieces that all differ."""

    def make(size: int) -> str:
        count = max((size - 16) // (len(piece) + 6), 1)
        return first + ",".join([piece.format(100_000 + n) for n in range(count)]) + last

    return make


MOMENT: Final = "2024-02-29 12:34:56.789+02"
DURATION: Final = "1 year 2 mons 3 days 04:05:06"

TEXTS: Final[dict[str, Callable[[int], str]]] = {
    "letters": _repeated("x"),
    "umlauts": _repeated("ä"),
    "capitals": _repeated("Σ"),
    "emoji": _repeated("\U0001f600"),
    "spaces": _repeated(" "),
    "words": _repeated("ab "),
    "digits": _repeated("9"),
    "hex digits": _repeated("4a"),
    "commas": _repeated("1,"),
    "lines": _repeated("a\n"),
    "quotes": _repeated("'"),
    "double quotes": _repeated('"'),
    "backslashes": _repeated("\\\\"),
    "octal escapes": _repeated("\\101"),
    "escapes": _repeated("\\u00e9"),
    "percents": _repeated("%"),
    "places": _repeated("%s"),
    "low lines": _repeated("%_"),
    "capitals with %": _repeated("Ä%"),
    "stars": _repeated("a*"),
    "groups": _repeated("(a|b)"),
    "brackets": _repeated("[a-z]"),
    "picture": _repeated("YYYY-MM-DD "),
    "nines": _repeated("9G"),
    "units": _repeated("1 day "),
    "json numbers": _between("[", "1,", "1]"),
    "json lists": _between("[", "[1],", "1]"),
    "json exponents": _between("[", "1e131000,", "1]"),
    "json escapes": _between('["', "\\u00e9", '"]'),
    "json members": _numbered("{", '"k{}":1', "}"),
    "json objects": _between("[", '{"a":1},', "1]"),
    "array numbers": _between("{", "1,", "1}"),
    "array quoted": _between("{", '"a",', "1}"),
    "array of arrays": _between("{", "{1},", "{1}}"),
    "array of six": _between("{{{{{{", "1,", "1}}}}}}"),
    "array of moments": _between("{", f"{MOMENT},", f"{MOMENT}}}"),
    "array of intervals": _between("{", f"{DURATION},", f"{DURATION}}}"),
    "array of quoted moments": _between("{", f'"{MOMENT}",', f"{MOMENT}}}"),
}

JSONBS: Final[dict[str, Callable[[int], str]]] = {
    "numbers": _between("[", "1, ", "1]"),
    "decimals": _between("[", "1.50, ", "1]"),
    "lists": _between("[", "[1], ", "1]"),
    "deep lists": _between("[", "[[[[1]]]], ", "1]"),
    "text": _between('"', "x", '"'),
    "umlauts": _between('"', "ä", '"'),
    "escapes": _between('"', '\\"', '"'),
    "texts": _between("[", '"ab", ', "1]"),
    "objects": _between("[", '{"a": 1}, ', "1]"),
    "long numbers": _between("[", "9" * 5000 + ", ", "1]"),
    "members": lambda size: _numbered("{", '"k{}": 1', "}")(size).replace(",", ", "),
    "member lists": lambda size: _numbered("{", '"k{}": [1]', "}")(size).replace(",", ", "),
}

PATHS: Final[dict[str, Callable[[int], str]]] = {
    "the whole": lambda size: "$",
    "every level": lambda size: "$.** ? (@ == 1)",
    "levels of levels": lambda size: "$.**.**.**",
    "pairs": lambda size: "$ ? (@.** == $.**)",
    "pairs of each": lambda size: "$.** ? ($.** < $.**)",
    "elements again": lambda size: "$[0 to last, 0 to last][0, 0, 0][0, 0, 0][0, 0, 0][0, 0, 0]",
    "members of members": lambda size: "$" + ".keyvalue()" * 20,
    "numbers": lambda size: "$[*] * 9 / 7 % 5",
    "texts": lambda size: '$[*] ? (@ like_regex "(x|ä|a)*b$" flag "i")',
    "moments": lambda size: "$[*].datetime()",
    "alternatives": _between("$ == 1", " || $ == 1", ""),
    "a long key": _between('$."', "x", '"'),
    "a long text": _between('$ == "', "\\u00e4", '"'),
    "a long number": _between("$ == ", "9", ""),
    "parentheses": lambda size: "(" * (size // 2) + "$" + ")" * (size // 2),
}
"""Some find much in little."""

NUMBERS: Final[dict[str, Callable[[int], Decimal]]] = {
    "nines": lambda size: Decimal("9" * min(size, 131_072)),
    "fraction": lambda size: Decimal(f"{'9' * min(size, 131_072)}.{'7' * min(size, 16_383)}"),
    "small fraction": lambda size: Decimal(f"0.{'0' * min(size, 16_000)}1"),
    "power of ten": lambda size: Decimal("1" + "0" * min(size, 131_071)),
    "ones": lambda size: Decimal("1" * min(size, 1000)),
}
"""The largest have 131,072 digits before the point."""

FIXED: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.BOOLEAN: ("t",),
    Kind.SMALLINT: ("0", "1", "32767", "-32768"),
    Kind.INTEGER: ("0", "1", "-1", "7", "1000000", "2147483647", "-2147483648"),
    Kind.BIGINT: ("0", "1", "1000000", "9223372036854775807", "-9223372036854775808"),
    Kind.REAL: ("1.5", "3.4e38", "NaN"),
    Kind.DOUBLE: ("1.5", "1e308", "5e-324", "NaN"),
    Kind.DATE: ("2024-02-29", "0001-01-01", "9999-12-31", "infinity"),
    Kind.TIMESTAMP: ("2024-02-29 12:34:56.789", "0001-01-01", "9999-12-31"),
    Kind.TIMESTAMPTZ: ("2024-02-29 12:34:56.789", "0001-01-01", "9999-12-31"),
    Kind.TIME: ("12:34:56",),
    Kind.TIMETZ: ("12:34:56+02",),
    Kind.INTERVAL: ("1 day", "1 microsecond", "178000000 years", "-1 month"),
    Kind.UUID: ("00000000-0000-0000-0000-000000000000",),
    Kind.NAME: ("x", "x" * 63),
    Kind.INTERNAL_CHAR: ("x",),
    Kind.OID: ("0", "1", "4294967295"),
    Kind.XID: ("0", "4294967295"),
    Kind.REGCLASS: ("0", "1259", "4294967295"),
    Kind.PG_LSN: ("0/0", "FFFFFFFF/FFFFFFFF"),
    Kind.TID: ("(0,1)", "(4294967295,65535)"),
    Kind.ACLITEM: ("=r/postgres",),
}


WORDS: Final = {"moments": MOMENT, "intervals": DURATION, "numbers": "1.5", "objects": "[1.5]"}
"""Texts that are values of other types, as elements of an array."""


def contents(sql_type: SqlType) -> tuple[str, ...]:
    """The names of the contents that a value of a type may have."""
    kind = sql_type.kind
    if kind is Kind.JSON:
        return tuple(each for each in TEXTS if each.startswith("json "))
    if kind in TEXT_KINDS or kind in (Kind.BYTEA, Kind.UNKNOWN, Kind.PG_NODE_TREE):
        return tuple(TEXTS)
    if kind is Kind.JSONB:
        return tuple(JSONBS)
    if kind is Kind.JSONPATH:
        return tuple(PATHS)
    if kind is Kind.NUMERIC:
        return tuple(NUMBERS)
    if sql_type.element is not None:
        inner = contents(sql_type.element)
        words = WORDS if sql_type.element.kind in TEXT_KINDS else {}
        return (
            *(f"{each} x 1" for each in (*inner[:6], *words)),
            f"{inner[0]} x 2",
            f"{inner[0]} x 6",
            "NULLs",
        )
    if kind is Kind.RECORD:
        return ("numbers", "texts")
    return FIXED.get(kind, ())


@lru_cache(maxsize=24)
def value(sql_type: SqlType, content: str, size: int) -> Any:
    """A value of about so many bytes; None if the type has no such value."""
    kind = sql_type.kind
    if kind is Kind.BYTEA:
        return TEXTS[content](size).encode()[:size]
    if kind in TEXT_KINDS or kind in (Kind.JSON, Kind.UNKNOWN, Kind.PG_NODE_TREE):
        return TEXTS[content](size)
    if kind is Kind.JSONB:
        return Jsonb(JSONBS[content](size))
    if kind is Kind.JSONPATH:
        return _path(content, size)
    if kind is Kind.NUMERIC:
        return NUMBERS[content](size)
    if sql_type.element is not None:
        return _array(sql_type.element, content, size)
    if kind is Kind.RECORD:
        return Record((1,) * (size // 32) if content == "numbers" else ("ab",) * (size // 32))
    if kind in REG_KINDS:  # names stand for others in each database
        return int(content)
    try:
        return cast_function(TEXT, sql_type)(content)
    except QserverError:
        return None


def _path(content: str, size: int) -> str | None:
    """A path that is short enough to be read."""
    text = PATHS[content](size)
    if cast_cost(TEXT, JSONPATH)(text) > STEPS_AT_ONCE_MAX:
        return None
    return str(cast_function(TEXT, JSONPATH)(text))


def _array(element: SqlType, content: str, size: int) -> tuple[Any, ...]:
    if content == "NULLs":
        return (None,) * (size // 16)
    inner, _, dimensions = content.rpartition(" x ")
    one = (
        WORDS[inner] if inner in WORDS and element.kind in TEXT_KINDS else value(element, inner, 10)
    )
    part: tuple[Any, ...] = (one,)
    if dimensions != "1":
        part = ((one, one),)
    for _ in range(ARRAY_DIMENSIONS_MAX - 2 if dimensions == "6" else 0):
        part = (part,)
    return part * max(size // size_of(part), 1)


def arguments(sql_type: SqlType) -> Iterator[tuple[str, int]]:
    """All contents with all sizes, of a type whose values differ in size."""
    sizes = SIZES if sql_type.kind not in FIXED else SIZES[:1]
    for content in contents(sql_type):
        for size in sizes:
            yield content, size
