"""Workloads measure, end on time, let others run, and check what they have done."""

from __future__ import annotations

from itertools import islice
from random import Random
from typing import Any

import pytest
import trio

from qserver.errors import AlreadyExists, InvalidRequest
from qserver.query.scratch import scratch_database
from qserver.workloads.measuring import Bench, run_workload
from qserver.workloads.operations import Tables, transfer
from qserver.workloads.standard import WORKLOADS, Run, begin_with
from tests.engine.passes import counted_passes
from tests.sql.databases import quiet_world


@pytest.mark.parametrize("name", list(WORKLOADS))
async def test_a_workload_runs_for_its_time_and_its_check_holds(name: str) -> None:
    world = quiet_world()
    report = await run_workload(name, duration_ms=100, clients=4, seed=7, world=world, shards=2)
    assert (report.workload, report.clients, report.seed) == (name, 4, 7)
    assert (report.check, report.check_ok) == ("ok", True)
    assert report.duration_ms >= 100
    assert report.operations >= 4
    assert report.operations_per_second > 0
    latency = report.latency_us
    assert 0 < latency.p50 <= latency.p95 <= latency.p99 <= latency.max
    writes = {"insert", "update", "transfer", "hot_counter"}
    assert report.commits == (report.operations if name in writes else report.commits)
    assert (report.commits == 0) == (name in {"point_read", "scan"})


async def test_clients_on_one_row_lose_nothing_and_short_work_has_no_conflicts() -> None:
    world = quiet_world()
    report = await run_workload("hot_counter", duration_ms=200, clients=16, seed=1, world=world)
    assert report.check_ok
    assert (report.conflicts, report.retries) == (0, 0)


async def test_others_run_while_a_workload_does() -> None:
    async with counted_passes() as passes:
        await run_workload("point_read", duration_ms=100, clients=8, seed=1, world=quiet_world())
    assert passes.count > 20


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": "nothing"}, "nothing"),
        ({"duration_ms": 0}, "duration_ms"),
        ({"duration_ms": 5001}, "5000"),
        ({"clients": 0}, "clients"),
        ({"clients": 65}, "64"),
    ],
)
async def test_bad_arguments_are_refused_with_what_is_allowed(
    change: dict[str, Any], told: str
) -> None:
    given = {"name": "mixed", "duration_ms": 10, "clients": 1, "seed": 1, "world": quiet_world()}
    with pytest.raises(InvalidRequest) as caught:
        await run_workload(**{**given, **change})
    assert told in caught.value.message
    if "name" in change:
        assert "hot_counter" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("transfer", "UPDATE bench_accounts SET balance = balance - 1 WHERE id = 0"),
        ("hot_counter", "UPDATE bench_accounts SET balance = balance - 1 WHERE id = 0"),
        ("insert", "DELETE FROM bench_entries"),
        ("update", "INSERT INTO bench_accounts VALUES (-1, 'nobody', 0)"),
    ],
)
async def test_the_check_of_a_workload_notices_what_differs(name: str, loss: str) -> None:
    async with scratch_database(quiet_world()) as database:
        run = Run(name, database)
        await run.set_up()
        await run.operate(next(run.operations(Random(1))))
        assert await run.check() is None
        await database.execute(loss)
        assert "expected" in (await run.check() or "")


@pytest.mark.parametrize("name", ["point_read", "scan"])
async def test_an_answer_that_is_wrong_is_noticed(name: str) -> None:
    async with scratch_database(quiet_world()) as database:
        run = Run(name, database)
        await run.set_up()
        await run.operate(next(run.operations(Random(1))))
        assert await run.check() is None
        await database.execute("UPDATE bench_accounts SET balance = 0, id = -1 - id")
        await run.operate(next(run.operations(Random(1))))
        assert " gave " in (await run.check() or "")


def test_rows_begin_with_what_is_to_be_found() -> None:
    assert begin_with([(1, 2), (3, 4)], [(1,), (3, 4)])
    for rows in ([], [(1, 2)], [(1, 2), (3, 5)], [(1, 2), (3, 4), (5, 6)]):
        assert not begin_with(rows, [(1,), (3, 4)])


async def test_a_client_asks_the_same_with_the_same_seed() -> None:
    asked = []
    for _ in range(2):
        async with scratch_database(quiet_world()) as database:
            operations = Run("mixed", database).operations(Random("7 0"))
            asked.append([next(operations) for _ in range(20)])
    assert asked[0] == asked[1]
    assert len({sql for each in asked[0] for sql, _ in each.statements}) == 3


def test_a_transfer_is_between_two_accounts() -> None:
    for operation in islice(transfer(Tables("bench", 2), Random(1)), 20):
        (_, (_, giver)), (_, (_, taker)) = operation.statements
        assert {giver, taker} == {0, 1}


# --- one at a time -------------------------------------------------------------------------------


@pytest.mark.long
async def test_a_second_bench_is_refused_while_one_runs_and_welcome_afterwards() -> None:
    bench = Bench()
    world = quiet_world()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: bench.run("update", duration_ms=50, world=world))
        while repr(bench) == "a bench that is free":
            await trio.lowlevel.checkpoint()
        assert repr(bench) == "a bench that runs update"
        with pytest.raises(AlreadyExists) as caught:
            await bench.run("scan", world=world)
        assert "update" in caught.value.message
    assert repr(bench) == "a bench that is free"
    assert (await bench.run(duration_ms=10, world=world)).workload == "mixed"


@pytest.mark.long
async def test_a_bench_that_was_refused_or_cancelled_leaves_the_way_free() -> None:
    bench = Bench()
    with pytest.raises(InvalidRequest):
        await bench.run("nothing", world=quiet_world())
    with trio.move_on_after(0.02):
        await bench.run("insert", duration_ms=5000, world=quiet_world())
    assert repr(bench) == "a bench that is free"
