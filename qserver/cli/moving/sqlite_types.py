"""Which type a column of SQLite gets, and how its values are written.

A column of SQLite holds what was put into it, whatever its type says. So the declared type is what
the column gets if all its values allow it, and otherwise a type that holds all of them:

    declared           values                                     type
    INTEGER            integers                                   bigint
    BOOLEAN            0 and 1                                    boolean
    DATETIME, DATE     2024-01-31 09:00:00, all with or without   timestamp, timestamptz, date
    DECIMAL(8, 2)      numbers of that size                       numeric(8, 2)
    INTEGER            one of them is a text                      text
    any                texts and blobs                            bytea, texts as UTF-8
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, TypeAlias

import msgspec

Cell: TypeAlias = Callable[[Any], str | None]

_EXACT_MAX: Final = 2**53
"""Up to here a double precision holds every integer."""
_SIZED: Final = re.compile(r"\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_UUID: Final = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TIMESTAMP: Final = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(Z|[+-]\d\d(?::?\d\d)?)?"
)


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """What the values of a column are; counts of values that are not NULL."""

    integers: int = 0
    reals: int = 0
    texts: int = 0
    blobs: int = 0
    zeros: int = 0
    """Texts with a zero byte, which text cannot hold."""
    least: Any = None
    most: Any = None
    length: int = 0
    """The most characters of a text."""
    form: str | None = None
    """What all texts are: date, timestamp, timestamptz, uuid, json; None if they differ."""
    unfit: int = 0
    """Numbers that the declared precision and scale would round or refuse."""

    @property
    def count(self) -> int:
        return self.integers + self.reals + self.texts + self.blobs


@dataclass(frozen=True, slots=True)
class ColumnType:
    sql: str
    cell: Cell
    remark: str = ""
    """Why it is not the declared one."""


def form_of(value: Any) -> str:
    """The form of a text that a declared type may ask for; other values have none."""
    if not isinstance(value, str):
        return ""
    try:
        if _DATE.fullmatch(value):
            date.fromisoformat(value)
            return "date"
        found = _TIMESTAMP.fullmatch(value)
        if found:
            datetime.fromisoformat(value)
            return "timestamptz" if found[1] else "timestamp"
        if _UUID.fullmatch(value):
            return "uuid"
        msgspec.json.decode(value)
        return "json"
    except (ValueError, msgspec.DecodeError):
        return ""


def asks_for_form(declared: str) -> bool:
    """Do the texts of such a column have to be looked at, one by one?"""
    return re.search("DATE|TIME|UUID|GUID|JSON", declared.upper()) is not None


def precision_of(declared: str) -> tuple[int, int] | None:
    """Precision and scale of DECIMAL(8, 2) and the like."""
    sized = _SIZED.search(declared)
    if sized is None or not re.match("DEC|NUM", declared.upper()):
        return None
    precision, scale = int(sized[1]), int(sized[2] or 0)
    return (precision, scale) if 0 < precision <= 100 and scale <= precision else None


def chosen_type(declared: str, facts: ColumnFacts) -> ColumnType:
    """The type that is declared if the values allow it, else one that holds them all."""
    wanted = _wanted(declared.upper(), facts)
    if wanted is not None:
        return wanted
    held = _held(declared.upper(), facts)
    if not declared or not facts.count:
        return held
    return ColumnType(held.sql, held.cell, f"declared {declared}, but holds {_contents(facts)}")


def _wanted(declared: str, facts: ColumnFacts) -> ColumnType | None:
    """The declared type, if there is one and the values allow it."""
    for asks, type_of in _WANTED:
        if asks(declared):
            return type_of(declared, facts)
    return None


def _boolean(declared: str, facts: ColumnFacts) -> ColumnType | None:
    count = facts.count
    fits = facts.integers == count and (not count or (facts.least >= 0 and facts.most <= 1))
    return ColumnType("boolean", boolean_cell) if fits else None


def _integer(declared: str, facts: ColumnFacts) -> ColumnType | None:
    return ColumnType("bigint", text_cell) if facts.integers == facts.count else None


def _text(declared: str, facts: ColumnFacts) -> ColumnType | None:
    if facts.texts != facts.count or facts.zeros:
        return None
    sized = _SIZED.search(declared)
    if sized is not None and "CHAR" in declared and facts.length <= int(sized[1]) > 0:
        return ColumnType(f"varchar({int(sized[1])})", text_cell)
    return ColumnType("text", text_cell)


def _bytes(declared: str, facts: ColumnFacts) -> ColumnType | None:
    return ColumnType("bytea", bytes_cell) if facts.blobs == facts.count else None


def _double(declared: str, facts: ColumnFacts) -> ColumnType | None:
    fits = facts.integers + facts.reals == facts.count
    return ColumnType("double precision", text_cell) if fits else None


def _numeric(declared: str, facts: ColumnFacts) -> ColumnType | None:
    if facts.integers + facts.reals != facts.count or _is_endless(facts):
        return None
    exact = precision_of(declared)
    if exact is not None and not facts.unfit:
        return ColumnType(f"numeric({exact[0]},{exact[1]})", text_cell)
    return ColumnType("numeric", text_cell)


def _wanted_form(declared: str, facts: ColumnFacts) -> ColumnType | None:
    """A type whose values SQLite keeps as texts."""
    if facts.texts != facts.count:
        return None
    form = facts.form if facts.count else None
    if "JSON" in declared:
        kinds = {None: "json", "json": "json"}
    elif "UUID" in declared or "GUID" in declared:
        kinds = {None: "uuid", "uuid": "uuid"}
    elif "STAMP" in declared or "DATETIME" in declared:
        zoned = "timestamptz" if "TZ" in declared or "WITH TIME ZONE" in declared else "timestamp"
        kinds = {None: zoned, "timestamp": "timestamp", "timestamptz": "timestamptz"}
    elif "DATE" in declared:
        kinds = {None: "date", "date": "date", "timestamp": "timestamp"}
    else:
        kinds = {None: "text"}
    if facts.count and form is None:
        return None
    found = kinds.get(form)
    return None if found is None else ColumnType(found, text_cell)


def _held(declared: str, facts: ColumnFacts) -> ColumnType:
    """A type that holds all values."""
    if facts.blobs or facts.zeros:
        return ColumnType("bytea", bytes_cell)
    if facts.texts:
        return ColumnType("text", text_cell)
    if not facts.count:
        return ColumnType("text" if not declared else "numeric", text_cell)
    if not facts.reals:
        return ColumnType("bigint", text_cell)
    largest = max(abs(facts.least), abs(facts.most))
    if facts.integers and largest > _EXACT_MAX and not _is_endless(facts):
        return ColumnType("numeric", text_cell)
    return ColumnType("double precision", text_cell)


def _is_endless(facts: ColumnFacts) -> bool:
    return bool(facts.reals) and float("inf") in (abs(facts.least), abs(facts.most))


def _contents(facts: ColumnFacts) -> str:
    kinds = {
        "integers": facts.integers,
        "floating-point numbers": facts.reals,
        "texts": facts.texts,
        "blobs": facts.blobs,
        "texts with a zero byte": facts.zeros,
    }
    return " and ".join(name for name, count in kinds.items() if count)


# --- values as the texts that PostgreSQL reads ---------------------------------------------------


def text_cell(value: Any) -> str | None:
    if isinstance(value, float):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))
    return None if value is None else str(value)


def boolean_cell(value: Any) -> str | None:
    return None if value is None else "true" if value else "false"


def bytes_cell(value: Any) -> str | None:
    if value is None:
        return None
    data = value if isinstance(value, bytes) else (text_cell(value) or "").encode()
    return f"\\x{data.hex()}"


_WANTED: Final[tuple[tuple[Callable[[str], Any], Callable[..., ColumnType | None]], ...]] = (
    (re.compile("BOOL").search, _boolean),
    (asks_for_form, _wanted_form),
    (re.compile("INT").search, _integer),
    (re.compile("CHAR|CLOB|TEXT|STRING").search, _text),
    (re.compile("BLOB|BINARY").search, _bytes),
    (re.compile("REAL|FLOA|DOUB").search, _double),
    (re.compile("DEC|NUM").match, _numeric),
)
"""What a declared type asks for, the first that does; in capitals."""
