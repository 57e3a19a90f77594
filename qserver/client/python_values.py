"""Python's values for what JSON carries, by the type of the column; no I/O.

    types of a result ──► row_converter ──► a function from the row that came to the row of Python's

Decimal, date, datetime, time, timedelta, UUID, bytes, float for REAL and DOUBLE PRECISION where
JSON has a text for them, too, and lists of these. All else stays as it is.

A timedelta has no months: as other drivers do, one counts 30 days, and a year 365.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from qserver.errors import IntervalFieldOverflow

Values: TypeAlias = Literal["json", "python"]
"""Values as JSON carries them, or Python's own."""
Row: TypeAlias = tuple[Any, ...]
Converter: TypeAlias = Callable[[Any], Any]

MODIFIERS: Final = re.compile(r"\(.*?\)")
"""Of a type: its length, or its precision and scale."""
DAYS_OF_YEAR: Final = 365
DAYS_OF_MONTH: Final = 30

_NUMBER = r"(-?\d+)"
_INTERVAL: Final = re.compile(
    rf"P(?:{_NUMBER}Y)?(?:{_NUMBER}M)?(?:{_NUMBER}D)?"
    rf"(?:T(?:{_NUMBER}H)?(?:{_NUMBER}M)?(?:(-?)(\d+)(?:\.(\d+))?S)?)?"
)


@lru_cache(maxsize=256)
def row_converter(types: tuple[str, ...]) -> Callable[[Row], Row] | None:
    """What makes a row of these types Python's; None: it is that already."""
    converters = [
        (place, converter)
        for place, each in enumerate(types)
        if (converter := converter_of(each)) is not None
    ]
    if not converters:
        return None

    def converted(row: Row) -> Row:
        values = list(row)
        for place, converter in converters:
            if values[place] is not None:
                values[place] = converter(values[place])
        return tuple(values)

    return converted


def converter_of(name: str) -> Converter | None:
    """What makes a value of the type of this name Python's; None: it is that already."""
    bare = plain_name(name)
    if bare.endswith("[]"):
        element = converter_of(bare[:-2])
        return None if element is None else _of_array(element)
    return _CONVERTERS.get(bare)


def plain_name(name: str) -> str:
    """The name of a type without length, precision and fields: `numeric(8,2)` is `numeric`."""
    bare = MODIFIERS.sub("", name)
    if bare.startswith("interval "):
        return "interval[]" if bare.endswith("[]") else "interval"
    return bare


def timedelta_of(text: str) -> timedelta:
    """The interval that ISO 8601 writes so."""
    found = _INTERVAL.fullmatch(text)
    assert found is not None, f"the server writes no interval as {text!r}"
    years, months, days, hours, minutes = (int(found[each] or 0) for each in range(1, 6))
    whole = int(found[7] or 0) * 1_000_000 + int((found[8] or "").ljust(6, "0") or 0)
    try:
        return timedelta(
            days=years * DAYS_OF_YEAR + months * DAYS_OF_MONTH + days,
            hours=hours,
            minutes=minutes,
            microseconds=-whole if found[6] else whole,
        )
    except OverflowError:
        raise IntervalFieldOverflow(
            f"the interval {text} is longer than Python's timedelta holds",
            hint="Have it as a text: …::text.",
        ) from None


def _of_array(element: Converter) -> Converter:
    def converted(values: list[Any]) -> list[Any]:
        return [
            converted(each) if isinstance(each, list) else None if each is None else element(each)
            for each in values
        ]

    return converted


_CONVERTERS: Final[Mapping[str, Converter]] = {
    "real": float,
    "double precision": float,
    "numeric": Decimal,
    "date": date.fromisoformat,
    "timestamp without time zone": datetime.fromisoformat,
    "timestamp with time zone": datetime.fromisoformat,
    "time without time zone": time.fromisoformat,
    "time with time zone": time.fromisoformat,
    "interval": timedelta_of,
    "uuid": UUID,
    "bytea": b64decode,
}
