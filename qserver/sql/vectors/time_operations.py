"""The steps of programs over dates and timestamps.

A date is its ordinal day, a timestamp its microseconds since 1970.
"""

from __future__ import annotations

from datetime import date
from typing import Any, Final

import numpy as np

from qserver.sql.vectors.operations import Refused, is_one
from qserver.values.vectors import Vector

_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAY: Final = 86_400_000_000


def date_to_timestamp(_: None, operand: Vector) -> Vector:
    days = operand.values
    if not is_one(operand):
        days = days.astype(np.int64, copy=False)
    low, high = (operand.low - _EPOCH) * _DAY, (operand.high - _EPOCH) * _DAY
    return Vector((days - _EPOCH) * _DAY, operand.nulls, low, high)


def extract(is_date: bool, field: str, operand: Vector) -> Vector:
    """Return the year, month or day."""
    if is_one(operand):
        raise Refused
    values = operand.values.astype(np.int64, copy=False)
    if is_date:
        days = (values - _EPOCH).view("datetime64[D]")
        least, most = (date.fromordinal(each).year for each in (operand.low, operand.high))
    else:
        days = values.view("datetime64[us]").astype("datetime64[D]")
        least, most = 1, 9999
    read = _FIELDS.get(field)
    if read is None:
        raise Refused
    if field != "year":
        least, most = 1, 12 if field == "month" else 31
    return Vector(read(days), operand.nulls, least, most)


def _year(days: Any) -> Any:
    return days.astype("datetime64[Y]").astype(np.int64) + 1970


def _month(days: Any) -> Any:
    return days.astype("datetime64[M]").astype(np.int64) % 12 + 1


def _day(days: Any) -> Any:
    return (days - days.astype("datetime64[M]")).astype(np.int64) + 1


_FIELDS: Final = {"year": _year, "month": _month, "day": _day}
