"""Probes of DDL (CREATE, ALTER, DROP, COMMENT) and of the system catalogs."""

from __future__ import annotations

from typing import Final

from qserver.probes.run import Probe
from qserver.probes.steps import changes, does, fails, gives, together

CATEGORY: Final = "definitions"

PROBES: Final = (
    Probe(
        "create_table",
        CATEGORY,
        "CREATE TABLE, IF NOT EXISTS, LIKE, and DROP TABLE.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT DEFAULT 'x')"),
            fails("CREATE TABLE t (id INTEGER)", "42P07"),
            does("CREATE TABLE IF NOT EXISTS t (id INTEGER)"),
            does("CREATE TABLE twin (LIKE t INCLUDING ALL)"),
            gives("INSERT INTO twin (id) VALUES (1) RETURNING a", "x"),
            fails("CREATE TABLE bad (id INTEGER, id TEXT)", "42701"),
            does("DROP TABLE t, twin"),
            fails("DROP TABLE t", "42P01"),
            does("DROP TABLE IF EXISTS t"),
        ),
    ),
    Probe(
        "alter_table",
        CATEGORY,
        "ALTER TABLE: columns come, go, change name and type, with their rows.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)"),
            changes("INSERT INTO t VALUES (1, '10'), (2, '20')", 2),
            does("ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 7"),
            does("ALTER TABLE t ALTER COLUMN a TYPE INTEGER USING a::INTEGER * 2"),
            does("ALTER TABLE t RENAME COLUMN a TO doubled"),
            gives("SELECT * FROM t ORDER BY id", "1 | 20 | 7", "2 | 40 | 7"),
            does("ALTER TABLE t DROP COLUMN b, ADD CONSTRAINT small CHECK (doubled < 100)"),
            fails("INSERT INTO t VALUES (3, 100)", "23514"),
            does("ALTER TABLE t RENAME TO u"),
            fails("ALTER TABLE u ADD CONSTRAINT tiny CHECK (doubled < 30)", "23514"),
            gives("SELECT * FROM u ORDER BY id", "1 | 20", "2 | 40"),
        ),
    ),
    Probe(
        "create_index",
        CATEGORY,
        "CREATE INDEX on rows that are there; UNIQUE indexes; the planner uses them.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)"),
            changes("INSERT INTO t SELECT n, n % 50 FROM generate_series(1, 500) AS s (n)", 500),
            does("CREATE INDEX t_a ON t (a)"),
            gives("SELECT count(*) FROM t WHERE a = 7", "10"),
            gives("SELECT indexname FROM pg_indexes WHERE indexname = 't_a'", "t_a"),
            fails("CREATE UNIQUE INDEX t_u ON t (a)", "23505"),
            does("DROP INDEX t_a"),
            gives("SELECT count(*) FROM t WHERE a = 7", "10"),
        ),
    ),
    Probe(
        "create_view",
        CATEGORY,
        "CREATE VIEW; what a view depends on cannot be dropped alone.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)"),
            does("CREATE VIEW large AS SELECT id FROM t WHERE a > 10"),
            changes("INSERT INTO t VALUES (1, 5), (2, 15)", 2),
            gives("SELECT * FROM large", "2"),
            does("CREATE OR REPLACE VIEW large AS SELECT id FROM t WHERE a > 1"),
            gives("SELECT count(*) FROM large", "2"),
            fails("DROP TABLE t", "2BP01"),
            does("DROP TABLE t CASCADE"),
            fails("SELECT * FROM large", "42P01"),
        ),
    ),
    Probe(
        "create_sequence",
        CATEGORY,
        "CREATE SEQUENCE, nextval, setval, and its end.",
        (
            does("CREATE SEQUENCE s START 5 INCREMENT 5 MAXVALUE 15"),
            gives("SELECT nextval('s')", "5"),
            gives("SELECT setval('s', 10), nextval('s')", "10 | 15"),
            fails("SELECT nextval('s')", "2200H"),
            does("DROP SEQUENCE s"),
        ),
    ),
    Probe(
        "create_type",
        CATEGORY,
        "CREATE TYPE … AS ENUM, ALTER TYPE ADD VALUE, DROP TYPE.",
        (
            does("CREATE TYPE size AS ENUM ('small', 'large')"),
            does("ALTER TYPE size ADD VALUE 'medium' BEFORE 'large'"),
            gives("SELECT enum_range(NULL::size)", "{small,medium,large}"),
            does("DROP TYPE size"),
            fails("SELECT NULL::size", "42704"),
        ),
    ),
    Probe(
        "create_schema",
        CATEGORY,
        "CREATE SCHEMA, and tables of the same name in two of them.",
        (
            does("CREATE SCHEMA side"),
            does("CREATE TABLE t (id INTEGER PRIMARY KEY)"),
            does("CREATE TABLE side.t (id INTEGER PRIMARY KEY)"),
            changes("INSERT INTO side.t VALUES (1)", 1),
            gives("SELECT count(*) FROM t", "0"),
            fails("SELECT * FROM nowhere.t", "42P01"),
            does("DROP SCHEMA side CASCADE"),
        ),
    ),
    Probe(
        "comment",
        CATEGORY,
        "COMMENT ON tables and columns.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY)"),
            does("COMMENT ON TABLE t IS 'what it is for'"),
            gives(
                "SELECT description FROM pg_description WHERE objoid = 't'::regclass",
                "what it is for",
            ),
        ),
    ),
    Probe(
        "definitions_in_transactions",
        CATEGORY,
        "Definitions are part of transactions: one that fails leaves no table behind.",
        (
            together(
                does("CREATE TABLE t (id INTEGER PRIMARY KEY)"),
                changes("INSERT INTO t VALUES (1)", 1),
                fails("SELECT 1 / 0", "22012"),
            ),
            fails("SELECT * FROM t", "42P01"),
            together(
                does("CREATE TABLE t (id INTEGER PRIMARY KEY)"),
                changes("INSERT INTO t VALUES (1)", 1),
                does("ALTER TABLE t ADD COLUMN a TEXT DEFAULT 'new'"),
                gives("SELECT * FROM t", "1 | new"),
            ),
            gives("SELECT * FROM t", "1 | new"),
        ),
    ),
    Probe(
        "information_schema",
        "system catalogs",
        "information_schema tells tables, columns and constraints.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, a VARCHAR(9) NOT NULL DEFAULT 'x')"),
            gives(
                "SELECT column_name, data_type, is_nullable FROM information_schema.columns"
                " WHERE table_name = 't' ORDER BY ordinal_position",
                *("id | integer | NO", "a | character varying | NO"),
            ),
            gives(
                "SELECT constraint_type FROM information_schema.table_constraints"
                " WHERE table_name = 't' AND constraint_name = 't_pkey'",
                "PRIMARY KEY",
            ),
            gives(
                "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'",
                "t",
            ),
        ),
    ),
    Probe(
        "pg_catalog",
        "system catalogs",
        "pg_tables, pg_class, pg_attribute, pg_indexes, as tools ask for them.",
        (
            does("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)"),
            gives("SELECT tablename FROM pg_tables WHERE schemaname = 'public'", "t"),
            gives(
                "SELECT attname FROM pg_attribute JOIN pg_class c ON attrelid = c.oid"
                " WHERE relname = 't' AND attnum > 0 ORDER BY attnum",
                *("id", "a"),
            ),
            gives("SELECT indexname FROM pg_catalog.pg_indexes WHERE tablename = 't'", "t_pkey"),
        ),
    ),
)
