"""Reads the value of a setting as PostgreSQL does, and prints it for SHOW.

A value is kept as pg_settings shows it: a number in the unit of the setting, without the unit.
SHOW prints it in the largest unit in which it is whole: `64MB`, `90s`.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from qserver.errors import InvalidParameterValue
from qserver.query.settings.declared import Setting

_NUMBER: Final = re.compile(
    r"\s*([+-]?(?:0x[0-9a-f]+|(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?))\s*([a-z]*)\s*", re.IGNORECASE
)
_MEMORY: Final = {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40}
_TIME: Final = {
    "us": 1,
    "ms": 1000,
    "s": 10**6,
    "min": 60 * 10**6,
    "h": 3600 * 10**6,
    "d": 86400 * 10**6,
}
_WHOLE_MAX: Final = 2**31 - 1
_BOOLEANS: Final = {
    **{"true"[:size]: "on" for size in range(1, 5)},
    **{"false"[:size]: "off" for size in range(1, 6)},
    **{"yes"[:size]: "on" for size in range(1, 4)},
    **{"no"[:size]: "off" for size in range(1, 3)},
    "on": "on",
    "of": "off",
    "off": "off",
    "1": "on",
    "0": "off",
}


def read_value(setting: Setting, text: str) -> str:
    """Return the value as it is kept; raise InvalidParameterValue (22023) for one that is none."""
    if setting.kind == "bool":
        return _read_boolean(setting, text)
    if setting.kind == "enum":
        return _read_word(setting, text)
    if setting.kind in ("integer", "real"):
        return _read_number(setting, text)
    return text


def shown_value(setting: Setting, value: str) -> str:
    """Return what SHOW prints."""
    if not setting.unit or setting.kind not in ("integer", "real"):
        return value
    number = Decimal(value)
    if number <= 0:
        return value
    units, size = _units(setting.unit)
    amount = number * size
    for unit in reversed(units):
        if amount % units[unit] == 0:
            return f"{amount / units[unit]:f}{unit}"
    return f"{amount / size:f}{setting.unit}"


def invalid(
    setting: Setting, text: str, detail: str | None = None, hint: str | None = None
) -> InvalidParameterValue:
    message = f'invalid value for parameter "{setting.name}": "{text}"'
    return InvalidParameterValue(message, detail=detail, hint=hint)


def _read_boolean(setting: Setting, text: str) -> str:
    found = _BOOLEANS.get(text.strip().lower())
    if found is None:
        raise InvalidParameterValue(f'parameter "{setting.name}" requires a Boolean value')
    return found


def _read_word(setting: Setting, text: str) -> str:
    wanted = text.lower()
    for word in setting.words:
        if word == wanted:
            return word
    boolean = _BOOLEANS.get(wanted)
    if boolean in setting.words and boolean is not None:
        return boolean
    raise invalid(setting, text, hint=f"Available values: {', '.join(setting.words)}.")


def _read_number(setting: Setting, text: str) -> str:
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise invalid(setting, text)
    digits, unit = match.groups()
    is_hex = "x" in digits.lower()
    number = Decimal(int(digits, 16)) if is_hex else Decimal(digits)
    if unit:
        units, size = _units(setting.unit) if setting.unit else ({}, 1)
        if unit not in units:
            raise invalid(setting, text, hint=_unit_hint(units))
        number = number * units[unit] / size
    if setting.kind == "integer":
        number = number.quantize(Decimal(1), ROUND_HALF_EVEN) if number.adjusted() < 20 else number
        if abs(number) > _WHOLE_MAX:
            raise invalid(setting, text, hint="Value exceeds integer range.")
    if setting.least and not Decimal(setting.least) <= number <= Decimal(setting.greatest):
        unit_text = f" {setting.unit}" if setting.unit else ""
        raise InvalidParameterValue(
            f"{_plain(number)}{unit_text} is outside the valid range for parameter"
            f' "{setting.name}" ({setting.least} .. {setting.greatest})'
        )
    return _plain(number)


def _plain(number: Decimal) -> str:
    """Return a number without an exponent and without zeros at its end."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _units(unit: str) -> tuple[dict[str, int], int]:
    """Return the units that the setting may have, and the size of its own: `8kB`, `ms`."""
    match = re.fullmatch(r"(\d*)(\w+)", unit)
    assert match is not None, unit
    count, name = int(match.group(1) or 1), match.group(2)
    units = _MEMORY if name in _MEMORY else _TIME
    return units, count * units[name]


def _unit_hint(units: dict[str, int]) -> str | None:
    if not units:
        return None
    *first, last = [f'"{each}"' for each in units]
    return f"Valid units for this parameter are {', '.join(first)}, and {last}."
