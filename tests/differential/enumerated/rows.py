"""Rows of all kinds: IS NULL, IS DISTINCT FROM, comparisons, and where they are sorted."""

from __future__ import annotations

from typing import Final

from tests.differential.enumerated.grids import Grid

ROWS: Final = (
    "NULL",
    "ROW()",
    "ROW(NULL)",
    "ROW(NULL, NULL)",
    "ROW(1, NULL)",
    "ROW(1, 2)",
    "ROW(1, 2.0)",
    "ROW('a', NULL)",
    "ROW(ROW(NULL), NULL)",
    "ROW(ROW(NULL), ROW(1))",
    "(NULL::int, NULL::text)",
    "(SELECT ROW(1, NULL))",
    "(SELECT ROW(NULL, NULL))",
    "(SELECT ROW(1, 2))",
    "(SELECT ROW(1, 2) WHERE false)",
    "(CASE WHEN true THEN ROW(NULL, NULL) END)",
    "(CASE WHEN false THEN ROW(1, 2) END)",
    "coalesce(ROW(NULL, 1), ROW(1, 1))",
    "(ARRAY[ROW(NULL, 1)])[1]",
    "(SELECT t FROM t WHERE a = 1)",
    "(SELECT t FROM t WHERE a IS NULL)",
    "(SELECT t FROM t WHERE a = 99)",
    "(SELECT v FROM v WHERE a = 1)",
    "(SELECT array_agg(t) FROM t WHERE a = 3)",
    "ROW((SELECT t FROM t WHERE a = 1))",
    "ARRAY[NULL]::int[]",
)
TESTS: Final = (
    "{r} IS NULL",
    "{r} IS NOT NULL",
    "{r} ISNULL",
    "NOT ({r} IS NULL)",
    "{r} IS DISTINCT FROM NULL",
    "NULL IS NOT DISTINCT FROM {r}",
    "num_nulls({r})",
    "coalesce({r} IS NULL, true)",
    "{r} = {r}",
    "{r} IS DISTINCT FROM {r}",
    "{r} IN ({r})",
    "{r}::text",
    "count({r})",
    "to_json({r})",
)
PAIRS: Final = ("{r} {o} {q}", "({r} {o} {q}) IS NULL")
OPERATORS: Final = ("=", "<>", "<", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
OVER_TABLES: Final = (
    "SELECT a, {x} IS NULL, {x} IS NOT NULL, {x} IS DISTINCT FROM NULL FROM {f}",
    "SELECT {x} IS NOT DISTINCT FROM NULL FROM {f}",
    "SELECT {x} IS DISTINCT FROM {x}, {x} = {x}, {x} < {x} FROM {f}",
    "SELECT count({x}), count(*) FROM {f}",
    "SELECT a FROM {f} WHERE {x} IS NOT NULL",
    "SELECT a FROM {f} WHERE NOT {x} IS NULL",
    "SELECT count(*) FROM {f} GROUP BY {x}",
    "SELECT DISTINCT {x}::text FROM {f}",
    "SELECT a FROM {f} ORDER BY {x}, a",
    "SELECT count(DISTINCT {x}) FROM {f}",
    "SELECT coalesce({x}, {x})::text FROM {f}",
    "SELECT CASE WHEN {x} IS NULL THEN 'null' ELSE 'row' END FROM {f}",
    "SELECT q.z IS NULL, q.z IS NOT NULL FROM (SELECT {x} AS z FROM {f}) AS q",
    "WITH q AS MATERIALIZED (SELECT {x} AS z FROM {f}) SELECT z IS NULL, z IS NOT NULL FROM q",
    "SELECT (SELECT {x}) IS NULL, (SELECT {x}) IS NOT NULL FROM {f}",
)
SHAPES: Final = ("t", "t.*", "ROW(t.*)", "(a, b)", "ROW(a, b, NULL)", "ROW(a)", "(t, a)")
FROMS: Final = (
    "t",
    "v AS t",
    "(SELECT * FROM t) AS t",
    "t JOIN (VALUES (1)) AS o (x) ON true",
    "(VALUES (1)) AS o (x) LEFT JOIN t ON true",
    "(VALUES (1)) AS o (x) LEFT JOIN t ON false",
    "(VALUES (1), (3)) AS o (x) FULL JOIN t ON o.x = t.a",
    "(t CROSS JOIN (VALUES (1)) AS o (x)) AS t",
)
_SETUP: Final = (
    "CREATE TABLE t (a int, b text)",
    "INSERT INTO t VALUES (1, NULL), (NULL, NULL), (3, 'c'), (NULL, 'd')",
    "CREATE VIEW v AS SELECT a, b FROM t",
)

GRIDS: Final = (
    Grid(_SETUP, tuple(f"SELECT {test.format(r=row)} AS x" for row in ROWS for test in TESTS)),
    Grid(
        _SETUP,
        tuple(
            f"SELECT {pair.format(r=row, o=operator, q=other)} AS x"
            for row in ROWS
            for other in ROWS
            for operator in OPERATORS
            for pair in PAIRS
        ),
    ),
    Grid(
        _SETUP,
        tuple(each.format(x=x, f=f) for x in SHAPES for f in FROMS for each in OVER_TABLES),
    ),
)
