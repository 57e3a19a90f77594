"""`qserver import app.sqlite`: definitions, rows, what is left out, and a second run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qserver.cli import main
from qserver.cli.moving import mover
from qserver.cli.moving.move import MovedTable
from qserver.cli.moving.sqlite_file import sqlite_move
from qserver.cli.transfer import batches
from qserver.cli.transfer.batches import TextRow
from qserver.client import Client, ConnectionLost
from qserver.errors import QserverError
from tests.cli.databases import MakeClient

APP = """
CREATE TABLE Users (
  ID INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
  active BOOLEAN NOT NULL DEFAULT 1 CHECK (active IN (0, 1)),
  created DATETIME DEFAULT CURRENT_TIMESTAMP, "camelCase" VARCHAR(20) DEFAULT 'it''s',
  score REAL, picture BLOB, price DECIMAL(8, 2) DEFAULT 0.5, extra JSON, born DATE,
  at INTEGER DEFAULT (unixepoch()), CONSTRAINT named CHECK (length(`name`) > 0));
CREATE TABLE posts (
  id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  best INTEGER REFERENCES comments (id) DEFERRABLE INITIALLY DEFERRED,
  title, slug TEXT GENERATED ALWAYS AS (lower(title)) VIRTUAL);
CREATE TABLE comments (id INTEGER PRIMARY KEY, post INTEGER REFERENCES posts, n INTEGER);
CREATE TABLE pairs (a TEXT, b INT, c, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE INDEX posts_user ON posts (user_id, title DESC);
CREATE UNIQUE INDEX part ON comments (n) WHERE n == 6;
CREATE INDEX [by low] ON Users (lower(name));
CREATE VIEW good AS SELECT id, name FROM users WHERE score > 1;
INSERT INTO Users (name, active, created, camelCase, score, picture, price, extra, born, at) VALUES
  ('Ada', 1, '2024-01-02 03:04:05', 'x', 1.5, x'00ff', 12.5, '{"a": 1}', '1815-12-10', 7),
  ('Bö"b,' || char(10) || ' x ', 0, NULL, '', 2, x'', 3, NULL, NULL, 8);
INSERT INTO Users (ID, name) VALUES (9, 'nine');
DELETE FROM Users WHERE ID = 9;
INSERT INTO posts (id, user_id, best, title) VALUES (1, 1, 5, 'Hi'), (2, 2, NULL, NULL);
INSERT INTO comments VALUES (5, 1, 6), (6, 2, NULL);
INSERT INTO pairs VALUES ('a', 1, 1), ('b', 2, 2.5), ('', 3, NULL);
"""
ODD = """
CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, s TEXT COLLATE NOCASE, parent REFERENCES t (id));
CREATE TABLE k (a TEXT PRIMARY KEY, b TEXT REFERENCES nowhere (x));
CREATE VIRTUAL TABLE words USING fts5(body);
CREATE TABLE _cf_METADATA (key INTEGER PRIMARY KEY, value BLOB);
CREATE VIEW odd AS SELECT group_concat(s) FROM t;
CREATE TRIGGER noisy AFTER INSERT ON t BEGIN SELECT 1; END;
INSERT INTO k VALUES (NULL, 'x'), ('y', 'z');
INSERT INTO t VALUES (1, 'one', 'a', 77);
"""


def made(path: Path, script: str) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(script)
    return path


def run(client: Client, path: Path, *more: str) -> int:
    return main(["import", str(path), "--database", str(client.database), *more])


def left(client: Client) -> list[tuple[Any, ...]]:
    sql = "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE 'qs%import'"
    return client.query(sql).rows


def test_a_file_comes_with_everything(empty_database: MakeClient, tmp_path: Path) -> None:
    client = empty_database()
    assert run(client, made(tmp_path / "app.sqlite", APP)) == 0
    found = client.query(
        "SELECT id, name, active, created, \"camelCase\", score, encode(picture, 'hex'), price,"
        " extra::text, born, at FROM users ORDER BY id"
    )
    assert found.rows == [
        (1, "Ada", True, "2024-01-02T03:04:05", "x", 1.5, "00ff", "12.50", '{"a": 1}',
         "1815-12-10", 7),
        (2, 'Bö"b,\n x ', False, None, "", 2.0, "", "3.00", None, None, 8),
    ]  # fmt: skip
    assert client.query("SELECT * FROM pairs ORDER BY b").rows == [
        ("a", 1, 1.0),
        ("b", 2, 2.5),
        ("", 3, None),
    ]
    assert client.query("SELECT id, slug FROM posts ORDER BY id").rows == [(1, "hi"), (2, None)]
    assert client.query("SELECT * FROM good").rows == [(1, "Ada"), (2, 'Bö"b,\n x ')]
    # Numbers go on behind the largest that SQLite has given, also if its row is gone.
    added = client.query("INSERT INTO users (name) VALUES ('new') RETURNING id, active, price")
    assert added.rows == [(10, True, "0.50")]
    assert client.query("SELECT created > '2020-01-01', at > 7 FROM users WHERE id = 10").rows == [
        (True, True)
    ]
    assert left(client) == []


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("INSERT INTO users (name) VALUES ('')", "named"),
        ("INSERT INTO users (name) VALUES ('Ada')", "users_name_key"),
        ("INSERT INTO posts (user_id) VALUES (99)", "posts_user_id_fkey"),
        ("INSERT INTO comments (n) VALUES (6)", "part"),
        ("INSERT INTO pairs VALUES ('a', 1)", "pairs_pkey"),
    ],
)
def test_rules_of_a_file_hold(
    empty_database: MakeClient, tmp_path: Path, statement: str, constraint: str
) -> None:
    client = empty_database()
    assert run(client, made(tmp_path / "app.sqlite", APP)) == 0
    with pytest.raises(QserverError) as caught:
        client.query(statement)
    assert caught.value.constraint == constraint


def test_what_cannot_be_taken_is_listed(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = empty_database()
    assert run(client, made(tmp_path / "odd.sqlite", ODD)) == 1
    said = capsys.readouterr().err
    for line in (
        "t.n: declared INTEGER, but holds texts: it is text",
        "COLLATE NOCASE of t.s",
        "PRIMARY KEY of k: some rows have NULL",
        "foreign key of k (b): there is no table nowhere",
        "table words: a virtual table",
        "table _cf_METADATA: Cloudflare's own, not taken",
        "trigger noisy of t: there are no triggers",
        "view odd: function group_concat(text) does not exist",
        "foreign key of t (parent): ",
    ):
        assert f"  {line}" in said, said
    assert client.query("SELECT n FROM t").rows == [("one",)]
    assert left(client) == [], "there is nothing to go on with"


def test_a_dry_run_prints_definitions_and_asks_no_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(tmp_path / "app.sqlite", APP)
    assert main(["import", str(path), "--dry-run", "--url", "http://127.0.0.1:1"]) == 0
    said = capsys.readouterr().out
    assert "CREATE TABLE users (\n  id bigint GENERATED BY DEFAULT AS IDENTITY,\n" in said
    assert "ALTER TABLE users ADD CONSTRAINT named CHECK (length(name) > 0);\n" in said


def test_a_table_that_exists_already_ends_it_and_nothing_is_made(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = empty_database()
    client.query("CREATE TABLE posts (precious integer)")
    assert run(client, made(tmp_path / "app.sqlite", APP)) == 1
    said = capsys.readouterr().err
    assert 'relation "posts" already exists' in said and "Import into an empty database" in said
    tables = [table["name"] for table in client.tables()["tables"]]
    assert tables == ["posts"] and left(client) == []


def test_a_run_that_broke_off_is_gone_on_with(
    empty_database: MakeClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each request is lost once, before or after it was applied; in the end all is there once."""
    client = empty_database()
    rows = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50)"
    path = made(
        tmp_path / "many.sqlite",
        f"CREATE TABLE a (i INTEGER); INSERT INTO a {rows} SELECT i FROM n;"
        f"CREATE TABLE b (i INTEGER); INSERT INTO b {rows} SELECT i FROM n;"
        "CREATE INDEX a_i ON a (i);",
    )
    monkeypatch.setattr(batches, "BATCH_ROWS", 20)
    breaks_at, calls = 0, 0
    real = Client._ask

    async def lost(self: Client, request: Any) -> Any:
        nonlocal calls
        calls += 1
        answer = await real(self, request) if calls != breaks_at or breaks_at % 2 else None
        if calls == breaks_at:
            raise ConnectionLost("the connection broke")
        return answer

    monkeypatch.setattr(Client, "_ask", lost)
    runs = 0
    while True:
        breaks_at, calls, runs = breaks_at + 1, 0, runs + 1
        if run(client, path) == 0:
            break
        assert "Run the same command again" in capsys.readouterr().err
    assert runs > 3 and "An earlier run had begun it" in capsys.readouterr().err
    monkeypatch.undo()
    for table in ("a", "b"):
        found = client.query(f"SELECT count(*), count(DISTINCT i) FROM {table}").rows
        assert found == [(50, 50)]
    assert left(client) == []


def test_another_file_is_not_mixed_with_one_that_is_unfinished(
    empty_database: MakeClient,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    client = empty_database()

    def rows() -> Iterator[TextRow]:
        yield ["1"]
        raise ConnectionLost("broken")

    path = made(tmp_path / "a.sqlite", "CREATE TABLE a (i INTEGER); INSERT INTO a VALUES (1);")
    with sqlite_move(path, "a") as move:
        move.tables = [MovedTable("public", "a", ("i",), 1, rows)]
        with pytest.raises(ConnectionLost):
            mover.Mover(client, move, lambda *_: None).run()
    other = made(tmp_path / "b.sqlite", "CREATE TABLE b (i INTEGER);")
    assert run(client, other) == 1
    assert "is unfinished here" in capsys.readouterr().err
    assert run(client, path) == 0
    assert client.query("SELECT * FROM a").rows == [(1,)]


def test_rows_that_fail_leave_their_table_empty_and_others_full(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = empty_database()
    path = made(tmp_path / "a.sqlite", "CREATE TABLE a (t TEXT); CREATE TABLE b (i INTEGER);")
    with closing(sqlite3.connect(path)) as database:
        database.execute("INSERT INTO a VALUES ('fine'), (CAST(x'ff' AS TEXT))")
        database.execute("INSERT INTO b VALUES (1)")
        database.commit()
    assert run(client, path) == 1
    said = capsys.readouterr().err
    assert "rows of a: " in said and "none was taken" in said
    assert client.query("SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b)").rows == [
        (0, 1)
    ]


@pytest.mark.parametrize("content", [b"SQLite format 3\0", b"SQLite format 3\0" + b"x" * 9000])
def test_a_broken_file_is_refused(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "broken.sqlite"
    path.write_bytes(content)
    client = empty_database()
    assert run(client, path) == 1
    assert "broken.sqlite" in capsys.readouterr().err
    assert client.tables()["tables"] == []


def test_a_wrong_key_is_named(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client = empty_database()
    assert run(client, made(tmp_path / "app.sqlite", APP), "--key", "svc_k_wrong") == 1
    assert "this is neither a key nor the token of a session" in capsys.readouterr().err


def test_a_dump_of_sqlite_is_read_by_sqlite(
    empty_database: MakeClient, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(made(tmp_path / "app.sqlite", APP))) as database:
        lines = [line for line in database.iterdump() if not line.startswith('INSERT INTO "posts')]
    dump = tmp_path / "dump.sql"
    text = "\n".join(["PRAGMA foreign_keys=OFF;", *lines])
    dump.write_text(text, encoding="utf-8")
    client = empty_database()
    assert run(client, dump) in (0, 1), "posts is empty, so a foreign key fails"
    assert client.query("SELECT count(*) FROM users").rows == [(2,)]
    dump.write_text(text.replace("COMMIT;", ""), encoding="utf-8")
    assert run(empty_database(), dump) == 1
    assert "its COMMIT is missing" in capsys.readouterr().err
    dump.write_text(f"PRAGMA foreign_keys=OFF;\nATTACH '{tmp_path}/x' AS x;", encoding="utf-8")
    assert run(empty_database(), dump) == 1
    assert "dump.sql:2: not authorized" in capsys.readouterr().err


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.binary(max_size=5),
    st.sampled_from(["", "2024-01-31", "2024-01-31 10:00:00", "2024-01-31T10:00:00Z", "null", "1"]),
)
DECLARED = st.sampled_from(
    [
        *("", "INTEGER", "TEXT", "REAL", "BLOB", "BOOLEAN", "DATETIME", "DATE", "JSON", "UUID"),
        *("DECIMAL(6,2)", "NUMERIC", "VARCHAR(3)", "TIMESTAMP", "ANY"),
    ]
)


@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.tuples(DECLARED, st.lists(VALUES, min_size=3, max_size=3)), min_size=4, max_size=8)
)
def test_whatever_a_file_holds_arrives(
    empty_database: MakeClient,
    tmp_path_factory: pytest.TempPathFactory,
    columns: list[tuple[str, list[Any]]],
) -> None:
    """Any values under any declared types: as many rows, NULL where NULL was, the same numbers."""
    client = empty_database()
    path = tmp_path_factory.mktemp("any") / "any.sqlite"
    declared = ", ".join(f"c{at} {kind}" for at, (kind, _) in enumerate(columns))
    marks = ", ".join("?" * len(columns))
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"CREATE TABLE t ({declared})")
        rows = list(zip(*(values for _, values in columns), strict=True))
        database.executemany(f"INSERT INTO t VALUES ({marks})", rows)
        database.commit()
        stored = database.execute("SELECT * FROM t").fetchall()
    assert run(client, path) == 0
    found = client.query("SELECT * FROM t").rows
    nothing = [tuple(value is None for value in row) for row in stored]
    assert sorted(tuple(value is None for value in row) for row in found) == sorted(nothing)
    for at in range(len(columns)):
        numbers = sorted(row[at] for row in stored if isinstance(row[at], int))
        mine = [row[at] for row in found if type(row[at]) is int]
        assert not mine or sorted(mine) == numbers
