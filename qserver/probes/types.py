"""Probes of the types: each is written, stored and read back, with its limits."""

from __future__ import annotations

from typing import Final

from qserver.probes.run import Probe
from qserver.probes.steps import SqlStep, changes, does, fails, gives

CATEGORY: Final = "types"


def stored(declared: str, literal: str, printed: str, printed_type: str) -> tuple[SqlStep, ...]:
    """A value comes out of a column of the type unchanged."""
    return (
        does(f"CREATE TABLE kept (id INTEGER PRIMARY KEY, value {declared})"),
        changes(f"INSERT INTO kept VALUES (1, {literal}), (2, NULL)", 2),
        SqlStep(
            "SELECT value FROM kept ORDER BY id", rows=(printed, "NULL"), types=(printed_type,)
        ),
    )


def _type(name: str, description: str, *steps: SqlStep) -> Probe:
    return Probe(f"type_{name}", CATEGORY, description, steps)


PROBES: Final = (
    _type(
        "boolean",
        "BOOLEAN with three-valued logic.",
        *stored("BOOLEAN", "true", "t", "boolean"),
        gives("SELECT NULL AND false, NULL OR true, NULL AND true", "f | t | NULL"),
        fails("SELECT 'perhaps'::boolean", "22P02"),
    ),
    _type(
        "smallint",
        "SMALLINT, 16 bits.",
        *stored("SMALLINT", "-32768", "-32768", "smallint"),
        fails("SELECT 32768::smallint", "22003"),
    ),
    _type(
        "integer",
        "INTEGER, 32 bits; division cuts towards zero.",
        *stored("INTEGER", "2147483647", "2147483647", "integer"),
        gives("SELECT -7 / 2, -7 % 2", "-3 | -1"),
        fails("SELECT 2147483647 + 1", "22003"),
        fails("SELECT 1 / 0", "22012"),
    ),
    _type(
        "bigint",
        "BIGINT, 64 bits, every digit exact.",
        *stored("BIGINT", "9223372036854775807", "9223372036854775807", "bigint"),
        fails("SELECT 9223372036854775807 + 1", "22003"),
    ),
    _type(
        "numeric",
        "NUMERIC, exact to the last digit, rounded to its scale.",
        *stored("NUMERIC(12, 2)", "1234567890.125", "1234567890.13", "numeric(12,2)"),
        gives("SELECT 0.1 + 0.2 = 0.3, 1.10 * 2", "t | 2.20"),
        fails("INSERT INTO kept VALUES (3, 12345678901)", "22003"),
    ),
    _type(
        "real",
        "REAL, 32-bit floating point.",
        *stored("REAL", "0.1", "0.1", "real"),
        gives("SELECT 16777217::real, 'NaN'::real = 'NaN'::real", "1.6777216e+07 | t"),
    ),
    _type(
        "double_precision",
        "DOUBLE PRECISION, 64-bit floating point with NaN and infinities.",
        *stored("DOUBLE PRECISION", "'-Infinity'", "-Infinity", "double precision"),
        gives("SELECT 0.1::float8 + 0.2::float8", "0.30000000000000004"),
        fails("SELECT 1e308::float8 * 10", "22003"),
    ),
    _type(
        "text",
        "TEXT in any script, without the character 0.",
        *stored("TEXT", "'naïve 東京 🦉'", "naïve 東京 🦉", "text"),
        gives("SELECT length('🦉'), octet_length('🦉'), upper('ä')", "1 | 4 | Ä"),
    ),
    _type(
        "varchar",
        "VARCHAR(n): what is longer is refused.",
        *stored("VARCHAR(3)", "'abc'", "abc", "character varying(3)"),
        fails("INSERT INTO kept VALUES (3, 'abcd')", "22001"),
    ),
    _type(
        "char",
        "CHAR(n): padded with blanks that do not count.",
        *stored("CHAR(3)", "'a'", "a  ", "character(3)"),
        gives("SELECT id FROM kept WHERE value = 'a '", "1"),
    ),
    _type(
        "date",
        "DATE with leap years and arithmetic in days.",
        *stored("DATE", "'2024-02-29'", "2024-02-29", "date"),
        gives("SELECT DATE '2024-03-01' - DATE '2024-02-01'", "29"),
        fails("SELECT DATE '2023-02-29'", "22008"),
    ),
    _type(
        "time",
        "TIME to the microsecond.",
        *stored("TIME", "'13:05:00.000001'", "13:05:00.000001", "time without time zone"),
        fails("SELECT TIME '25:00'", "22008"),
    ),
    _type(
        "timetz",
        "TIME WITH TIME ZONE, with its offset.",
        *stored("TIMETZ", "'13:05+02'", "13:05:00+02", "time with time zone"),
    ),
    _type(
        "timestamp",
        "TIMESTAMP without a time zone.",
        *stored(
            "TIMESTAMP",
            "'2024-02-29 23:59:59.5'",
            "2024-02-29 23:59:59.5",
            "timestamp without time zone",
        ),
        gives("SELECT date_trunc('month', TIMESTAMP '2024-02-29 10:00')", "2024-02-01 00:00:00"),
    ),
    _type(
        "timestamptz",
        "TIMESTAMP WITH TIME ZONE: a moment, kept and shown in UTC.",
        *stored(
            "TIMESTAMPTZ",
            "'2024-07-01 12:00+02'",
            "2024-07-01 10:00:00+00",
            "timestamp with time zone",
        ),
        gives(
            "SELECT TIMESTAMPTZ '2024-07-01 10:00Z' AT TIME ZONE 'Europe/Berlin'",
            "2024-07-01 12:00:00",
        ),
    ),
    _type(
        "interval",
        "INTERVAL of months, days and microseconds.",
        *stored("INTERVAL", "'1 month 2 days 03:00'", "1 mon 2 days 03:00:00", "interval"),
        gives("SELECT DATE '2024-01-31' + INTERVAL '1 month'", "2024-02-29 00:00:00"),
    ),
    _type(
        "uuid",
        "UUID, and making random ones.",
        *stored(
            "UUID",
            "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "uuid",
        ),
        gives("SELECT gen_random_uuid() = gen_random_uuid()", "f"),
        fails("SELECT 'no'::uuid", "22P02"),
    ),
    _type(
        "bytea",
        "BYTEA: any bytes.",
        *stored("BYTEA", r"'\x00ff'", r"\x00ff", "bytea"),
        gives(r"SELECT length('\x00ff'::bytea), encode('\x00ff'::bytea, 'base64')", "2 | AP8="),
    ),
    _type(
        "json",
        "JSON, kept as it was written.",
        *stored("JSON", """'{"b": 1,  "a": [2]}'""", '{"b": 1,  "a": [2]}', "json"),
        gives("""SELECT value -> 'a' ->> 0 FROM kept WHERE id = 1""", "2"),
        fails("SELECT '{'::json", "22P02"),
    ),
    _type(
        "jsonb",
        "JSONB: compared, searched and changed.",
        *stored("JSONB", """'{"b": 1,  "a": [2]}'""", '{"a": [2], "b": 1}', "jsonb"),
        gives("""SELECT id FROM kept WHERE value @> '{"b": 1}'""", "1"),
        gives("""SELECT jsonb_set('{"a": 1}', '{c}', '3')""", '{"a": 1, "c": 3}'),
    ),
    _type(
        "enum",
        "Enums sort in the order of their definition.",
        does("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')"),
        *stored("mood", "'ok'", "ok", "mood"),
        gives("SELECT 'happy'::mood > 'sad'::mood, 'ok'::mood < 'happy'::mood", "t | t"),
        fails("SELECT 'angry'::mood", "22P02"),
    ),
    _type(
        "array",
        "Arrays of any type, with subscripts, slices and search.",
        *stored("INTEGER[]", "'{1,NULL,3}'", "{1,NULL,3}", "integer[]"),
        gives(
            "SELECT value[3], value[2:3], 3 = ANY (value) FROM kept WHERE id = 1",
            "3 | {NULL,3} | t",
        ),
        gives("SELECT unnest(ARRAY['a', 'b'])", "a", "b"),
    ),
)
