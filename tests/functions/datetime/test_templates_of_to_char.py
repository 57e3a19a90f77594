"""What a template of to_char prints is what its fields print one by one."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random

import pytest

from qserver.functions.datetime.patterns import parts_of
from qserver.functions.datetime.templates import template_of
from qserver.functions.datetime.to_char import _moment_of_timestamp, _shown

FIELDS = (
    *("YYYY", "YYY", "YY", "Y", "MM", "DD", "DDD", "D", "ID", "Q", "HH24", "HH12", "HH", "MI"),
    *("SS", "MS", "US", "FF1", "FF4", "SSSS", "MON", "Mon", "mon", "MONTH", "Month", "month"),
    *("DY", "Dy", "dy", "DAY", "Day", "day", "AM", "p.m.", "PM", "a.m."),
)
BESIDE = ("-", " ", "%", "%%", '"%s{}"', ":", "/", "\\", "")
WITHOUT = ("DDth", "IYYY", "IW", "TZ", "OF", "J", "BC", "CC", "RM", "Y,YYY", "WW", "W")


@pytest.mark.parametrize("seed", range(4))
def test_templates_print_what_fields_print(seed: int) -> None:
    chance = Random(seed)
    for _ in range(300):
        pattern = "".join(
            chance.choice(("", "", "FM", "TM")) + chance.choice(FIELDS) + chance.choice(BESIDE)
            for _ in range(chance.randrange(1, 6))
        )
        value = datetime(1, 1, 1) + timedelta(microseconds=chance.randrange(315 * 10**15))
        printed = template_of(parts_of(pattern))
        if printed is not None:
            assert printed(value) == _shown(_moment_of_timestamp(value), pattern), pattern


@pytest.mark.parametrize("pattern", FIELDS)
def test_usual_fields_have_templates(pattern: str) -> None:
    for hour in range(24):
        value = datetime(2021, hour // 2 + 1, hour + 1, hour, 7, 9, 1234)
        printed = template_of(parts_of(pattern))
        assert printed is not None
        assert printed(value) == _shown(_moment_of_timestamp(value), pattern)


@pytest.mark.parametrize("pattern", WITHOUT)
def test_other_fields_have_none(pattern: str) -> None:
    assert template_of(parts_of(f"YYYY {pattern}")) is None
