"""Over every statement of the golden scripts: no rule loses a condition, and all may run twice."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from qserver.errors import QserverError
from qserver.lexing.fingerprint import parameterize
from qserver.query.catalog_names import CatalogNames
from qserver.query.sql_database import SqlDatabase
from qserver.sql.ast import Delete, Explain, Insert, Merge, Query, Update
from qserver.sql.binder import Literals, bind
from qserver.sql.optimizer import RULES, Rule, optimize
from qserver.sql.optimizer.access_path_selection import access_path_selection
from qserver.sql.optimizer.aggregate_elimination import aggregate_elimination
from qserver.sql.optimizer.or_factoring import or_factoring
from qserver.sql.optimizer.subquery_unnesting import subquery_unnesting
from qserver.sql.parser import parse
from qserver.sql.statistics import Statistics
from qserver.sql.walk import everything
from tests.sampling import sampled
from tests.sql.databases import opened_sql
from tests.sql.golden import parse_script
from tests.sql.optimizer.conditions import (
    SUBQUERY,
    conditions_of,
    disagreements,
    joins_for_subqueries,
)

SCRIPTS = sorted((Path(__file__).parent.parent / "scripts").rglob("*.script"))
NAMES = [path.stem for path in SCRIPTS]
MAY_ADD = (access_path_selection, aggregate_elimination)
"""Bounds for a LIKE; the key of a scan, for each of its aggregates."""


Bound: TypeAlias = list[tuple[str, Any, Statistics]]
Scripts: TypeAlias = dict[Path, Bound]


@pytest.fixture(scope="module")
def scripts() -> Scripts:
    """The statements of the scripts that were run already."""
    return {}


async def bound_statements(path: Path, scripts: Scripts) -> Bound:
    if path not in scripts:
        scripts[path] = await run_script(path)
    return scripts[path]


async def run_script(path: Path) -> Bound:
    """Return every query and change of a script, bound where it stands, before it is run."""
    cases, _ = parse_script(path.read_text())  # noqa: ASYNC240  # a small file, in a test
    found = []
    async with opened_sql() as database:
        for case in cases:
            bound = _bound(database, case.sql)
            if bound is not None:
                found.append((case.sql, *bound))
            with suppress(QserverError):
                await database.execute(case.sql)
    return found


def _bound(database: SqlDatabase, sql: str) -> tuple[Any, Statistics] | None:
    snapshot = database.database.snapshots.take()
    assert snapshot is not None
    names = CatalogNames(snapshot.catalog, snapshot)
    try:
        statement = parse(sql).statement
        if isinstance(statement, Explain):
            return None
        if not isinstance(statement, Query | Insert | Update | Delete | Merge):
            return None
        return bind(
            statement, Literals(parameterize(sql).literals), names
        ).statement, names.statistics
    except QserverError:
        return None


def lost(rule: Rule, before: Any, after: Any) -> Counter[str]:
    """The conditions that a rule has dropped, or made out of nothing."""
    had, has = conditions_of(before), conditions_of(after)
    missing = had - has
    if rule is or_factoring:
        return disagreements(before, after)
    if rule is subquery_unnesting:
        made = joins_for_subqueries(after) - joins_for_subqueries(before)
        excused = [each for each in missing if SUBQUERY in each]
        assert sum(missing[each] for each in excused) == made
        missing -= Counter({each: missing[each] for each in excused})
        return missing
    return missing if rule in MAY_ADD else missing + (has - had)


@pytest.mark.parametrize("path", sampled(SCRIPTS, 12), ids=NAMES)
async def test_every_condition_before_a_rule_is_there_after_it(
    path: Path, scripts: Scripts
) -> None:
    for sql, statement, statistics in await bound_statements(path, scripts):
        for rule in RULES:
            improved = optimize(statement, statistics, (rule,))
            assert not lost(rule, statement, improved), f"{rule.__name__}: {sql}"
            statement = improved


@pytest.mark.parametrize("path", sampled(SCRIPTS, 12), ids=NAMES)
async def test_a_rule_does_nothing_to_what_it_has_made(path: Path, scripts: Scripts) -> None:
    for sql, statement, statistics in await bound_statements(path, scripts):
        for rule in RULES:
            statement = optimize(statement, statistics, (rule,))
            assert optimize(statement, statistics, (rule,)) == statement, f"{rule.__name__}: {sql}"


@pytest.mark.parametrize("path", sampled(SCRIPTS, 12), ids=NAMES)
async def test_all_rules_do_nothing_to_what_they_have_made(path: Path, scripts: Scripts) -> None:
    for sql, statement, statistics in await bound_statements(path, scripts):
        once = optimize(statement, statistics)
        assert optimize(once, statistics) == once, sql


@pytest.mark.nightly
async def test_the_scripts_have_conditions_of_every_kind(scripts: Scripts) -> None:
    """Else the tests above could not fail."""
    found: Counter[str] = Counter()
    for path in SCRIPTS:
        for _, statement, statistics in await bound_statements(path, scripts):
            improved = optimize(statement, statistics)
            found.update(type(each).__name__ for each in everything(improved))
            found.update(each for each in map(_method, everything(improved)) if each)
    for name in ("Filter", "CommonTable", "Exists", "InQuery", "hash", "loop", "index"):
        assert found[name] > 5, name


def _method(node: Any) -> str | None:
    return getattr(node, "method", None)
