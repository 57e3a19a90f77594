"""Counts, least and greatest values are those of a full scan, whatever orders the column."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from qserver.query.planning import Planner
from qserver.query.sql_database import Statement
from qserver.sql.optimizer import RULES
from qserver.sql.optimizer.aggregate_elimination import aggregate_elimination
from tests.sql.databases import opened_sql

WITHOUT = tuple(rule for rule in RULES if rule is not aggregate_elimination)
INDEXES = ("", "n", "n DESC", "s, n", "s, n DESC", "s DESC, n DESC")
CALLS = ("count(*)", "count(n)", "count(id)", "min(id)", "max(id)", "min(n)", "max(n)")
CONDITIONS = ("", "id >= 3", "id > 2 AND id < 6", "s = 'a'", "s = 'a' AND n > 1", "n = 2", "n > 0")

rows = st.dictionaries(
    st.integers(0, 8),
    st.tuples(st.none() | st.integers(0, 3), st.sampled_from(["a", "b"])),
    max_size=8,
)


def values(given: dict[int, tuple[int | None, str]]) -> str:
    return ", ".join(
        f"({key}, {'NULL' if n is None else n}, '{s}')" for key, (n, s) in given.items()
    )


@pytest.mark.long
@settings(max_examples=25, deadline=None)
@given(
    stored=rows,
    own=rows,
    index=st.sampled_from(INDEXES),
    condition=st.sampled_from(CONDITIONS),
    source=st.sampled_from(["t", "(SELECT s, id, n FROM t ORDER BY n) AS d"]),
)
@example({1: (None, "a"), 2: (1, "b")}, {4: (None, "a")}, "n", "", "t")
@example({1: (None, "a"), 2: (1, "a")}, {4: (None, "a")}, "s, n DESC", "s = 'a'", "t")
async def test_they_are_those_of_a_full_scan(
    stored: dict[int, tuple[int | None, str]],
    own: dict[int, tuple[int | None, str]],
    index: str,
    condition: str,
    source: str,
) -> None:
    """Each alone, and all that read little together; committed, and written by the reader."""
    change = [Statement("DELETE FROM t WHERE id % 3 = 0")]
    if own:
        change.append(
            Statement(
                f"INSERT INTO t VALUES {values(own)}"
                " ON CONFLICT (id) DO UPDATE SET n = excluded.n, s = excluded.s"
            )
        )
    queries = [
        Statement(f"SELECT {calls} FROM {source}{condition and f' WHERE {condition}'}")
        for calls in (*CALLS, "count(*), min(id), max(id)", "count(*), max(n), min(n)")
    ]
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT, s TEXT)")
        if index:
            await database.execute(f"CREATE INDEX t_i ON t ({index})")
        if stored:
            await database.execute(f"INSERT INTO t VALUES {values(stored)}")
        within = await database.transaction([*change, *queries])
        after = await database.transaction(queries)
        database.planner = Planner(WITHOUT)
        scanned = await database.transaction(queries)
        expected = [result.rows for result in scanned.results]
        assert [result.rows for result in within.results[len(change) :]] == expected
        assert [result.rows for result in after.results] == expected
