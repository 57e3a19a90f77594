"""A program that shows a difference becomes as small as it can."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.differential.comparison import Difference, Step, difference
from tests.differential.engines import Outcome
from tests.differential.shrinking import Attempt, Shrinker


class Sides:
    """Two databases that differ in whatever holds `sin(` after a statement that names t1."""

    @asynccontextmanager
    async def prepared(self, steps: list[Step]) -> AsyncIterator[Attempt]:
        has_table = any("t1" in step.sql for step in steps)

        async def attempt(step: Step) -> Difference | None:
            odd = has_table and "sin(" in step.sql
            found = Outcome(columns=("a",), rows=(("2" if odd else "1",),))
            return difference(step, Outcome(columns=("a",), rows=(("1",),)), found)

        yield attempt


async def test_what_does_not_matter_goes() -> None:
    steps = [
        Step("CREATE TABLE t0 (a int)"),
        Step("CREATE TABLE t1 (a int, b text, c date)"),
        Step("INSERT INTO t0 VALUES (1), (2)"),
        Step("SELECT a, (sin(b) + 1) AS x, ARRAY[1, 2] FROM t1 WHERE a > 5 ORDER BY a LIMIT 3"),
    ]
    sides = Sides()
    async with sides.prepared(steps[:-1]) as attempt:
        found = await attempt(steps[-1])
    assert found is not None
    small = await Shrinker(sides.prepared, found).shrink(steps)
    assert len(small) == 2
    assert "t1" in small[0].sql and len(small[0].sql) < 12
    assert "sin(" in small[1].sql and len(small[1].sql) < 16


async def test_rows_are_not_cut_off_in_another_order() -> None:
    step = Step("SELECT sin(1), 2 FROM t1 ORDER BY 2, 1 OFFSET 2")
    tried: list[str] = []

    @asynccontextmanager
    async def prepared(steps: list[Step]) -> AsyncIterator[Attempt]:
        async def attempt(each: Step) -> Difference | None:
            tried.append(each.sql)
            if each != step:
                return None
            return difference(each, Outcome(rows=(("1",),)), Outcome(rows=(("2",),)))

        yield attempt

    async with prepared([]) as attempt:
        found = await attempt(step)
    assert found is not None
    assert await Shrinker(prepared, found).shrink([step]) == [step]
    assert len(tried) > 10 and {sql for sql in tried if "OFFSET" in sql} == {step.sql}


async def test_another_sort_of_difference_is_not_what_is_looked_for() -> None:
    step = Step("SELECT sin(1), 2")

    @asynccontextmanager
    async def prepared(steps: list[Step]) -> AsyncIterator[Attempt]:
        async def attempt(tried: Step) -> Difference | None:
            if tried == step:
                return difference(tried, Outcome(rows=(("1",),)), Outcome(rows=(("2",),)))
            return difference(tried, Outcome(error="42601"), Outcome(error="42703"))

        yield attempt

    async with prepared([]) as attempt:
        found = await attempt(step)
    assert found is not None
    assert await Shrinker(prepared, found).shrink([step]) == [step]
