"""Every probe passes; and each kind of broken database makes the probes fail that it should."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from qserver.durability.port import Log
from qserver.engine.world import World
from qserver.errors import NotFound
from qserver.limits import PROBE_SECONDS_MAX
from qserver.probes.matrix import BY_NAME, PROBES, run_probe
from qserver.probes.run import Probe, Run, run_one
from qserver.probes.steps import does, fails, gives, together
from qserver.query.scratch import scratch_database
from qserver.query.sql_database import Result, SqlDatabase
from simulations.mutants import MUTANTS, planted
from tests.sql.databases import quiet_world

MUTANT = {mutant.name: mutant for mutant in MUTANTS}


@pytest.mark.parametrize("name", list(BY_NAME))
async def test_the_probe_passes(name: str) -> None:
    result = await run_probe(name, quiet_world())
    assert [step for step in result.steps if not step.ok] == []
    assert (result.name, result.status) == (name, "pass")
    assert result.steps and all(step.detail for step in result.steps)
    assert result.duration_us > 0


def test_there_are_many_and_each_has_its_own_name() -> None:
    assert len(BY_NAME) == len(PROBES) >= 100


async def test_an_unknown_probe_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(NotFound) as caught:
        await run_probe("time_travel", quiet_world())
    assert "write_skew" in (caught.value.detail or "")
    assert "/capabilities" in (caught.value.hint or "")


# --- probes can fail -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "detail"),
    [
        (gives("SELECT 1", "2"), "expected 1 row (2), found 1 row (1)"),
        (gives("SELECT 1.50", "1.5"), "expected 1 row (1.5), found 1 row (1.50)"),
        (gives("SELECT 1"), "expected no rows, found 1 row (1)"),
        (gives("SELECT 1", "1", types=("text",)), "expected 1 row (1) of type text"),
        (fails("SELECT 1", "22012"), "expected error 22012, found 1 row (1)"),
        (fails("SELECT 1 / 0", "22003"), "expected error 22003, found error 22012"),
        (does("SELECT 1 / 0"), "expected success, found error 22012"),
        (together(does("SELECT 1"), gives("SELECT 2", "3")), "expected 1 row (3), found 1 row (2)"),
    ],
)
async def test_a_wrong_expectation_fails_and_says_what_was_found(step: Any, detail: str) -> None:
    after = gives("SELECT 'never asked'", "never asked")
    result = await run_one(Probe("wrong", "test", "", (step, after)), quiet_world())
    assert result.status == "fail"
    assert not result.steps[-1].ok
    assert result.steps[-1].detail.startswith(detail)


class Forgetful(SqlDatabase):
    """Says that it has updated and deleted, and does not."""

    async def execute(self, sql: str, *arguments: Any, **options: Any) -> Result:
        if sql.startswith(("UPDATE", "DELETE")):
            return Result((), (), [], 1, 1)
        return await super().execute(sql, *arguments, **options)


class Hanging(SqlDatabase):
    async def execute(self, sql: str, *arguments: Any, **options: Any) -> Result:
        return await trio.sleep_forever()


class Crashing(SqlDatabase):
    async def execute(self, sql: str, *arguments: Any, **options: Any) -> Result:
        raise RuntimeError("a wire came loose")


def opens(kind: type[SqlDatabase]) -> Any:
    @asynccontextmanager
    async def opened_as(world: World, *, log: Log | None = None) -> AsyncIterator[SqlDatabase]:
        async with scratch_database(world, log=log) as database:
            yield kind(database.database, world)

    return opened_as


@pytest.mark.parametrize("name", ["update", "recovery_rows", "recency"])
async def test_a_database_that_forgets_changes_fails(name: str) -> None:
    result = await run_probe(name, quiet_world(), opens=opens(Forgetful))
    assert result.status == "fail"
    assert [step.ok for step in result.steps].count(False) == 1


async def test_a_database_that_breaks_in_an_unknown_way_fails_and_says_how() -> None:
    result = await run_probe("select", quiet_world(), opens=opens(Crashing))
    assert result.status == "fail"
    assert "a wire came loose" in result.steps[-1].detail


async def test_a_database_that_hangs_fails_when_the_time_is_over(
    autojump_clock: MockClock,
) -> None:
    result = await run_probe("select", quiet_world(), opens=opens(Hanging))
    assert result.status == "fail"
    assert "did not end" in result.steps[-1].detail
    assert result.duration_us >= PROBE_SECONDS_MAX * 1_000_000


async def test_a_probe_without_steps_proves_nothing() -> None:
    async def nothing(run: Run) -> None:
        await trio.lowlevel.checkpoint()

    result = await run_one(Probe("empty", "test", "", nothing), quiet_world())
    assert result.status == "fail"


@pytest.mark.parametrize(
    ("mutant", "probes"),
    [
        ("skip_read_validation", ("lost_update", "retry_of_conflicts", "predicate_many_preceders")),
        ("skip_read_validation", ("write_skew", "circular_information_flow", "read_only_anomaly")),
        ("skip_read_validation", ("phantom_that_decides", "write_skew_by_predicate")),
        ("skip_catalog_check", ("definition_during_transaction",)),
        ("resurrect_deleted", ("recovery_rows",)),
    ],
)
async def test_a_planted_bug_of_the_engine_is_found(mutant: str, probes: tuple[str, ...]) -> None:
    with planted(MUTANT[mutant]):
        for name in probes:
            assert (await run_probe(name, quiet_world())).status == "fail", name
