"""Odd spellings of dates and times, each read as every type that has a date or a time of day."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Final

from tests.differential.enumerated.grids import Grid

DATES: Final = (
    "",
    "2024-01-05",
    "2024-005",
    "2024/005",
    "2024.005",
    "2024 005",
    "2024-366",
    "2023-367",
    "2024-1-5",
    "20240105",
    "240105",
    "1/5/2024",
    "1-5-24",
    "jan 5 2024",
    "5 jan 2024",
    "2024-jan-05",
    "05-jan-2024",
    "jan-05-2024",
    "2024 jan 5",
    "friday jan 5 2024",
    "j2460315",
    "2024-01",
    "2024-13-01",
    "2024-02-30",
    "99-01-05",
    "124-01-05",
)
TIMES: Final = (
    "",
    "11:",
    "11:30",
    "11:30:",
    "11::",
    "11::5",
    ":30",
    "11:.5",
    "11:30:.5",
    "11:30.5",
    "11:30:15.123456",
    "1:2:3",
    "T11:30",
    "T1130",
    "113015",
    "11:30 PM",
    "11:30pm",
    "13:30 pm",
    "12:00 am",
    "11:30:60",
    "11:60",
    "25:00",
    "allballs",
)
ZONES: Final = (
    "",
    "Z",
    "UTC",
    "+02",
    "-0330",
    "+05:30",
    "+5:30:15",
    "EST",
    "Europe/Berlin",
    "America/New_York",
    "UTC+3",
    "+16",
    "nowhere",
)
# They are no words in a parameter, so they stand where the net binds no literal.
WORDS: Final = ("today", "tomorrow", "yesterday", "TODAY", " today ")
PATTERNS: Final = (
    "IYYY",
    "IYY",
    "IY",
    "I",
    "IW",
    "ID",
    "IDDD",
    "J",
    "WW",
    "W",
    "D",
    "DDD",
    "Q",
    "CC",
)
INTERVALS: Final = (
    "0",
    "1 year 2 mons",
    "12 years",
    "-3 years -2 mons 40 days",
    "2 mons",
    "100 days",
    "1 year 12 days",
    "2000 years 11 mons 27 days",
    "-1 day",
)

WRONG: Final = frozenset(
    {
        *("2023-367", "2024-01", "2024-13-01", "2024-02-30", "99-01-05"),
        *(":30", "13:30 pm", "11:60", "25:00", "allballs", "+16", "nowhere"),
    }
)
"""What is refused: of two such in one text either may be named."""
DATES_BEFORE_TIMES: Final = ("", "2024-01-05")
"""A TIME ignores a date before it; where that is written oddly, PostgreSQL has rules of its own."""


def _texts(dates: Sequence[str], times: Sequence[str]) -> list[str]:
    return [
        " ".join(part for part in parts if part)
        for parts in product(dates, times, ZONES)
        if sum(part in WRONG for part in parts) < 2
    ]


GRIDS: Final = (
    Grid(
        (),
        tuple(
            f"SELECT '{text}'::{sql_type} AS x"
            for text in _texts([each for each in DATES if each], TIMES)
            for sql_type in ("date", "timestamp", "timestamptz")
        )
        + tuple(
            f"SELECT '{text}'::{sql_type} AS x"
            for text in _texts(
                DATES_BEFORE_TIMES, [each for each in TIMES if re.match(r"\d+:", each)]
            )
            for sql_type in ("time", "timetz")
        ),
    ),
    Grid(
        (),
        tuple(
            f"SELECT CAST('{word} {time}' AS {sql_type}) - CAST('today' AS {sql_type}) AS x"
            for word in WORDS
            for time in TIMES
            for sql_type in ("date", "timestamp", "timestamptz")
        )
        + tuple(
            f"SELECT to_char('{value}'::interval, '{pattern}') AS x"
            for value in INTERVALS
            for pattern in PATTERNS
        ),
    ),
)
