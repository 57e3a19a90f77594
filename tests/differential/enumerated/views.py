"""Views of all kinds after their tables have changed: each must mean what it meant before.

A name alone, a star, NATURAL, USING and GROUP BY are looked up among the columns of a table. After
ALTER TABLE they must still find those that were there when the view was made.
"""

from __future__ import annotations

from typing import Final

from tests.differential.enumerated.grids import Grid

_TABLES: Final = (
    "CREATE TABLE t (id int PRIMARY KEY, a int, b int)",
    "CREATE TABLE u (id int, k int, d int)",
    "CREATE TABLE w (id int, z int)",
    "INSERT INTO t VALUES (1, 10, 100), (2, 20, 200)",
    "INSERT INTO u VALUES (1, 7, 70), (3, 8, 80)",
    "INSERT INTO w VALUES (1, 5), (2, 6)",
    "CREATE VIEW below AS SELECT id, k FROM u",
)

QUERIES: Final = (
    "SELECT * FROM t",
    "SELECT *, 1 AS c FROM t",
    "SELECT t.*, u.k AS c FROM t, u",
    "SELECT a AS c, b FROM t WHERE b > 0",
    "SELECT a AS c, b FROM t ORDER BY c DESC",
    "SELECT a AS c, count(*) AS n FROM t GROUP BY c",
    "SELECT *, row_number() OVER (ORDER BY b) AS c FROM t",
    "SELECT DISTINCT ON (a) * FROM t ORDER BY a, b",
    "SELECT * FROM t NATURAL JOIN u",
    "SELECT * FROM t NATURAL LEFT JOIN u",
    "SELECT * FROM t NATURAL FULL JOIN u",
    "SELECT * FROM (t NATURAL JOIN u) NATURAL JOIN w",
    "SELECT * FROM (SELECT * FROM t) AS s NATURAL JOIN u",
    "SELECT * FROM below NATURAL JOIN t",
    "SELECT * FROM t JOIN u USING (id)",
    "SELECT * FROM t RIGHT JOIN u USING (id)",
    "SELECT * FROM t FULL JOIN u USING (id)",
    "SELECT id, a, k FROM t JOIN u USING (id)",
    "SELECT j.*, t.a FROM t JOIN u USING (id) AS j",
    "SELECT * FROM (t JOIN u USING (id)) AS j",
    "SELECT t.a, w.z FROM t JOIN w USING (id) WHERE b > 0",
    "SELECT k AS c FROM t, u WHERE k > 7",
    "SELECT x.* FROM t AS x LEFT JOIN u AS y ON x.id = y.id AND k > 0",
    "SELECT x.* FROM t AS x (p, q)",
    "SELECT id, (SELECT max(z) FROM w WHERE b > 100) AS m FROM t",
    "SELECT id, (SELECT max(z) FROM w WHERE c > 100) AS m FROM t AS x (id, a, c)",
    "SELECT (SELECT count(c) FROM u AS y (c)) AS n, a FROM t",
    "SELECT ARRAY(SELECT k FROM u WHERE k > b) AS r, id FROM t",
    "SELECT a AS c FROM t WHERE EXISTS (SELECT * FROM u WHERE u.id = t.id)",
    "SELECT * FROM t, LATERAL (SELECT t.a + u.k AS n FROM u WHERE u.id = t.id) AS l",
    "SELECT t.*, c FROM t, generate_series(1, 2) AS c",
    "SELECT * FROM (VALUES (1, 2)) AS v (c, e), t",
    "SELECT (t).* FROM t",
    "SELECT count(t) AS n FROM t",
    "TABLE t",
    "(TABLE t) UNION ALL SELECT id, k, d FROM u",
    "SELECT * FROM t UNION ALL TABLE u",
    "WITH x AS (SELECT * FROM t) SELECT x.*, 5 AS c FROM x",
    "WITH x AS (TABLE t) TABLE x",
)

BESIDE_NEW_COLUMNS: Final = (
    *QUERIES,
    "SELECT id, a AS c, count(*) AS n FROM t GROUP BY id ORDER BY c DESC",
    "SELECT row_to_json(t) AS j FROM t",
)
"""The last two know a table by more than its columns, and do not follow where one is renamed."""

ADDED: Final = (
    "ALTER TABLE t ADD COLUMN c int DEFAULT 42, ADD COLUMN k int DEFAULT 43",
    "ALTER TABLE u ADD COLUMN a int DEFAULT 10, ADD COLUMN b int DEFAULT 11",
    "ALTER TABLE w ADD COLUMN b int DEFAULT 300, ADD COLUMN c int DEFAULT 301",
    "CREATE OR REPLACE VIEW below AS SELECT id, k, d AS b FROM u",
)

RENAMED: Final = (
    (
        "ALTER TABLE t RENAME COLUMN id TO ix",
        "ALTER TABLE u RENAME COLUMN d TO a",
        "ALTER TABLE w RENAME COLUMN z TO b",
        "ALTER TABLE t RENAME COLUMN a TO c",
        "ALTER VIEW below RENAME COLUMN k TO b",
    ),
    (
        "ALTER TABLE t ADD COLUMN c int DEFAULT 42",
        "ALTER TABLE t RENAME COLUMN a TO q",
        "ALTER TABLE t RENAME COLUMN c TO a",
        "ALTER TABLE u RENAME COLUMN k TO b",
        "ALTER TABLE u ADD COLUMN k int DEFAULT 42",
    ),
    (
        "ALTER TABLE t RENAME COLUMN a TO x",
        "ALTER TABLE t RENAME COLUMN b TO a",
        "ALTER TABLE t RENAME COLUMN x TO b",
    ),
    (
        "ALTER TABLE t RENAME TO t2",
        "CREATE TABLE t (id int, a int, b int, k int)",
        "ALTER TABLE t2 ADD COLUMN k int DEFAULT 42",
    ),
)

WRITES: Final = (
    "INSERT INTO v0 VALUES (5, 50, 500)",
    "UPDATE v1 SET a = 51 WHERE id = 5",
    "INSERT INTO v3 (c) VALUES (6)",
    "UPDATE v3 SET c = c + 1",
    "DELETE FROM v0 WHERE a > 50",
    "SELECT * FROM v0",
)


def _grid(queries: tuple[str, ...], changes: tuple[str, ...]) -> Grid:
    views = [f"CREATE VIEW v{at} AS {query}" for at, query in enumerate(queries)]
    reads = [f"SELECT * FROM v{at}" for at in range(len(queries))]
    return Grid((*_TABLES, *views, *changes), (*reads, *WRITES))


GRIDS: Final = (
    _grid(BESIDE_NEW_COLUMNS, ADDED),
    *(_grid(QUERIES, changes) for changes in RENAMED),
)
