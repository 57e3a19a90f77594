"""The shell prints results as they come, collects blocks, and survives every error."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from qserver.cli.shell.commands import COMMANDS
from qserver.cli.shell.printing import BATCH_ROWS
from tests.cli.shell.shells import talk
from tests.client.fake_server import (
    Answer,
    FakeServer,
    changed,
    error,
    event,
    result,
    rows,
    stream,
    streamed,
)


def test_a_select_is_streamed_and_printed(server: FakeServer) -> None:
    server.answer("SELECT 1", streamed(["n", "s"], ["integer", "text"], [[1, "a"], [2, None]]))
    with talk(server) as person:
        assert person.run("SELECT 1;") == (" n | s \n---+---\n 1 | a\n 2 | \n(2 rows)\n\n")
    assert server.requests[0].headers["accept"] == "text/event-stream"


def test_live_prints_a_live_query_and_its_changes(server: FakeServer) -> None:
    columns = event("columns", {"columns": ["n"], "types": ["integer"], "version": 1})
    ready = event("ready", {"version": 1, "row_count": 1})
    changes = event("delete", {"n": 1}) + event("insert", {"n": 2})
    gone = event("error", {"error": {"code": "42P01", "name": "undefined_table", "message": "t"}})
    version = event("version", {"version": 2})
    server.answer(
        "SELECT n", stream(columns, event("row", {"n": 1}), ready, changes, version, gone)
    )
    with talk(server) as person:
        assert "needs a query" in person.run("\\live")
        printed = person.run("\\live SELECT n")
        assert printed.startswith(" n \n---\n 1\n(1 row)\n\n   op   | n \n")
        assert " delete | 1\n insert | 2\n(2 rows)\n" in printed
        assert "Version 2:" in printed and "42P01" in printed
        assert server.requests[-1].body == {"sql": "SELECT n", "live": True}
        server.answer("SELECT m", streamed(["n"], ["integer"], [[1]]))
        person.run("SELECT m;")
        assert "ERROR" in person.run("\\live")
        assert server.requests[-1].body == {"sql": "SELECT m", "live": True}


def test_a_change_is_counted_and_a_definition_named(server: FakeServer) -> None:
    server.answer("INSERT INTO t VALUES (1)", changed(3))
    with talk(server) as person:
        assert person.run("INSERT INTO t VALUES (1);") == "INSERT 0 3\n"
        person.shell.names_are_stale = False
        assert person.run("create table t (a int);") == "CREATE TABLE\n"
        assert person.shell.names_are_stale


def test_returning_prints_its_rows(server: FakeServer) -> None:
    server.answer("INSERT 1 RETURNING id", rows(["id"], ["integer"], [[7]], 1))
    with talk(server) as person:
        assert person.run("INSERT 1 RETURNING id;") == " id \n----\n  7\n(1 row)\n\n"


def test_long_results_are_printed_before_they_end(server: FakeServer) -> None:
    printed = threading.Event()
    head = event("columns", {"columns": ["n"], "types": ["integer"], "version": 1})
    many = b"".join(event("row", {"n": n}) for n in range(BATCH_ROWS))
    last = event("done", {"success": True, "row_count": BATCH_ROWS, "affected_rows": 0})

    def wait() -> None:
        assert printed.wait(240), "the rows so far were not printed"

    server.answer("SELECT 1", stream(head, many, wait, event("row", {"n": 123456}), last))
    with talk(server) as person:
        write = person.written.append

        def watched(text: str) -> None:
            write(text)
            if "999\n" in text:
                printed.set()

        person.shell.output.write_to_terminal = watched
        assert person.run("SELECT 1;").endswith(" 123456\n(1001 rows)\n\n")


def test_an_error_shows_where_it_is(server: FakeServer) -> None:
    sql = "SELECT a,\n  b FROM nowhere"
    failed = error(
        "42P01",
        "undefined_table",
        'relation "nowhere" does not exist',
        hint="Make it.",
        position=20,
    )
    server.answer(sql, failed)
    with talk(server) as person:
        assert person.run(f"{sql};") == (
            'ERROR 42P01: relation "nowhere" does not exist\n'
            "LINE 2:   b FROM nowhere\n"
            "                 ^\n"
            "HINT: Make it.\n"
        )
        assert person.run("SELECT 1;") == "SELECT\n"


def test_a_block_is_sent_as_one_transaction_at_commit(server: FakeServer) -> None:
    answer = {
        "success": True,
        "results": [result([], [], [], 1), result(["n"], ["integer"], [[5]])],
        "affected_rows": 1,
        "version": 4,
        "retries": 0,
        "timings": {},
    }
    server.route("POST", "/v1/transaction", Answer(answer))
    with talk(server) as person:
        person.run("BEGIN;")
        person.run("UPDATE t SET a = 1; SELECT n FROM t;")
        assert server.requests == []
        assert person.run("COMMIT;") == " n \n---\n 5\n(1 row)\n\nUPDATE 1\nCOMMIT\n"
    assert server.requests[0].body == {"statements": ["UPDATE t SET a = 1", "SELECT n FROM t"]}


def test_a_block_can_be_dropped_and_does_not_nest(server: FakeServer) -> None:
    with talk(server) as person:
        person.run("START TRANSACTION; INSERT INTO t VALUES (1);")
        assert "do not nest" in person.run("BEGIN;")
        assert person.run("ROLLBACK;") == "ROLLBACK: nothing of it was sent.\n"
        assert person.run("COMMIT;") == "There is no transaction to commit.\n"
    assert server.requests == []


def test_the_statement_of_a_block_that_failed_is_shown(server: FakeServer) -> None:
    failed = error("22012", "division_by_zero", "division by zero", statement=1, position=8)
    server.route("POST", "/v1/transaction", failed)
    with talk(server) as person:
        said = person.run("BEGIN; SELECT 1; SELECT 1/0; COMMIT;")
        assert "LINE 1: SELECT 1/0\n               ^\n" in said
        assert not person.shell.in_transaction


def test_a_rate_limit_is_waited_for_only_by_scripts(server: FakeServer) -> None:
    answers = [
        Answer(error("QS012", "rate_limited", "too many").body, 429, {"Retry-After": "3"}),
        changed(1),
    ]
    server.answer("DELETE FROM t", lambda received: answers.pop(0))
    with talk(server) as person:
        with person.shell.in_script(person.shell.standard_input, lambda: None):
            assert "wait 3 s" in person.run("DELETE FROM t;")
        assert person.pauses == [3.0]
        answers.append(Answer(error("QS012", "rate_limited", "too many").body, 429))
        assert person.run("DELETE FROM t;").startswith("ERROR QS012")


def test_the_database_changes_only_if_it_is_there(server: FakeServer) -> None:
    with talk(server) as person:
        assert person.run("\\c Main") == "Now using the database main.\n"
        assert person.shell.client.database == "main"
        server.route("GET", "/tables", error("QS006", "not_found", "no database x", 404))
        assert "no database x" in person.run("\\c x")
        assert person.shell.client.database == "main"
        assert person.run("\\c") == "You are connected to the database main.\n"


def test_switches_and_formats(server: FakeServer) -> None:
    server.answer("SELECT 1", streamed(["n"], ["integer"], [[1]]))
    with talk(server) as person:
        assert person.run("\\x") == "Expanded display is on.\n"
        assert "RECORD 1" in person.run("SELECT 1;")
        person.run("\\x off")
        assert person.run("\\timing on") == "Timing is on.\n"
        assert "Time: " in person.run("SELECT 1;")
        person.run("\\timing")
        for name, expected in [
            ("csv", "n\n1\n"),
            ("json", '[\n{"n":1}\n]\n'),
            ("ndjson", '{"n":1}\n'),
        ]:
            person.run(f"\\format {name}")
            assert person.run("SELECT 1;") == expected
        assert "Choose one of: aligned" in person.run("\\format xml")
        assert "A Boolean is expected" in person.run("\\x maybe")


def test_results_go_to_a_file_and_back(server: FakeServer, tmp_path: Path) -> None:
    server.answer("SELECT 1", streamed(["n"], ["integer"], [[1]]))
    path = tmp_path / "out.txt"
    with talk(server) as person:
        person.run(f"\\o {path}")
        assert person.run("SELECT 1;") == ""
        person.run("\\o")
        assert path.read_text(encoding="utf-8") == " n \n---\n 1\n(1 row)\n\n"
        assert "(1 row)" in person.run("SELECT 1;")
        assert "cannot write to" in person.run(f"\\o {tmp_path}")


def test_help_lists_every_command_and_unknown_ones_point_to_it(server: FakeServer) -> None:
    with talk(server) as person:
        listed = person.run("\\?")
        for name in COMMANDS:
            assert f"\n  {name}" in f"\n{listed}"
        assert "\\? lists the commands" in person.run("\\frobnicate")
        person.run("\\q")
        assert person.shell.is_over


def test_commands_that_are_restricted_do_not_run(server: FakeServer, tmp_path: Path) -> None:
    server.answer("SELECT 1", streamed(["n"], ["integer"], [[1]]))
    file = tmp_path / "made"
    with talk(server) as person:
        assert "needs a key" in person.run("\\restrict")
        assert "not restricted" in person.run("\\unrestrict abc")
        assert person.run("\\restrict abc") == ""
        make = f"touch {file}"
        for text in (f"\\! {make}", f"\\o {file}", "\\if true", "\\restrict b", "SELECT 1 \\g"):
            assert "only \\unrestrict" in person.run(text), text
        for key in ("", "abcd", f"`{make}; echo abc`"):
            assert "wrong key" in person.run(f"\\unrestrict {key}"), key
        assert not file.exists()
        assert "(1 row)" in person.run("SELECT 1;")
        assert person.run("\\unrestrict abc") == ""
        person.run(f"\\! {make}")
        assert file.exists()


@pytest.mark.parametrize("name", ["\\i", "\\i nowhere.sql"])
def test_a_file_that_is_not_there_is_an_error(name: str, server: FakeServer) -> None:
    with talk(server) as person:
        assert person.run(name).startswith("ERROR QS001")
