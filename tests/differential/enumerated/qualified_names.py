"""`schema.relation.column` and its shorter forms, for every kind of relation, in every clause."""

from __future__ import annotations

from typing import Final

from tests.differential.enumerated.grids import Grid

RELATIONS: Final = ("t", "public.t", "v", "public.v", "s.t", "s.v", "f.x", "w")
SOURCES: Final = (
    *RELATIONS,
    "s.w",
    "t AS x",
    "s.t AS t",
    "s.v AS x(a)",
    "s.t, public.t",
    "s.v, v",
    "t, t",
    "s.t, t AS t",
    "s.t JOIN public.t ON s.t.a = public.t.a",
    "s.t JOIN public.t USING (a)",
    "s.t NATURAL JOIN v",
    "(s.t JOIN public.v ON true) AS j",
    "(SELECT * FROM s.t) AS t",
    "generate_series(1, 2) AS t(a)",
)
NAMES: Final = ("t", "public.t", "s.t", "v", "public.v", "s.v", "s.w", "x", "public.x", "j", "w")
"""How a relation is named before a column."""
QUERIES: Final = (
    "SELECT {n}.a FROM {f}",
    "SELECT {n}.* FROM {f}",
    "SELECT count({n}.a) FROM {f} WHERE {n}.a = 1",
    "SELECT {n}.a FROM {f} GROUP BY {n}.a HAVING {n}.a > 0 ORDER BY {n}.a",
    "SELECT (SELECT max({n}.a)) FROM {f}",
    "SELECT 1 FROM {f} WHERE EXISTS (SELECT 1 WHERE {n}.a = 1)",
    "SELECT sum({n}.a) OVER (PARTITION BY {n}.b ORDER BY {n}.a) FROM {f}",
    "WITH t AS (SELECT 5 AS a, 6 AS b) SELECT {n}.a FROM {f}",
    "WITH w AS (SELECT 5 AS a, 6 AS b) SELECT {n}.a FROM {f}",
    "SELECT * FROM {f}, LATERAL (SELECT {n}.a AS z) AS l",
    "SELECT {n}::text FROM {f}",
)
CHANGES: Final = (
    "UPDATE {r} SET b = {n}.b + 1 WHERE {n}.a = 1 RETURNING {n}.a, {n}.b",
    "UPDATE {r} AS x SET b = {n}.b WHERE {n}.a = 1 RETURNING {n}.a",
    "UPDATE {r} SET b = {n}.b FROM s.t WHERE {n}.a = 1",
    "DELETE FROM {r} WHERE {n}.a = 7 RETURNING {n}.*",
    "DELETE FROM {r} USING public.t WHERE {n}.a = 7",
    "INSERT INTO {r} VALUES (7, 7) RETURNING {n}.a",
    "INSERT INTO {r} AS x VALUES (8, 8) RETURNING {n}.a",
    "INSERT INTO {r} VALUES (1, 1) ON CONFLICT (a) DO UPDATE SET b = {n}.b + 1 WHERE {n}.a = 1",
    "INSERT INTO {r} VALUES (1, 1) ON CONFLICT (a) DO UPDATE SET b = public.excluded.b",
    "MERGE INTO {r} USING s.t AS y ON {n}.a = y.a WHEN MATCHED THEN UPDATE SET b = {n}.b",
)
SYSTEM: Final = (
    ("pg_catalog", "pg_class", "relname"),
    ("pg_catalog", "pg_namespace", "nspname"),
    ("pg_catalog", "pg_attribute", "attname"),
    ("information_schema", "tables", "table_name"),
    ("information_schema", "columns", "column_name"),
    ("information_schema", "schemata", "schema_name"),
)
SYSTEM_QUERIES: Final = (
    "SELECT count({s}.{v}.{c}) > 0 FROM {s}.{v}",
    "SELECT count({s}.{v}.{c}) > 0 FROM {s}.{v} WHERE {s}.{v}.{c} IS NOT NULL",
    "SELECT count(*) > 0 FROM {s}.{v} AS x WHERE x.{c} IS NOT NULL",
    "SELECT count({s}.{v}.{c}) FROM {s}.{v} AS x",
    "SELECT count({v}.{c}) > 0 FROM {s}.{v}",
    "SELECT count({s}.{v}.{c}) FROM {s}.{v} GROUP BY {s}.{v}.{c} ORDER BY {s}.{v}.{c} LIMIT 0",
    "SELECT count(public.{v}.{c}) FROM {s}.{v}",
    "SELECT {s}.{v}.* FROM {s}.{v} WHERE {s}.{v}.nothing IS NULL",
    "WITH {v} AS (SELECT 1 AS {c}) SELECT {v}.{c} FROM {v}",
    "WITH {v} AS (SELECT 1 AS {c}) SELECT {s}.{v}.{c} FROM {v}",
    "SELECT 1 WHERE EXISTS (SELECT {s}.{v}.{c} FROM {s}.{v})",
)
_SETUP: Final = (
    "CREATE SCHEMA s",
    "CREATE TABLE t (a int PRIMARY KEY, b int)",
    "CREATE TABLE s.t (a int PRIMARY KEY, b int)",
    "CREATE VIEW v AS SELECT a, b FROM t",
    "CREATE VIEW s.v AS SELECT a, b FROM s.t WHERE a < 100",
    "CREATE VIEW s.w AS SELECT public.t.a, s.t.b FROM public.t JOIN s.t ON public.t.a = s.t.a",
    "INSERT INTO t VALUES (1, 10), (2, 20)",
    "INSERT INTO s.t VALUES (1, 100), (3, 300)",
)
_ROWS: Final = (
    "CREATE VIEW s.both AS SELECT public.t.*, s.t.a AS d FROM public.t, s.t",
    "CREATE VIEW s.all (p, q, r, u) AS SELECT * FROM public.t, s.t",
    "ALTER TABLE t ADD COLUMN c int",
    "TABLE s.both",
    "TABLE s.all",
    "CREATE VIEW s.rows AS SELECT row_to_json(v) AS j FROM v AS v (p, q)",
    "TABLE s.rows",
    "SELECT row_to_json(v) FROM v AS v (p, q)",
    "SELECT row_to_json(t) FROM s.t AS t (p)",
    "SELECT row_to_json(t), to_jsonb(t) FROM (SELECT * FROM s.t) AS t (p)",
    "SELECT json_agg(x) FROM t AS x (p, q)",
    "SELECT array_to_json(array_agg(x)) FROM s.v AS x (p, q)",
    "WITH w (p, q) AS (SELECT * FROM s.t) SELECT row_to_json(w) FROM w",
    "SELECT row_to_json(j) FROM (t JOIN s.t ON t.a = 1) AS j (k, l)",
    "SELECT (x).p FROM t AS x (p, q)",
    "SELECT (x).a FROM t AS x (p, q)",
    "SELECT (y.x).a FROM (SELECT x FROM t AS x (p, q)) AS y",
    "SELECT (x.*) IS NULL FROM t AS x (p, q)",
    "INSERT INTO s.t VALUES (50, 1) RETURNING row_to_json(t)",
    "UPDATE v AS x SET b = 1 RETURNING row_to_json(x)",
)

GRIDS: Final = (
    Grid(
        _SETUP, tuple(query.format(n=n, f=f) for f in SOURCES for n in NAMES for query in QUERIES)
    ),
    Grid(
        _SETUP,
        tuple(query.format(s=s, v=v, c=c) for s, v, c in SYSTEM for query in SYSTEM_QUERIES),
    ),
    Grid(
        _SETUP,
        tuple(change.format(n=n, r=r) for r in RELATIONS for n in NAMES for change in CHANGES),
    ),
    Grid(_SETUP, _ROWS),
)
