"""Plans are found by fingerprint and the literals in it while everything that they were made from
holds."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from qserver.functions.context import Context
from qserver.limits import PARAMETERS_MAX, PLANS_KEPT_BYTES_MAX, PLANS_OF_FINGERPRINT_MAX
from qserver.query.plan_cache import PLANS_LARGE_MIN, CachedPlan, KeptPlans, PlanCache
from qserver.sql.execution import Compiled, Run
from qserver.sql.plan import OneRow, OutputColumn, Select
from qserver.sql.prepare import CompiledPlan
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.schema import Table
from qserver.values.types import INTEGER
from tests.sql.databases import opened_sql
from tests.storage.databases import PEOPLE, PLAIN, commit, database, database_with


def run(transaction: object, slots: object, context: Context) -> Run:
    yield [(1,)]
    return 0


COMPILED = Compiled((OutputColumn("a", INTEGER),), run, False, "", ())


def plan_for(
    snapshot: Snapshot, in_fingerprint: Iterable[int] = (), tables: Iterable[Table] = (PLAIN,)
) -> CachedPlan:
    made = CompiledPlan(
        COMPILED,
        Select(OneRow(), 0, COMPILED.columns),
        parameters=None,
        in_fingerprint=frozenset(in_fingerprint),
        undecided=frozenset(),
        size=0,
        writes=False,
        grows=False,
        watched=False,
    )
    return CachedPlan(
        made,
        snapshot.catalog,
        {table.name: table for table in tables},
        {table.id: snapshot.count(table.id) for table in tables},
    )


def test_a_plan_is_found_again_by_its_shape() -> None:
    snapshot, cache = database(2), PlanCache()
    plan = plan_for(snapshot)
    assert cache.find("fingerprint", [1], snapshot.catalog, snapshot) is None
    cache.keep("fingerprint", [1], plan)
    assert cache.find("fingerprint", [2], snapshot.catalog, snapshot) is plan
    assert cache.find("other", [2], snapshot.catalog, snapshot) is None
    statistics = cache.statistics()
    assert (statistics.hits, statistics.misses, statistics.invalidated) == (1, 2, 0)


def test_pinned_literals_are_part_of_the_key() -> None:
    snapshot, cache = database(2), PlanCache()
    first, second = plan_for(snapshot, [1]), plan_for(snapshot, [1])
    cache.keep("fingerprint", ["x", 1], first)
    assert cache.find("fingerprint", ["y", 1], snapshot.catalog, snapshot) is first
    assert cache.find("fingerprint", ["x", 2], snapshot.catalog, snapshot) is None
    cache.keep("fingerprint", ["x", 2], second)
    assert cache.find("fingerprint", ["z", 2], snapshot.catalog, snapshot) is second
    assert cache.find("fingerprint", ["z", 1], snapshot.catalog, snapshot) is first


def test_a_literal_that_is_pinned_later_makes_plans_that_did_not_know_of_it_void() -> None:
    snapshot, cache = database(2), PlanCache()
    cache.keep("fingerprint", [1, 2], plan_for(snapshot, [0]))
    later = plan_for(snapshot, [1])
    cache.keep("fingerprint", [1, 3], later)
    assert cache.find("fingerprint", [1, 3], snapshot.catalog, snapshot) is later
    assert cache.find("fingerprint", [1, 2], snapshot.catalog, snapshot) is None


def test_a_plan_holds_while_the_definitions_that_it_uses_are_the_same_objects() -> None:
    snapshot, cache = database(2), PlanCache()
    plan = plan_for(snapshot, tables=[snapshot.catalog.tables["plain"]])
    cache.keep("fingerprint", [], plan)

    other = Transaction(snapshot)
    other.define("people", PEOPLE.without_index("people_place"))
    after = commit(other)
    assert cache.find("fingerprint", [], after.catalog, after) is plan
    assert plan.catalog is after.catalog, "so the next look costs one comparison"

    same = Transaction(after)
    same.drop_table("plain")
    last = commit(same)
    assert cache.find("fingerprint", [], last.catalog, last) is None
    assert cache.statistics().invalidated == 1


def test_a_plan_made_for_a_table_of_another_size_is_made_anew() -> None:
    empty, cache = database(2), PlanCache()
    cache.keep("fingerprint", [], plan_for(empty))
    few = database_with(*((at, "x") for at in range(10)), table=PLAIN)
    many = database_with(*((at, "x") for at in range(1000)), table=PLAIN)
    assert cache.find("fingerprint", [], empty.catalog, few) is not None
    for _ in range(100):
        assert cache.find("fingerprint", [], empty.catalog, few) is not None
    assert cache.find("fingerprint", [], empty.catalog, many) is None


@pytest.mark.parametrize(
    ("before", "after", "suits"),
    [
        (0, 63, True),
        (0, 64, False),
        (40, 79, True),
        (40, 80, False),
        (80, 41, True),
        (80, 40, False),
    ],
)
def test_a_plan_suits_tables_of_less_than_twice_the_size(
    before: int, after: int, suits: bool
) -> None:
    def filled(rows: int) -> Snapshot:
        return database_with(*((at, "x") for at in range(rows)), table=PLAIN)

    small, cache = filled(before), PlanCache()
    cache.keep("fingerprint", [], plan_for(small))
    found = cache.find("fingerprint", [], small.catalog, filled(after))
    assert (found is not None) == suits


def test_the_shape_that_was_not_used_for_longest_is_forgotten_first() -> None:
    snapshot, cache = database(2), PlanCache(fingerprints_most=2)
    for fingerprint in ("a", "b"):
        cache.keep(fingerprint, [], plan_for(snapshot))
    assert cache.find("a", [], snapshot.catalog, snapshot) is not None
    cache.keep("c", [], plan_for(snapshot))
    kept = [
        fingerprint
        for fingerprint in "abc"
        if cache.find(fingerprint, [], snapshot.catalog, snapshot) is not None
    ]
    assert kept == ["a", "c"]
    assert cache.statistics().fingerprints == 2


def test_plans_of_one_shape_are_bounded() -> None:
    snapshot, cache = database(2), PlanCache()
    for value in range(PLANS_OF_FINGERPRINT_MAX + 5):
        cache.keep("fingerprint", [value], plan_for(snapshot, [0]))
    found = [
        value
        for value in range(PLANS_OF_FINGERPRINT_MAX + 5)
        if cache.find("fingerprint", [value], snapshot.catalog, snapshot) is not None
    ]
    assert found == list(range(5, PLANS_OF_FINGERPRINT_MAX + 5))


def test_plans_are_kept_up_to_a_size_in_memory() -> None:
    snapshot = database(2)
    cache = PlanCache(bytes_most=100_000)
    for number in range(20):
        plan = plan_for(snapshot)
        plan.size = 20_000
        cache.keep((f"fingerprint {number}", ""), [], plan)
    statistics = cache.statistics()
    assert statistics.fingerprints == 4 and 80_000 < statistics.bytes <= 100_000
    assert cache.find(("fingerprint 19", ""), [], snapshot.catalog, snapshot) is not None
    assert cache.find(("fingerprint 0", ""), [], snapshot.catalog, snapshot) is None
    too_large = plan_for(snapshot)
    too_large.size = 34_000
    cache.keep(("large", ""), [], too_large)
    assert cache.find(("large", ""), [], snapshot.catalog, snapshot) is None


def test_plans_of_the_database_that_keeps_most_go_when_memory_is_short() -> None:
    snapshot, kept = database(2), KeptPlans()
    small, large = PlanCache(all_plans=kept), PlanCache(all_plans=kept)
    for cache, count in ((small, 2), (large, 10)):
        for number in range(count):
            plan = plan_for(snapshot)
            plan.size = 20_000
            cache.keep((f"fingerprint {number}", ""), [], plan)
    before = small.bytes
    assert kept.bytes == small.bytes + large.bytes
    kept.shrink(100_000)
    assert kept.bytes == small.bytes + large.bytes <= 100_000
    assert small.bytes == before
    assert large.find(("fingerprint 9", ""), [], snapshot.catalog, snapshot) is not None
    small.close()
    assert kept.bytes == large.bytes
    kept.shrink(0)
    assert (kept.bytes, large.bytes) == (0, 0)
    kept.shrink(0)


@pytest.mark.parametrize(
    ("sql", "item", "of_item"),
    [
        ("insert into t values {}", "(${}, ${})", 2),
        ("select count(*) from t where id in ({})", "${}", 1),
    ],
)
async def test_a_statement_with_as_many_parameters_as_there_may_be_is_planned_once(
    sql: str, item: str, of_item: int
) -> None:
    """Its size is told from two smaller ones, since making its plan takes seconds."""
    async with opened_sql(shards=1) as opened:
        await opened.execute("create table t (id int primary key, n int)")
        sizes = []
        for count in (500, 1000):
            numbers = iter(range(1, count + 1))
            items = [
                item.format(*(next(numbers) for _ in range(of_item)))
                for _ in range(count // of_item)
            ]
            before = opened.statistics().bytes
            await opened.execute(sql.format(", ".join(items)), [*range(count)])
            sizes.append(opened.statistics().bytes - before)
            await opened.execute("delete from t")
        each = (sizes[1] - sizes[0]) / 500
        whole = sizes[0] + each * (PARAMETERS_MAX - 500)
        assert 0 < whole * PLANS_LARGE_MIN < PLANS_KEPT_BYTES_MAX
