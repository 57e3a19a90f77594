"""Programs of open transactions by chance, each step beside a model of whole copies.

One client, so that nearly every program commits: definitions, rows, failing statements and nested
savepoints meet far more often than in the simulation, which runs the same programs at once.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import trio

from qserver.durability.memory import MemoryLog
from qserver.engine.database import Database
from qserver.engine.work import run
from qserver.errors import QserverError
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from qserver.storage.stepped import Savepoint
from simulations.determinism import run_repeatably
from simulations.mutants import planted, steps
from simulations.mutants.mutant import Mutant, edited
from simulations.step_model import (
    TABLES,
    Contents,
    ModelSession,
    ModelTable,
    StepAnswer,
    draw_step,
    draws_for,
    names_after,
)
from tests.sampling import sampled
from tests.simulations.test_sql_workloads import calm_world

PROGRAMS = 8


async def run_programs(seed: int) -> str | None:
    """Run programs one after the other; return where the engine and the model differ."""
    chance = Random(f"programs {seed}")
    world, log = calm_world(), MemoryLog()
    contents: Contents = dict.fromkeys(TABLES, ModelTable())
    problem: str | None = None
    for life in range(2):
        async with trio.open_nursery() as nursery:
            database = Database(log, world, shards=3)
            nursery.start_soon(database.run)
            sql = SqlDatabase(database, world)
            if not life:
                for name in TABLES:
                    await sql.execute(f"CREATE TABLE {name} (id integer PRIMARY KEY, v integer)")
            for _ in range(PROGRAMS):
                session = ModelSession(contents)
                problem = problem or await run_program(chance, sql, session)
                if not session.failed:
                    contents = session.contents
            problem = problem or await differences(sql, contents)
            nursery.cancel_scope.cancel()
    return problem


async def run_program(chance: Random, sql: SqlDatabase, session: ModelSession) -> str | None:
    """Run a program and commit it, unless it has failed at last."""
    transaction = await sql.open()
    draws, names, done = draws_for(chance), list[str](), list[str]()
    try:
        for _ in range(chance.randint(4, 25)):
            step = draw_step(draws, names, session.failed)
            done += [f"{each.sql} {each.statement.parameters or ''}" for each in step]
            got = await answer_of(sql, transaction, [each.statement for each in step])
            expected = session.run(step)
            if (got, transaction.rows_changed) != (expected, session.affected):
                return f"{done}: {got}, the model says {expected}, {session.affected} rows"
            if not session.failed:
                names = names_after(names, step)
        if not session.failed:
            await run(sql.committing(transaction, RunOptions()))
    finally:
        transaction.release()
    return None


async def answer_of(
    sql: SqlDatabase, transaction: OpenTransaction, statements: list[Statement]
) -> StepAnswer:
    try:
        done = await sql.inside(transaction, statements, RunOptions())
    except QserverError as error:
        return error.code
    return tuple((tuple(each.rows), each.affected_rows) for each in done.results)


async def differences(sql: SqlDatabase, contents: Contents) -> str | None:
    for name in TABLES:
        try:
            rows: Any = tuple((await sql.execute(f"SELECT * FROM {name} ORDER BY id")).rows)
        except QserverError:
            rows = None
        expected = contents[name].listed() if name in contents else None
        if rows != expected:
            return f"{name} has {rows}, the model {expected}"
    return None


def problem_of(seed: int) -> str | None:
    return run_repeatably(  # type: ignore[no-any-return]
        seed, lambda: run_programs(seed), virtual_seconds_max=1000.0, steps_max=10_000_000
    )


@pytest.mark.parametrize("seed", sampled(range(12), 6))
def test_a_program_gets_the_answers_of_the_model(seed: int) -> None:
    assert problem_of(seed) is None


BUGS = (
    *(each for each in steps.MUTANTS if "undo" in each.name or "take_over" in each.name),
    Mutant(
        "remember_nothing_of_new_keys",
        "a key that was first written after a savepoint stays",
        (),
        (edited(Savepoint.undo, "written.pop(key, None)", "pass"),),
    ),
)


@pytest.mark.long
@pytest.mark.parametrize("bug", sampled(BUGS, 2), ids=lambda each: each.name)
def test_programs_see_planted_bugs(bug: Mutant) -> None:
    with planted(bug):
        assert any(problem_of(seed) is not None for seed in range(12)), bug.explanation
