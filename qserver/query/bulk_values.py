r"""Converts values of bulk rows to the literals of an INSERT, a column at a time.

    text, uuid, dates …    a text, as the type reads it
    numbers, booleans      themselves, where the type takes them; a text otherwise
    bytea                  base64 in JSON, as in answers; \x00ff in CSV, as PostgreSQL prints it
    json, jsonb            in JSON the value itself, also a text; in CSV the text of the JSON
    arrays                 a list of such values; or a text such as {1,2}

So a row that was exported as JSON or CSV is the same when it is imported.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from qserver.errors import CharacterNotInRepertoire, InvalidTextRepresentation
from qserver.functions.costs import refuse_steps
from qserver.lexing.value_rows import kind_of
from qserver.limits import STEPS_AT_ONCE_MAX
from qserver.sql import json_of
from qserver.values.keys import Row
from qserver.values.types import Kind, SqlType

Writer = Callable[[Any], str]

ELEMENTS_MAX: Final = STEPS_AT_ONCE_MAX
"""Elements of an array. A longer text than theirs is not read at once, either."""

_NUMBERS: Final = frozenset(
    (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE)
)
_NOT_AS_TEXT: Final = frozenset((Kind.BYTEA, Kind.JSON, Kind.JSONB))
"""Types of which a text in JSON is not what the type would read."""


def column_of(column: Row, sql_type: SqlType, texts: bool) -> tuple[str, Row]:
    """The kind of a column and its values. `texts`: values are texts, as in CSV, or None."""
    kind = kind_of(column)
    if kind == "0" or texts:
        return "s", column
    target = sql_type.kind
    if kind == "s" and target not in _NOT_AS_TEXT:
        return "s", _checked(column)
    if target in _NUMBERS and kind == "N":
        kind, column = "n", tuple([each if each is None else Decimal(each) for each in column])
    if target is Kind.NUMERIC and kind == "n":  # it has no negative zero
        column = tuple([each if each or each is None else abs(each) for each in column])
    if target in _NUMBERS and kind in "iln":
        return kind, column
    if target is Kind.BOOLEAN and kind == "t":
        return kind, column
    write = _writer(sql_type)
    return "s", _checked(tuple([each if each is None else write(each) for each in column]))


def _checked(column: Row) -> Row:
    """Refuse a NUL, which a JSON text may have: nothing checks the text of a literal again."""
    for each in column:
        if each is not None and "\0" in each:
            raise CharacterNotInRepertoire('invalid byte sequence for encoding "UTF8": 0x00')
    return column


@lru_cache(maxsize=1024)
def _writer(sql_type: SqlType) -> Writer:
    """The function from a JSON value, not null, to the text that the type reads."""
    if sql_type.element is not None:
        return bounded(array_writer(_writer(sql_type.element)), sql_type)
    if sql_type.kind is Kind.BYTEA:
        return _bytes_text
    return json_of if sql_type.kind in (Kind.JSON, Kind.JSONB) else _text_of


def bounded(write: Writer, sql_type: SqlType) -> Writer:
    """Refuses a list whose text would be refused before making it: nobody else runs meanwhile."""

    def write_short(value: Any) -> str:
        count = _count(value)
        if count > ELEMENTS_MAX:
            raise refuse_steps(f"a conversion to {sql_type}", count)
        return write(value)

    return write_short


def _count(value: Any) -> int:
    """Return the number of elements of a list, or more than there may be."""
    if type(value) is not list:
        return 0
    count = len(value)
    if count <= ELEMENTS_MAX and list in set(map(type, value)):
        for each in value:
            count += _count(each)
            if count > ELEMENTS_MAX:
                break
    return count


def array_writer(write: Writer) -> Writer:
    """Writes lists as texts of arrays, and their elements by `write`; a text stays as it is."""

    def array(value: Any) -> str:
        return _text_of(value) if type(value) is not list else listed(value)

    def listed(value: list[Any]) -> str:
        return "{" + ",".join([element(each) for each in value]) + "}"

    def element(value: Any) -> str:
        if value is None:
            return "NULL"
        if type(value) is list:
            return listed(value)
        text = write(value)
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return array


def _text_of(value: Any) -> str:
    if type(value) is str:
        return value
    if type(value) is bool:
        return "true" if value else "false"
    return json_of(value) if isinstance(value, list | dict) else str(value)


def _bytes_text(value: Any) -> str:
    try:
        return "\\x" + b64decode(value, validate=True).hex()
    except (TypeError, ValueError):
        raise InvalidTextRepresentation(
            "invalid value for a column of type bytea", hint="Give bytes as a text in base64."
        ) from None
