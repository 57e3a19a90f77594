"""Columns that a statement writes to, named once or twice, in tables and in views of all kinds."""

from __future__ import annotations

from typing import Final

from tests.differential.enumerated.grids import Grid

RELATIONS: Final = ("t", "plain", "twice", "computed", "nested", "fewer")
LISTS: Final = (
    "",
    "(a)",
    "(a, b)",
    "(b, a)",
    "(a, a)",
    "(a, a2)",
    "(a2, a)",
    "(a2)",
    "(b, b, a)",
    "(a, nope)",
    "(c, a)",
    "(a, b, c)",
    "(arr[1], arr[2])",
    "(arr, arr[2])",
    "(arr[1], a, arr)",
)
VALUES: Final = ("VALUES (1)", "VALUES (1, 2)", "VALUES (1, 2, 3)", "SELECT 1", "SELECT 1, 2")
DEFAULTS: Final = ("VALUES (DEFAULT)", "VALUES (1, DEFAULT)", "DEFAULT VALUES")
SETS: Final = (
    "a = 1, a = 2",
    "a = 1, a2 = 2",
    "(a, b) = (1, 2)",
    "(a, a) = (1, 2)",
    "(a, a2) = (1, 2)",
    "a = 1, (b, a) = (1, 2)",
    "a = 1, (b, a) = (SELECT 1, 2)",
    "a2 = 5",
    "c = 5",
    "a = DEFAULT",
    "b = DEFAULT",
    "arr[1] = 1, arr[2] = 2",
    "arr = '{1}', arr[2] = 2",
    "arr[1] = 1, arr = '{}'",
)
_SETUP: Final = (
    "CREATE TABLE t (a int, b int DEFAULT 7, arr int[])",
    "INSERT INTO t VALUES (1, 1)",
    "CREATE VIEW plain AS SELECT a, b, arr FROM t",
    "CREATE VIEW twice AS SELECT a, a AS a2, b, arr FROM t",
    "CREATE VIEW computed AS SELECT a, a + 1 AS c, b FROM t",
    "CREATE VIEW nested AS SELECT a2, a, b FROM twice",
    "CREATE VIEW fewer AS SELECT b FROM t WHERE b > 0",
    "CREATE TABLE k (a int PRIMARY KEY, b int)",
)
_CONFLICTS: Final = (
    "b = 1, b = 2",
    "(b, b) = (1, 2)",
    "b = excluded.b, a = k.a",
    "nope = 1",
)
_MERGES: Final = ("", "(a)", "(a, a)", "(a, b)", "(b, b)", "(a, nope)")

_INSERTS: Final = tuple(
    f"INSERT INTO {relation} {columns} {values}"
    for relation in RELATIONS
    for columns in LISTS
    for values in (*VALUES, *DEFAULTS)
    if not (columns and values == "DEFAULT VALUES")
)
_UPDATES: Final = tuple(f"UPDATE {relation} SET {sets}" for relation in RELATIONS for sets in SETS)

GRIDS: Final = (
    Grid(_SETUP, (*_INSERTS, "TABLE t")),
    Grid(_SETUP, (*_UPDATES, "TABLE t")),
    Grid(
        _SETUP,
        tuple(
            f"INSERT INTO k VALUES (1, 1) ON CONFLICT (a) DO UPDATE SET {sets}"
            for sets in _CONFLICTS
        )
        + tuple(
            f"MERGE INTO k USING (VALUES (5, 6)) AS s (x, y) ON k.a = x"
            f" WHEN NOT MATCHED THEN INSERT {columns} {values}"
            for columns in _MERGES
            for values in ("VALUES (x)", "VALUES (x, y)", "VALUES (x, y, x)", "DEFAULT VALUES")
        )
        + tuple(
            f"MERGE INTO k USING (VALUES (1, 6)) AS s (x, y) ON k.a = x"
            f" WHEN MATCHED THEN UPDATE SET {sets}"
            for sets in ("b = 1, b = 2", "(b, b) = (1, 2)", "b = x, a = y")
        )
        + ("TABLE k",),
    ),
)
