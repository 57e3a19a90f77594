"""The shapes of answers about what statements cost."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class StatementCounts(Struct, frozen=True):
    """What runs of one statement have cost; times in milliseconds.

    `queryid` is a text, because JavaScript has no integers of 64 bits.
    """

    queryid: str
    query: str
    calls: int
    rows: int
    total_ms: float
    mean_ms: float
    min_ms: float
    max_ms: float
    stddev_ms: float
    cpu_ms: float
    retries: int
    conflicts: int
    memory_bytes_max: int
    plans: int


class StatementsAnswer(Struct, frozen=True):
    """Statements of a database since the start or the last reset, the costliest first."""

    success: Literal[True]
    database: str
    statements: list[StatementCounts]
