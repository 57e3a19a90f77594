"""Reads multi-row VALUES lists, `VALUES (1, 'a'), (-2, NULL), …`, as data instead of syntax.

    (1, 'it''s'), (-2, NULL)         the text, split at its strings
    [[1, "it's"], [-2, null]]        brackets for parentheses, JSON's quotes, lower case
    [(1, "it's"), (-2, None)]        decoded, then checked column by column

Most lists need no splitting. If no string holds a quote, a backslash, a bracket or a parenthesis,
the whole text becomes JSON by exchanging single characters, and a decoder of the columns' types,
which the first rows tell, checks every value while it reads (`_read_at_once`).

    (1, 'its'), (-2, null)   ──►   [[1, "its"], [-2, null]]

If all rows of a VALUES list have the same width and hold only values (numbers, with or without a
sign, strings, NULL, TRUE, FALSE), a JSON decoder reads the list: an INSERT of a thousand rows is a
hundred times more data than language. JSON is stricter than SQL about numbers and has no
expressions, so it accepts only lists of values. The parser reads a list that JSON refuses.

A column has one kind, as in `literals`: "i", "l", "n" for numbers, the widest of them, "s" for
text, and here also "t" for booleans and "0" for a column of NULLs. The parser reads a list with a
column of numbers and strings. A NULL does not change a column's kind, nor the fingerprint.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from types import GenericAlias
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from qserver.errors import QserverError
from qserver.lexing import lexer
from qserver.lexing.literals import BIGINT_MAX, BIGINT_MIN, INTEGER_MAX, INTEGER_MIN
from qserver.values.keys import Row
from qserver.values.numerics import plain_numeric

_HEAD_LENGTH = 1024  # texts this short are not worth a decoder of their own
_SAMPLE_LENGTH = 1024  # from which columns are taken to be what they are in the first rows
_TAIL_LENGTH = 4096  # what may follow the rows
_ATTEMPTS_MAX = 8  # each may read the rest of the text, and a text may say VALUES very often

# Rows that begin with a parameter have more than values.
_VALUES: Final = re.compile(
    rf"(?<!{lexer.PART})values{lexer.SPACE}*+(?=\((?!{lexer.SPACE}*+[$?:]))", re.IGNORECASE
)
_DEFINITION: Final = re.compile(rf"{lexer.SPACE}*+create(?!{lexer.PART})", re.IGNORECASE)
_TWO_ROWS: Final = re.compile(rf"\){lexer.SPACE}*+,{lexer.SPACE}*+\(")
# Spans from one place outside of strings and comments to another.
_OUTSIDE: Final = re.compile(
    rf"(?>{lexer.OTHER}|{lexer.LINE_COMMENT}[\n\r]|{lexer.BLOCK_COMMENT}"
    rf"|{lexer.NUMBER}|{lexer.STRING})*+",
    re.DOTALL,
)
_STRING: Final = re.compile(r"'([^']*+(?>''[^']*+)*+)'")
_ROWS: Final = re.compile(rf"\([^()]*+\)(?>{lexer.SPACE}*+,{lexer.SPACE}*+\([^()]*+\))++")
_LAST_ROW: Final = re.compile(
    rf"\)(?={lexer.SPACE}*+(?:;?{lexer.SPACE}*+\Z|(?:on|returning)(?!{lexer.PART})))",
    re.IGNORECASE,
)
# The list continues, or a string continues on the next line.
_MORE: Final = re.compile(rf"(?>{lexer.SPACE}|{lexer.LINE_COMMENT}|{lexer.BLOCK_COMMENT})*+,")

_TO_JSON: Final = str.maketrans('()[]{}"\f', "[]!!!!! ")  # "!" is never valid JSON
_CONTROL: Final = re.compile(r"[\x01-\x1f]")
# Numbers that SQL allows and JSON does not: +1, 007, .5, 5. and 5.e3
_LOOSE: Final = (
    (re.compile(r"(?<=[\[,\s])\+(?=[0-9.])"), ""),
    (re.compile(r"(?<![0-9.e])(?<!e[+-])0++(?=[0-9])"), ""),
    (re.compile(r"(?<![0-9])\.(?=[0-9])"), "0."),
    (re.compile(r"(?<=[0-9])\.(?![0-9])e?+"), "e"),
    (re.compile(r"(?<=[0-9])e(?![0-9+-])"), "e0"),
)


class ValuesList(NamedTuple):
    """The rows between `start` and `end` of the text; `kinds` has a letter for each column."""

    start: int
    end: int
    values: list[Row]
    kinds: str


def find_rows(sql: str) -> ValuesList | None:
    """Return the longest list of two or more rows that holds values only; of equals, the first.

    One list per statement is enough for bulk inserts and simple for the executor. DDL is skipped:
    it keeps its text and is not run repeatedly.
    """
    if not _may_have_rows(sql):
        return None
    if len(sql) > _HEAD_LENGTH:
        plain = find_plain_rows(sql)
        if plain is not None:
            return plain
    found: ValuesList | None = None
    outside = position = 0
    for _ in range(_ATTEMPTS_MAX):
        word = _VALUES.search(sql, position)
        if word is None:
            break
        position = word.end()
        if not _OUTSIDE.fullmatch(sql, outside, word.start()):
            continue  # inside a string or a comment
        rows = _read_rows(sql, position)
        if rows is not None:
            outside = position = rows.end
            if found is None or len(rows.values) > len(found.values):
                found = rows
    return found


def _may_have_rows(sql: str) -> bool:
    said = "VALUES" in sql or "values" in sql.lower()
    return said and bool(_TWO_ROWS.search(sql)) and not _DEFINITION.match(sql)


# --- at once -------------------------------------------------------------------------------------


def find_plain_rows(sql: str) -> ValuesList | None:
    """Return the rows of a statement that is little else, if they can be read at once.

    None says nothing about the text; this never takes long.
    """
    word = _VALUES.search(sql, 0, _HEAD_LENGTH)
    if word is None or _DEFINITION.match(sql) or not _OUTSIDE.fullmatch(sql, 0, word.start()):
        return None
    tail = max(word.end(), len(sql) - _TAIL_LENGTH)
    last = _LAST_ROW.search(sql, tail)
    return None if last is None else _read_at_once(sql, word.end(), last.end())


def _read_at_once(sql: str, start: int, end: int) -> ValuesList | None:
    """Return the rows between `start` and `end`; None if they may be no plain values."""
    try:
        text = sql[start:end].encode()
    except UnicodeEncodeError:
        return None
    if b'"' in text or b"\\" in text or b"[" in text or b"]" in text:
        return None
    json = text.translate(_SIGNS)
    found = _decode_typed(json)
    if found is None and b"NULL" in json:
        json = json.replace(b"NULL", b"null")
        found = _decode_typed(json)
        # It was exchanged inside of strings, too, if it was found more often than there are NULLs.
        if found and sum([row.count(None) for row in found[1]]) != json.count(b"null"):
            return None
    if found is None or len(found[1]) < 2:
        return None
    # Likewise parentheses, if there are more than the two of each row.
    if _is_more_often(b"(", text, len(found[1])) or _is_more_often(b")", text, len(found[1])):
        return None
    return ValuesList(start, end, found[1], found[0])


def _is_more_often(sign: bytes, text: bytes, most: int) -> bool:
    """Tell whether a sign is in the text more often; `count` looks at each byte, this skips."""
    return sign in text.replace(sign, b" ", most)


def _decode_typed(text: bytes) -> tuple[str, list[Row]] | None:
    """Return the kinds of columns, which the first rows tell, and all rows."""
    try:
        first = _DECODER.decode(b"[%b]" % text[: text.find(b"]", _SAMPLE_LENGTH) + 1 or None])
        kinds = "".join(map(kind_of, zip(*first, strict=True)))
        if not kinds or not _PLAIN_KINDS.issuperset(kinds):
            return None
        return kinds, _decoder_of(kinds).decode(b"[%b]" % text)
    except (ValueError, QserverError):  # what JSON does not know, uneven rows, other types
        return None


_SIGNS: Final = bytes.maketrans(b"()'", b'[]"')
_PLAIN_KINDS: Final = frozenset("ilst0")
_TYPES: Final[dict[str, Any]] = {
    "i": Annotated[int, msgspec.Meta(ge=INTEGER_MIN, le=INTEGER_MAX)] | None,
    "l": Annotated[int, msgspec.Meta(ge=BIGINT_MIN, le=BIGINT_MAX)] | None,
    "s": str | None,
    "t": bool | None,
    "0": None,
}


@lru_cache(maxsize=256)
def _decoder_of(kinds: str) -> msgspec.json.Decoder[list[Row]]:
    """Return the decoder of rows whose columns have these kinds and no others."""
    rows: Any = GenericAlias(list, GenericAlias(tuple, tuple([_TYPES[kind] for kind in kinds])))
    return msgspec.json.Decoder(rows)


# --- split at strings ----------------------------------------------------------------------------


def _read_rows(sql: str, start: int) -> ValuesList | None:
    """Return the rows whose first parenthesis is at `start`, or None if not all are values."""
    pieces = _STRING.split(sql[start:])
    rows_text = _ROWS.match("\0".join(pieces[0::2]))
    if rows_text is None:
        return None
    text = rows_text.group()
    strings = pieces[1::2][: text.count("\0")]
    end = start + len(text) + len(strings) + sum(map(len, strings))
    if _MORE.match(sql, end):
        return None
    values = _decode(text, strings)
    if not values or not values[0] or len(set(map(len, values))) != 1:
        return None
    columns: list[Row] = list(zip(*values, strict=True))
    kinds = "".join(map(kind_of, columns))
    if "?" in kinds:
        return None
    if "N" in kinds:  # some of the column's numbers are still ints
        for at, kind in enumerate(kinds):
            if kind == "N":
                columns[at] = tuple(
                    [each if each is None else Decimal(each) for each in columns[at]]
                )
        values = list(zip(*columns, strict=True))
    return ValuesList(start, end, values, kinds.lower())


# --- from text to rows ---------------------------------------------------------------------------


def _decode(text: str, strings: list[str]) -> list[Row] | None:
    """Return the rows of a text with NULs for strings; None if they are not values."""
    outside = text.translate(_TO_JSON).lower()
    inside = "\0".join(strings).replace("\\", "\\\\").replace('"', '\\"')
    rows = _decode_json(outside, inside)
    if rows is None:
        for pattern, replacement in _LOOSE:
            outside = pattern.sub(replacement, outside)
        for sign in sorted(set(_CONTROL.findall(inside))):
            inside = inside.replace(sign, f"\\u{ord(sign):04x}")
        rows = _decode_json(outside, inside)
    return rows


def _decode_json(outside: str, inside: str) -> list[Row] | None:
    """Join the text outside of strings with the strings, both split at NULs, and decode it."""
    between = outside.split("\0")
    pieces = [""] * (2 * len(between) - 1)
    pieces[0::2] = between
    pieces[1::2] = inside.split("\0")[: len(between) - 1]
    decoder = _CAREFUL if "e" in outside or "-0" in outside else _DECODER
    try:
        return decoder.decode("[" + '"'.join(pieces).replace("''", "'") + "]")
    except (msgspec.DecodeError, QserverError):  # the parser reports the error and its position
        return None


def _exact(text: str) -> Decimal:
    """Read numbers with an exponent, and zeros with a sign."""
    return plain_numeric(Decimal(text))


_DECODER: Final = msgspec.json.Decoder(list[tuple], float_hook=Decimal)  # type: ignore[type-arg]
_CAREFUL: Final = msgspec.json.Decoder(list[tuple], float_hook=_exact)  # type: ignore[type-arg]


def kind_of(column: Row) -> str:
    """Return the kind of a column: "?" for none, "N" for "n" that has values still to convert."""
    types = set(map(type, column))
    types.discard(type(None))
    if len(types) != 1:
        if not types:
            return "0"
        return "N" if types == {int, Decimal} else "?"
    if str in types:
        return "s"
    if Decimal in types:
        return "n"
    if bool in types:
        return "t"
    if int not in types:
        return "?"
    numbers = column if None not in column else [each for each in column if each is not None]
    low, high = min(numbers), max(numbers)
    if low >= INTEGER_MIN and high <= INTEGER_MAX:
        return "i"
    return "l" if low >= BIGINT_MIN and high <= BIGINT_MAX else "N"
