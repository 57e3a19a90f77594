"""Values as texts: out as `values.text_output` prints them, in as a literal is read.

A parameter in text format stays a text, which the plan reads as the type that it has there. Only
bytea is read here: the plan's own reader expects base64, as in JSON.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from qserver.pgwire.messages import text_of
from qserver.query.settings.values import TextStyle
from qserver.values.arrays import mapped
from qserver.values.binary_text import bytes_from_text
from qserver.values.interval_text import iso_text_of_interval
from qserver.values.text_output import shown_function, text_of_double
from qserver.values.types import INTEGER_KINDS, TEXT, Kind, SqlType, array_of

Writer = Callable[[Any], bytes]
Reader = Callable[[bytes], Any]


@lru_cache(maxsize=4096)
def text_writer(sql_type: SqlType) -> Writer:
    """Return the function that writes values of a type, except NULL."""
    kind = sql_type.kind
    if kind in INTEGER_KINDS:
        return b"%d".__mod__
    if kind in (Kind.TEXT, Kind.VARCHAR):
        return str.encode
    shown = shown_function(sql_type)
    return lambda value: shown(value).encode()


@lru_cache(maxsize=256)
def styled_writer(sql_type: SqlType, style: TextStyle) -> Writer:
    """Return the function that writes values as the settings of a session say."""
    shown = _styled((sql_type.element or sql_type).kind, style)
    if shown is None:
        return text_writer(sql_type)
    if sql_type.element is None:
        return lambda value: shown(value).encode()
    write = text_writer(array_of(TEXT))
    return lambda value: write(mapped(shown, value))


def _styled(kind: Kind, style: TextStyle) -> Callable[[Any], str] | None:
    if kind is Kind.INTERVAL and style.iso_intervals:
        return iso_text_of_interval
    if kind is Kind.BYTEA and style.escaped_bytes:
        return _escaped
    if kind in _FLOAT_DIGITS and style.float_digits < 1:
        return _rounding_writer(max(_FLOAT_DIGITS[kind] + style.float_digits, 1))
    return None


_FLOAT_DIGITS: Final = {Kind.DOUBLE: 15, Kind.REAL: 6}
_PRINTABLE: Final = range(0x20, 0x7F)


def _rounding_writer(digits: int) -> Callable[[float], str]:
    def rounded(value: float) -> str:
        return f"{value:.{digits}g}" if isfinite(value) else text_of_double(value)

    return rounded


def _escaped(value: bytes) -> str:
    whole = value.replace(b"\\", b"\\\\")
    return "".join([chr(each) if each in _PRINTABLE else f"\\{each:03o}" for each in whole])


_DIGITS_SURE: Final = {Kind.SMALLINT: 4, Kind.INTEGER: 9, Kind.BIGINT: 18}
"""So many digits always fit."""


def integer_reader(kind: Kind, other: Reader) -> Reader:
    """Return the function that reads what is surely an integer of a kind; `other` reads the rest.

    Only for a parameter of this type: one without a type would get it from its value.
    """
    most = _DIGITS_SURE[kind]

    def read(data: bytes) -> Any:
        if len(data) <= most and (data.isdigit() or (data[:1] == b"-" and data[1:].isdigit())):
            return int(data)
        return other(data)

    return read


@lru_cache(maxsize=4096)
def text_reader(sql_type: SqlType) -> Reader:
    """Return the function that reads a parameter of a type."""
    if sql_type.kind is Kind.BYTEA:
        return lambda data: bytes_from_text(text_of(data))
    return text_of
