"""No statement keeps the loop when it finishes aggregates, sorts keys or fills windows."""

from __future__ import annotations

from random import Random

import pytest
import trio

from qserver.engine.collector import settle_collector
from qserver.functions.all_functions import AGGREGATES
from tests.hostile.statement_sweep import VALUES, drawn, loop_steps, measured, statements
from tests.hostile.test_sweep import STEPS_MOST, TRIES
from tests.known_work import step, step_seconds
from tests.patience import PATIENCE_SECONDS
from tests.sampling import NIGHTLY, SEED
from tests.sql.databases import opened_sql

BY_DAY, AT_NIGHT = 10, 600
TIMEOUT_MS = 1000 * PATIENCE_SECONDS


@pytest.mark.long
async def test_no_step_of_a_statement_takes_long() -> None:
    worst, what = 0.0, "nothing"
    async with opened_sql() as database:
        settle_collector()
        for name, sql in drawn(Random(SEED))[: AT_NIGHT if NIGHTLY else BY_DAY]:
            least = float("inf")
            for _ in range(TRIES):
                run = await measured(database, name, sql, TIMEOUT_MS)
                least = min(least, run.seconds / step_seconds())
                if least < STEPS_MOST:
                    break
            if least > worst:
                worst, what = least, name
    print(f"the worst: {what}, {worst:.1f} steps of known work")
    assert worst < STEPS_MOST, what


def test_all_aggregates_and_types_are_tried() -> None:
    found = [what for what, _ in statements()]
    for name in AGGREGATES:
        if name not in ("rank", "dense_rank", "percent_rank", "cume_dist"):
            assert any(what.startswith(f"{name} of") for what in found), name
    for name in VALUES:
        assert any(what.startswith(f"{name}: ") for what in found), name


async def test_a_step_that_takes_long_is_seen() -> None:
    with loop_steps() as found:
        await trio.lowlevel.checkpoint()
        for _ in range(3):
            step()
        await trio.lowlevel.checkpoint()
    assert found.longest > step_seconds()
