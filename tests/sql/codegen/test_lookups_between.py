"""Joins that look for a key between two bounds of the left row answer as a loop over all pairs."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.sql.codegen.test_sought_rows import outcome, with_tables

BOUNDS = (
    "t.{0} BETWEEN l.{0} AND l.{0}",
    "t.{0} > l.{0} AND t.{0} < h.{0}",
    "t.{0} >= l.{0} AND t.{0} <= h.{0} AND t.id <> 7",
    "t.{0} >= l.{0} AND t.{0} < l.{0}",
)
PAIRS = (
    "(SELECT * FROM t WHERE id IN (2, 40, 57, 91)) l"
    " JOIN (SELECT * FROM t WHERE id < 120) h ON h.id = l.id + 9"
)
QUERIES = (
    *[
        f"SELECT l.id, h.id, t.id FROM {PAIRS} {kind} JOIN t ON {bounds.format(name)}"
        for kind in ("", "LEFT")
        for bounds in BOUNDS
        for name in ("id", "n", "big", "s", "v", "at", "u", "m", "x")
    ],
    "SELECT l.id, k.b FROM t l LEFT JOIN k ON k.a BETWEEN l.id - 1 AND l.id + 1 WHERE l.id < 12",
    "SELECT l.id, (SELECT count(*) FROM t JOIN k ON k.a BETWEEN t.n AND l.n) FROM t l WHERE id < 4",
    "UPDATE t SET n = -1 FROM k WHERE t.id BETWEEN k.n AND k.n + 2 AND k.a = 5 RETURNING t.id",
    "DELETE FROM t USING k WHERE t.big BETWEEN k.a AND k.n RETURNING t.id",
)


@pytest.mark.long
async def test_every_join_answers_as_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = import_module("qserver.sql.optimizer.join_ordering")  # the package has the rule by it
    async with with_tables() as database, with_tables() as other:
        for sql in QUERIES:
            plan = await database.execute(f"EXPLAIN {sql}")
            assert PAIRS not in sql or "Lookup Join" in str(plan.rows), sql
            found = await outcome(database, sql)
            with monkeypatch.context() as patch:
                patch.setattr(rule, "_between", lambda node, statistics: None)
                assert found == await outcome(other, sql), sql
