"""Probes of the constraints: a violation is refused with PostgreSQL's code."""

from __future__ import annotations

from typing import Final

from qserver.probes.run import Probe
from qserver.probes.steps import changes, does, fails, gives, together

CATEGORY: Final = "constraints"
FAMILY: Final = (
    does("CREATE TABLE parent (id INTEGER PRIMARY KEY)"),
    changes("INSERT INTO parent VALUES (1), (2)", 2),
)

PROBES: Final = (
    Probe(
        "primary_key",
        CATEGORY,
        "PRIMARY KEY: unique and never NULL, over one column or several.",
        (
            does("CREATE TABLE t (a INTEGER, b INTEGER, PRIMARY KEY (a, b))"),
            changes("INSERT INTO t VALUES (1, 1), (1, 2)", 2),
            fails("INSERT INTO t VALUES (1, 2)", "23505"),
            fails("INSERT INTO t VALUES (1, NULL)", "23502"),
            fails("UPDATE t SET b = 2", "23505"),
            gives("SELECT count(*) FROM t", "2"),
        ),
    ),
    Probe(
        "unique",
        CATEGORY,
        "UNIQUE: NULLs differ from each other, other values may not repeat.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, mail TEXT UNIQUE)"),
            changes("INSERT INTO t VALUES (1, 'a'), (2, NULL), (3, NULL)", 3),
            fails("INSERT INTO t VALUES (4, 'a')", "23505"),
            fails("UPDATE t SET mail = 'a' WHERE id = 2", "23505"),
            changes("UPDATE t SET mail = 'b' WHERE id = 1", 1),
            changes("INSERT INTO t VALUES (4, 'a')", 1),
        ),
    ),
    Probe(
        "not_null",
        CATEGORY,
        "NOT NULL.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT NOT NULL)"),
            fails("INSERT INTO t VALUES (1, NULL)", "23502"),
            changes("INSERT INTO t VALUES (1, '')", 1),
            fails("UPDATE t SET a = NULL", "23502"),
        ),
    ),
    Probe(
        "check",
        CATEGORY,
        "CHECK: false is refused, NULL passes.",
        (
            does(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER CHECK (a > 0), b INTEGER,"
                " CONSTRAINT ordered CHECK (a < b))"
            ),
            changes("INSERT INTO t VALUES (1, 1, 2), (2, NULL, 2)", 2),
            fails("INSERT INTO t VALUES (3, 0, 1)", "23514"),
            fails("UPDATE t SET b = 1 WHERE id = 1", "23514"),
        ),
    ),
    Probe(
        "foreign_key",
        CATEGORY,
        "FOREIGN KEY: no child without its parent.",
        (
            *FAMILY,
            does("CREATE TABLE child (id INTEGER PRIMARY KEY, of INTEGER REFERENCES parent)"),
            changes("INSERT INTO child VALUES (10, 1), (11, NULL)", 2),
            fails("INSERT INTO child VALUES (12, 9)", "23503"),
            fails("DELETE FROM parent WHERE id = 1", "23503"),
            fails("UPDATE parent SET id = 5 WHERE id = 1", "23503"),
            fails("DROP TABLE parent", "2BP01"),
            changes("DELETE FROM parent WHERE id = 2", 1),
        ),
    ),
    Probe(
        "foreign_key_actions",
        CATEGORY,
        "ON DELETE and ON UPDATE: CASCADE, SET NULL and SET DEFAULT.",
        (
            *FAMILY,
            does(
                "CREATE TABLE follows (id INTEGER PRIMARY KEY, of INTEGER"
                " REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)"
            ),
            does(
                "CREATE TABLE forgets (id INTEGER PRIMARY KEY, of INTEGER"
                " REFERENCES parent ON DELETE SET NULL ON UPDATE CASCADE)"
            ),
            does("INSERT INTO follows VALUES (10, 1), (11, 2)"),
            does("INSERT INTO forgets VALUES (10, 1), (11, 2)"),
            changes("UPDATE parent SET id = 7 WHERE id = 2", 1),
            changes("DELETE FROM parent WHERE id = 1", 1),
            gives("SELECT * FROM follows", "11 | 7"),
            gives("SELECT * FROM forgets ORDER BY id", "10 | NULL", "11 | 7"),
        ),
    ),
    Probe(
        "generated_column",
        CATEGORY,
        "GENERATED ALWAYS AS (…) STORED, which nobody can write.",
        (
            does(
                "CREATE TABLE t (id INTEGER PRIMARY KEY, w INTEGER,"
                " twice INTEGER GENERATED ALWAYS AS (w * 2) STORED)"
            ),
            changes("INSERT INTO t (id, w) VALUES (1, 4)", 1),
            changes("UPDATE t SET w = 5", 1),
            gives("SELECT twice FROM t", "10"),
            fails("INSERT INTO t VALUES (2, 1, 1)", "428C9"),
        ),
    ),
    Probe(
        "identity_column",
        CATEGORY,
        "Identity columns and SERIAL number rows.",
        (
            does("CREATE TABLE t (id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a TEXT)"),
            gives("INSERT INTO t (a) VALUES ('x'), ('y') RETURNING id", "1", "2"),
            fails("INSERT INTO t VALUES (9, 'z')", "428C9"),
            does("CREATE TABLE s (id BIGSERIAL PRIMARY KEY, a TEXT)"),
            gives("INSERT INTO s (a) VALUES ('x') RETURNING id", "1"),
        ),
    ),
    Probe(
        "constraint_within_statement",
        CATEGORY,
        "A statement that breaks a constraint changes nothing, not even the rows before.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY CHECK (id < 100))"),
            fails("INSERT INTO t SELECT generate_series(1, 100)", "23514"),
            gives("SELECT count(*) FROM t", "0"),
            together(does("INSERT INTO t VALUES (1)"), fails("INSERT INTO t VALUES (1)", "23505")),
            gives("SELECT count(*) FROM t", "0"),
        ),
    ),
)
