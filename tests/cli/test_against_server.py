"""Client and commands against the real server, as a process of its own: they speak one language."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qserver.cli import main
from qserver.cli.shell.commands import run_command
from qserver.cli.shell.prompt import run_text
from qserver.cli.shell.shell import Shell
from qserver.client import Client, Named, Statement, TrioClient
from qserver.errors import (
    DivisionByZero,
    Forbidden,
    NotFound,
    SerializationFailure,
    Unauthorized,
    UniqueViolation,
)
from tests.cli.real_server import KEY, ROOT


@pytest.fixture(autouse=True)
def connected(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSERVER_URL", url)
    monkeypatch.setenv("QSERVER_API_KEY", KEY)


def test_the_client_reads_writes_and_streams(url: str) -> None:
    with Client(url, KEY) as client:
        client.query("CREATE TABLE numbers (n integer PRIMARY KEY, t text)")
        done = client.transaction(
            [Statement("INSERT INTO numbers VALUES (?, ?)", [1, "one"]), "SELECT n, t FROM numbers"]
        )
        assert done.results[1].rows == [(1, "one")]
        assert client.query("SELECT n AS a, n AS a FROM numbers").columns == ("a", "a_2")
        with pytest.raises(UniqueViolation) as caught:
            client.query("INSERT INTO numbers VALUES (:n)", {"n": 1})
        assert caught.value.constraint == "numbers_pkey"
        with client.stream("SELECT n FROM generate_series(1, 30000) AS n") as rows:
            assert rows.types == ("integer",)
            assert sum(n for (n,) in rows) == 30000 * 30001 // 2
        with pytest.raises(DivisionByZero), client.stream("SELECT 1 / 0") as none:
            list(none)
        assert [each["name"] for each in client.tables()["tables"]] == ["numbers"]


async def test_the_trio_client_leaves_a_long_stream_early(url: str) -> None:
    async with TrioClient(url, KEY) as client:
        async with client.stream("SELECT n FROM generate_series(1, 1000000) AS n") as rows:
            assert await anext(rows) == (1,)
        assert (await client.query("SELECT 1 AS n")).rows == [(1,)]


def test_sessions_and_keys_live_and_die(url: str) -> None:
    with Client(url, KEY) as client:
        session = client.open_session()
        with Client(url, session["token"]) as guest:
            assert guest.refresh_session()["id"] == session["id"]
            guest.end_session()
            with pytest.raises(Unauthorized):
                guest.query("SELECT 1")
        made = client.create_key("reader", ["data:read"])
        turned = client.rotate_key(made["id"])
        with Client(url, made["key"]) as old, pytest.raises(Unauthorized):
            old.query("SELECT 1")
        with Client(url, turned["key"]) as new:
            assert new.query("SELECT 1 AS n").rows == [(1,)]
        client.revoke_key(turned["id"])
        with pytest.raises(NotFound):
            client.delete_database("nowhere")


def test_commands_make_use_and_delete_a_database(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["database", "create", "shop"]) == 0
    script = tmp_path / "shop.sql"
    script.write_text(
        "CREATE TABLE users (id integer PRIMARY KEY);\n"
        "CREATE TABLE orders (id integer PRIMARY KEY, owner integer REFERENCES users (id));\n"
        "BEGIN;\nINSERT INTO users VALUES (1);\nINSERT INTO orders VALUES (1, 1);\nCOMMIT;\n",
        encoding="utf-8",
    )
    assert main(["sql", "--database", "shop", "-f", str(script)]) == 0
    capsys.readouterr()
    query = "SELECT owner, true AS ok FROM orders"
    assert main(["sql", "--database", "shop", "-c", query, "-c", "\\d orders"]) == 0
    printed = capsys.readouterr().out
    assert "     1 | t\n(1 row)" in printed
    assert "(owner) REFERENCES users(id)" in printed
    assert main(["database", "delete", "shop", "--yes"]) == 0
    assert main(["sql", "--database", "shop", "-c", "SELECT 1"]) == 1


def test_a_browsers_session_runs_named_statements(url: str) -> None:
    with Client(url, KEY) as client:
        client.query("CREATE TABLE todos (id SERIAL PRIMARY KEY, owner INTEGER, title TEXT)")
        statements = {
            "mine": "SELECT title FROM todos WHERE owner = :user ORDER BY id",
            "add": "INSERT INTO todos (owner, title) VALUES (:user, :title)",
        }
        made = client.create_key("browsers", statements=statements)
        with Client(url, made["key"]) as server:
            tokens = [server.open_session(bind={"user": n})["token"] for n in (1, 2)]
        with Client(url, tokens[0]) as one, Client(url, tokens[1]) as two:
            one.query(Named("add"), {"title": "a"})
            with two.live(Named("mine"), every_ms=100) as live:
                two.transaction([Statement(Named("add"), {"title": "b"}), Named("mine")])
                assert next(iter(live)).inserted == [("b",)]
            assert one.query(Named("mine")).rows == [("a",)]
            with two.stream(Named("mine")) as rows:
                assert list(rows) == [("b",)]
            with pytest.raises(Forbidden):
                one.query("SELECT 1")
            with pytest.raises(Forbidden):
                one.query(Named("nothing"))
        client.change_key(made["id"], statements={"one": "SELECT 1 AS n WHERE :user = :user"})
        with Client(url, tokens[0]) as one:
            assert one.query(Named("one")).rows == [(1,)]
        client.query("DROP TABLE todos")


def test_an_open_transaction_commits_rolls_back_and_conflicts(url: str) -> None:
    with Client(url, KEY) as client:
        client.query("CREATE TABLE counters (id INTEGER PRIMARY KEY, n INTEGER)")
        client.query("INSERT INTO counters VALUES (1, 0)")
        read, add = "SELECT n FROM counters", "UPDATE counters SET n = n + 1"
        with client.begin() as opened:
            opened.query(add)
            assert (opened.query(read).rows, client.query(read).rows) == ([(1,)], [(0,)])
        with pytest.raises(ZeroDivisionError), client.begin() as opened:
            opened.query(add)
            raise ZeroDivisionError
        with pytest.raises(SerializationFailure), client.begin() as opened:
            opened.query(read)
            client.query(add)
            opened.query(add)
        assert client.query(read).rows == [(2,)]
        dry = client.query(add, dry_run=True)
        assert dry.diff is not None and dry.diff[0]["after"] == {"id": 1, "n": 3}
        client.query("DROP TABLE counters")


def test_at_the_prompt_a_transaction_is_open_between_statements(url: str) -> None:
    printed: list[str] = []
    with Client(url, KEY) as client:
        shell = Shell(client, run_command, printed.append, printed.append)
        shell.opens_transactions = True
        run_text(shell, "CREATE TABLE p (id int primary key); BEGIN; INSERT INTO p VALUES (1);")
        assert client.query("SELECT id FROM p").rows == []
        run_text(shell, "SAVEPOINT a; INSERT INTO p VALUES (2); ROLLBACK TO a; TABLE p;")
        assert "(1 row)" in "".join(printed)
        run_text(shell, "SELECT 1 / 0;")
        run_text(shell, "SELECT 1;")
        assert "25P02" in "".join(printed) and shell.in_transaction
        run_text(shell, "ROLLBACK TO a; COMMIT;")
        assert not shell.in_transaction
        assert client.query("SELECT id FROM p").rows == [(1,)]
        run_text(shell, "BEGIN; DELETE FROM p; ROLLBACK; BEGIN;")
        shell.leave()
        assert printed[-1] == "The open transaction was rolled back.\n"
        assert not shell.in_transaction
        assert client.query("DROP TABLE p").affected_rows == 0


def test_a_read_only_transaction_refuses_to_write_at_the_prompt_and_in_a_script(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.sql"
    script.write_text("BEGIN READ ONLY;\nSELECT 41 + 1;\nCREATE TABLE never (id int);\nCOMMIT;\n")
    assert main(["sql", "-f", str(script)]) == 3
    printed, said = capsys.readouterr()
    assert "42" in printed and f"{script}:3: ERROR 25006" in said
    printed_at_prompt: list[str] = []
    with Client(url, KEY) as client:
        shell = Shell(client, run_command, printed_at_prompt.append, printed_at_prompt.append)
        shell.opens_transactions = True
        run_text(shell, "START TRANSACTION READ ONLY; CREATE TABLE never (id int);")
        assert "25006" in "".join(printed_at_prompt) and shell.mark == "!"
        run_text(shell, "COMMIT;")
        assert not shell.in_transaction
        assert (
            "25P02" in "".join(printed_at_prompt) and "It was rolled back." in printed_at_prompt[-1]
        )
        assert "never" not in [each["name"] for each in client.tables()["tables"]]


def test_the_shell_reads_older_versions(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: list[str] = []
    with Client(url, KEY) as client:
        client.query("CREATE TABLE aged (n integer PRIMARY KEY)")
        first = client.query("INSERT INTO aged VALUES (1)").version
        client.query("INSERT INTO aged VALUES (2)")
        shell = Shell(client, run_command, printed.append, printed.append)
        shell.opens_transactions = True

        def typed(text: str) -> str:
            printed.clear()
            run_text(shell, text)
            return "".join(printed)

        assert f"version {first}" in typed(f"\\asof {first}")
        assert "(1 row)" in typed("TABLE aged;")
        assert "25006" in typed("INSERT INTO aged VALUES (3);")
        assert "(1 row)" in typed("BEGIN; TABLE aged; COMMIT;")
        assert "transaction is open" in typed("BEGIN; \\asof now")
        typed("ROLLBACK;")
        typed(f"\\copy aged to '{tmp_path / 'aged.csv'}'")
        assert (tmp_path / "aged.csv").read_text() == "n\n1\n"
        assert "only be read" in typed(f"\\copy aged from '{tmp_path / 'aged.csv'}'")
        assert "follows what is committed" in typed("\\live TABLE aged")
        assert "ERROR" in typed("\\asof 999999999") and shell.as_of == first
        assert "newest" in typed("\\asof now")
        assert "(2 rows)" in typed("TABLE aged;")
        assert main(["sql", "--as-of", str(first), "--format", "csv", "-c", "TABLE aged"]) == 0
        assert capsys.readouterr().out == "n\n1\n"
        block = "BEGIN; TABLE aged; COMMIT"
        assert main(["sql", "--as-of", str(first), "--format", "csv", "-c", block]) == 0
        assert capsys.readouterr().out == "n\n1\n"
        client.query("DROP TABLE aged")


@pytest.mark.long
def test_the_bench_runs_and_leaves_nothing_behind(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Client(url, KEY) as client:
        before = [each["name"] for each in client.databases()]
        assert main(["bench", "--seconds", "0.1", "--clients", "2", "--json"]) == 0
        assert [each["name"] for each in client.databases()] == before
    records = json.loads(capsys.readouterr().out)
    assert all(each["requests"] > 0 and each["errors"] == {} for each in records)
    assert all(each["server_cpu_us"] is not None for each in records)


def _heed_control_c() -> None:
    """Tests may have been started in the background, where shells have Ctrl-C ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.long
def test_control_c_ends_the_bench_and_cleans_up(url: str) -> None:
    with Client(url, KEY) as client:
        before = [each["name"] for each in client.databases()]
        process = subprocess.Popen(
            [sys.executable, "-m", "qserver", "bench", "--seconds", "600", "--workload", "point"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_heed_control_c,
        )
        with process:
            while not any(each["name"] not in before for each in client.databases()):
                assert process.poll() is None
            process.send_signal(signal.SIGINT)
            printed, said = process.communicate(timeout=240)
        assert (process.returncode, printed, said) == (130, "", "\n")
        assert [each["name"] for each in client.databases()] == before


def test_whatever_reads_can_be_streamed_by_the_shell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = "CREATE TABLE streamed (n integer); INSERT INTO streamed VALUES (1);"
    assert main(["sql", "-c", made]) == 0
    statements = [
        "(SELECT n FROM streamed)",
        "TABLE streamed",
        "VALUES (1)",
        "WITH s AS (SELECT n FROM streamed) SELECT n FROM s",
        "WITH s AS (INSERT INTO streamed VALUES (1) RETURNING n) SELECT n FROM s",
        "EXPLAIN SELECT n FROM streamed",
        "SHOW server_version",
    ]
    for statement in statements:
        capsys.readouterr()
        assert main(["sql", "--format", "ndjson", "-c", statement]) == 0, statement
        assert len(capsys.readouterr().out.splitlines()) >= 1, statement


def test_commands_know_the_database_that_nobody_has_named(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = ("\\diff", "\\c", "\\branch of_it", "\\conninfo", "\\dt main.public.nothing")
    options = [option for command in commands for option in ("-c", command)]
    assert main(["sql", "--url", url, "--key", KEY, *options]) == 0
    printed = capsys.readouterr()
    assert "Newest versions" in printed.out
    assert "connected to the database main." in printed.err
    assert "a branch of main at version" in printed.err
    assert 'connected to database "main"' in printed.out + printed.err
    assert main(["database", "delete", "of_it", "--yes", "--url", url, "--key", KEY]) == 0
