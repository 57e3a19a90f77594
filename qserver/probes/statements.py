"""Probes of the statements that change and read rows, one per statement or clause."""

from __future__ import annotations

from typing import Final

from qserver.probes.run import Probe
from qserver.probes.steps import changes, does, fails, gives

CATEGORY: Final = "statements"
PEOPLE: Final = (
    does("CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER)"),
    changes("INSERT INTO people VALUES (1, 'Ada', 36), (2, 'Bob', NULL), (3, 'Cy', 51)", 3),
)

PROBES: Final = (
    Probe(
        "select",
        CATEGORY,
        "SELECT with WHERE, expressions, ORDER BY, LIMIT and OFFSET.",
        (
            *PEOPLE,
            gives("SELECT name, age + 1 FROM people WHERE age > 40", "Cy | 52"),
            gives("SELECT id FROM people ORDER BY age DESC NULLS LAST", "3", "1", "2"),
            gives("SELECT id FROM people ORDER BY id LIMIT 1 OFFSET 1", "2"),
            gives(
                "SELECT id FROM people WHERE age IS NULL OR name LIKE 'A%' ORDER BY id", "1", "2"
            ),
            fails("SELECT nothing FROM people", "42703"),
            fails("SELECT 1 FROM nowhere", "42P01"),
            fails("SELEC 1", "42601"),
        ),
    ),
    Probe(
        "values",
        CATEGORY,
        "VALUES and TABLE as statements of their own.",
        (
            gives("VALUES (1, 'one'), (2, 'two') ORDER BY 1 DESC", "2 | two", "1 | one"),
            *PEOPLE,
            gives("TABLE people ORDER BY id LIMIT 1", "1 | Ada | 36"),
        ),
    ),
    Probe(
        "insert",
        CATEGORY,
        "INSERT of values, of defaults and of a query.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT DEFAULT 'none')"),
            changes("INSERT INTO t (id) VALUES (1)", 1),
            changes("INSERT INTO t VALUES (2, DEFAULT), (3, 'three')", 2),
            changes("INSERT INTO t SELECT id + 10, upper(word) FROM t", 3),
            gives(
                "SELECT * FROM t ORDER BY id",
                *("1 | none", "2 | none", "3 | three", "11 | NONE", "12 | NONE", "13 | THREE"),
            ),
            fails("INSERT INTO t VALUES (1, 'a', 'too many')", "42601"),
        ),
    ),
    Probe(
        "upsert",
        CATEGORY,
        "INSERT … ON CONFLICT DO NOTHING and DO UPDATE.",
        (
            does("CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER)"),
            changes("INSERT INTO stock VALUES ('nut', 5)", 1),
            changes("INSERT INTO stock VALUES ('nut', 9) ON CONFLICT DO NOTHING", 0),
            changes(
                "INSERT INTO stock VALUES ('nut', 2), ('bolt', 1) ON CONFLICT (item)"
                " DO UPDATE SET pieces = stock.pieces + excluded.pieces",
                2,
            ),
            gives("SELECT * FROM stock ORDER BY item", "bolt | 1", "nut | 7"),
            fails("INSERT INTO stock VALUES ('nut', 1)", "23505"),
        ),
    ),
    Probe(
        "update",
        CATEGORY,
        "UPDATE with expressions, FROM and several columns at once.",
        (
            *PEOPLE,
            changes("UPDATE people SET age = coalesce(age, 0) + 1", 3),
            changes("UPDATE people SET (name, age) = ('Eve', 20) WHERE id = 2", 1),
            changes(
                "UPDATE people SET name = new.name FROM (VALUES (1, 'Ann')) AS new (id, name)"
                " WHERE people.id = new.id",
                1,
            ),
            gives(
                "SELECT * FROM people ORDER BY id", "1 | Ann | 37", "2 | Eve | 20", "3 | Cy | 52"
            ),
        ),
    ),
    Probe(
        "delete",
        CATEGORY,
        "DELETE with WHERE and with USING.",
        (
            *PEOPLE,
            changes(
                "DELETE FROM people USING (VALUES (1)) AS gone (id) WHERE people.id = gone.id", 1
            ),
            changes("DELETE FROM people WHERE age > 50", 1),
            gives("SELECT id FROM people", "2"),
            changes("DELETE FROM people", 1),
            gives("SELECT count(*) FROM people", "0"),
        ),
    ),
    Probe(
        "merge",
        CATEGORY,
        "MERGE: update what is there, insert what is not, delete what is over.",
        (
            does("CREATE TABLE stock (item TEXT PRIMARY KEY, pieces INTEGER)"),
            changes("INSERT INTO stock VALUES ('nut', 5), ('bolt', 3)", 2),
            changes(
                "MERGE INTO stock USING (VALUES ('nut', -5), ('bolt', 4), ('pin', 1))"
                " AS delta (item, n) ON stock.item = delta.item"
                " WHEN MATCHED AND pieces + n = 0 THEN DELETE"
                " WHEN MATCHED THEN UPDATE SET pieces = pieces + n"
                " WHEN NOT MATCHED THEN INSERT VALUES (delta.item, n)",
                3,
            ),
            gives("SELECT * FROM stock ORDER BY item", "bolt | 7", "pin | 1"),
        ),
    ),
    Probe(
        "returning",
        CATEGORY,
        "RETURNING of inserted, updated and deleted rows.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)"),
            gives("INSERT INTO t VALUES (1, 10) RETURNING id, n * 2 AS twice", "1 | 20"),
            gives("UPDATE t SET n = n + 1 RETURNING n", "11"),
            gives("DELETE FROM t RETURNING *", "1 | 11"),
        ),
    ),
    Probe(
        "truncate",
        CATEGORY,
        "TRUNCATE of tables, also with RESTART IDENTITY.",
        (
            does("CREATE TABLE t (id SERIAL PRIMARY KEY, word TEXT)"),
            changes("INSERT INTO t (word) VALUES ('a'), ('b')", 2),
            does("TRUNCATE t RESTART IDENTITY"),
            gives("SELECT count(*) FROM t", "0"),
            gives("INSERT INTO t (word) VALUES ('c') RETURNING id", "1"),
        ),
    ),
    Probe(
        "select_into",
        CATEGORY,
        "A table from a query: CREATE TABLE … AS and SELECT … INTO.",
        (
            *PEOPLE,
            does("CREATE TABLE grown AS SELECT id, name FROM people WHERE age > 18"),
            does("SELECT name INTO names FROM people"),
            gives("SELECT * FROM grown ORDER BY id", "1 | Ada", "3 | Cy"),
            gives("SELECT count(*) FROM names", "3"),
        ),
    ),
    Probe(
        "explain",
        CATEGORY,
        "EXPLAIN shows the plan, EXPLAIN ANALYZE runs it, EXPLAIN (CODE) shows compiled Python.",
        (
            *PEOPLE,
            gives(
                "EXPLAIN SELECT * FROM people WHERE id = 1",
                *("Project  (rows=1)", "->  Key Lookup on people  (rows=1)", "      Key: id = 1"),
            ),
            does("EXPLAIN ANALYZE SELECT * FROM people"),
            does("EXPLAIN (CODE) SELECT * FROM people"),
            does("EXPLAIN DELETE FROM people"),
            gives("SELECT count(*) FROM people", "3"),
        ),
    ),
    Probe(
        "settings",
        CATEGORY,
        "SHOW and SET of what clients of PostgreSQL ask for.",
        (
            gives("SHOW transaction_isolation", "serializable"),
            gives("SHOW server_encoding", "UTF8"),
            does("SET client_encoding = 'UTF8'"),
            does("SET statement_timeout = 1000"),
            does("SET timezone = 'Europe/Berlin'"),
            fails("SET datestyle = 'German'", "0A000"),
            fails("SHOW no_such_setting", "42704"),
        ),
    ),
)
