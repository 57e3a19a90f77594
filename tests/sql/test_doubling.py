"""A program grows as the statement does, or the statement is refused, before much work is done."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from qserver.errors import ProgramLimitExceeded, StatementTooComplex
from qserver.query.sql_database import SqlDatabase
from tests.sampling import NIGHTLY, drawn
from tests.sql.databases import opened_sql
from tests.sql.doubling import EXPRESSIONS, QUERIES, TABLE, derived, nested, read, views

LEVELS = 8

GROWTH_MOST = 3.0
"""How much longer a program may be for a statement with twice the levels."""

CALLS_MOST = 6_000_000
"""Calls of functions that a statement is refused within: some seconds of a planning thread."""

BY_DAY = 1 / 8
"""The share of expressions and of shapes that is tried. At night all are."""

REFUSED = (StatementTooComplex, ProgramLimitExceeded)


async def test_expressions_inside_of_expressions() -> None:
    async with opened_sql() as database:
        await database.execute(TABLE)
        for name in sample(EXPRESSIONS):
            await _check(name, database, nested(name, LEVELS), nested(name, 2 * LEVELS))


async def test_common_tables_over_common_tables() -> None:
    async with opened_sql() as database:
        await database.execute(TABLE)
        for name in sample(QUERIES):
            await _check(name, database, derived(name, LEVELS // 2), derived(name, LEVELS))


@pytest.mark.half
async def test_views_over_views() -> None:
    async with opened_sql() as database:
        await database.execute(TABLE)
        for name in sample([name for name, shape in QUERIES.items() if shape.count("{x}") < 2]):
            sizes = []
            for number, definition in enumerate(views(name, LEVELS)):
                await database.execute(definition)
                if number in (LEVELS // 2 - 1, LEVELS - 1):
                    sizes.append(await _size(database, read(f"v{number}")))
            half, whole = sizes
            assert half is not None and whole is not None and whole < GROWTH_MOST * half, name
            await database.execute("DROP VIEW v0 CASCADE")


@pytest.mark.long
async def test_views_that_read_a_view_twice_are_refused_in_the_end() -> None:
    async with opened_sql() as database:
        await database.execute(TABLE)
        with pytest.raises(REFUSED), _counted():
            for definition in views("join", 2 * LEVELS):
                await database.execute(definition)


def sample(names: Iterable[str]) -> list[str]:
    every = list(names)
    return every if NIGHTLY else drawn(every, round(len(every) * BY_DAY))


async def _check(name: str, database: SqlDatabase, half: str, whole: str) -> None:
    with _counted() as calls:
        size = await _size(database, whole)
    assert calls[0] < CALLS_MOST, name
    if size is not None:
        of_half = await _size(database, half)
        assert of_half is not None and size < GROWTH_MOST * of_half, name


async def _size(database: SqlDatabase, sql: str) -> int | None:
    """The length of the program, or None if the statement is refused."""
    try:
        result = await database.execute(f"EXPLAIN (CODE) {sql}")
    except REFUSED:
        return None
    return sum(len(line) for (line,) in result.rows)


@contextmanager
def _counted() -> Iterator[list[int]]:
    calls = [0]

    def count(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            calls[0] += 1
            if calls[0] == CALLS_MOST:
                sys.setprofile(None)
                raise AssertionError("it takes far too long")

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
