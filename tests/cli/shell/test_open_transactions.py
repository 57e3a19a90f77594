"""At the prompt: an open transaction is there until the server has ended it."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.limits import TRANSACTION_STATEMENTS_MAX
from tests.cli.shell.shells import Talk, talk
from tests.client.fake_server import Answer, Answering, FakeServer, changed, error, stream

OPENED = {"success": True, "transaction": {"id": "txn_1", "version": 3}}
COMMITTED = Answer({"success": True, "version": 4, "affected_rows": 1, "timings": {}})
COMMIT = "/v1/transaction/txn_1/commit"


def begun(server: FakeServer, person: Talk) -> None:
    server.route("POST", "/v1/transaction/open", Answer(OPENED, 201))
    server.route("DELETE", "/v1/transaction/txn_1", Answer(status=204))
    person.shell.opens_transactions = True
    assert person.run("BEGIN;") == "BEGIN\n"
    assert person.shell.mark == "*"


def hang_up() -> None:
    raise OSError("the connection breaks")


def rolled_back(server: FakeServer) -> bool:
    return any(each.method == "DELETE" for each in server.requests)


LIMITED = error("QS012", "rate_limited", "too many requests", 429, retryable=True)
DENIED = error("QS002", "not_authorized", "no", 401)


@pytest.mark.parametrize("refusal", [LIMITED, DENIED])
def test_a_commit_that_is_refused_can_be_sent_again(server: FakeServer, refusal: Answer) -> None:
    with talk(server) as person:
        begun(server, person)
        server.route("POST", COMMIT, refusal)
        assert "ERROR" in person.run("COMMIT;")
        assert person.shell.in_transaction
        server.route("POST", COMMIT, COMMITTED)
        assert person.run("COMMIT;") == "COMMIT\n"
        assert not person.shell.in_transaction and not rolled_back(server)


def test_a_commit_that_cannot_reach_the_server_can_be_sent_again(server: FakeServer) -> None:
    with talk(server) as person:
        begun(server, person)
        there, person.shell.client.url = person.shell.client.url, "http://127.0.0.1:9"
        person.shell.client._http.base_url = "http://127.0.0.1:9"
        assert "ERROR 08001" in person.run("COMMIT;")
        assert person.shell.mark == "*"
        person.shell.client.url = there
        person.shell.client._http.base_url = there
        server.route("POST", COMMIT, COMMITTED)
        assert person.run("COMMIT;") == "COMMIT\n"


def test_a_commit_whose_answer_is_lost_is_asked_for_again(server: FakeServer) -> None:
    with talk(server) as person:
        begun(server, person)
        server.route("POST", COMMIT, stream(hang_up))
        assert "COMMIT again asks" in person.run("COMMIT;")
        assert person.shell.mark == "?"
        for text in ("SELECT 1;", "ROLLBACK;", "ROLLBACK TO a;"):
            assert "not known whether" in person.run(text)
        assert not rolled_back(server)
        server.route("POST", COMMIT, COMMITTED)
        assert person.run("COMMIT;") == "COMMIT\n"
        assert person.shell.mark == ""


def test_who_leaves_in_doubt_is_told_so(server: FakeServer) -> None:
    with talk(server) as person:
        begun(server, person)
        server.route("POST", COMMIT, stream(hang_up))
        person.run("COMMIT;")
        person.said.clear()
        person.shell.leave()
        assert person.said == ["It is not known whether the transaction was committed.\n"]
        assert not rolled_back(server)


def test_control_c_during_a_commit_leaves_it_in_doubt(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: str) -> Any:
        raise KeyboardInterrupt

    with talk(server) as person:
        begun(server, person)
        monkeypatch.setattr(person.shell.client, "commit_transaction", interrupted)
        assert "may have been applied or not" in person.run("COMMIT;")
        assert person.shell.mark == "?"


@pytest.mark.parametrize(
    ("answer", "deleted"),
    [
        (error("40001", "serialization_failure", "conflict", retryable=True), False),
        (error("QS030", "transaction_not_found", "gone", 404), False),
        (error("25P02", "in_failed_sql_transaction", "aborted", hint="Send ROLLBACK."), True),
    ],
)
def test_a_commit_that_fails_for_good_ends_the_transaction(
    server: FakeServer, answer: Answering, deleted: bool
) -> None:
    with talk(server) as person:
        begun(server, person)
        server.route("POST", COMMIT, answer)
        said = person.run("COMMIT;")
        assert not person.shell.in_transaction
        assert rolled_back(server) is deleted
        assert ("It was rolled back." in said) is deleted and "Send ROLLBACK" not in said
        assert ("nothing of it was applied" in said) is ("QS030" in said)


def test_the_prompt_shows_that_a_transaction_has_failed(server: FakeServer) -> None:
    server.answer("SELECT 1 / 0", error("22012", "division_by_zero", "division by zero"))
    server.answer("UPDATE t SET a = 1", LIMITED)
    server.answer("ROLLBACK TO a", changed(0))
    with talk(server) as person:
        begun(server, person)
        person.run("UPDATE t SET a = 1;")
        assert person.shell.mark == "*"
        person.run("SELECT 1 / 0;")
        assert person.shell.mark == "!"
        assert person.run("ROLLBACK TO a;") == "ROLLBACK\n"
        assert person.shell.mark == "*"


def test_a_live_query_is_refused_in_a_transaction(server: FakeServer) -> None:
    with talk(server) as person:
        begun(server, person)
        assert "End the transaction first" in person.run("\\live SELECT 1")


def test_an_empty_block_commits(server: FakeServer) -> None:
    with talk(server) as person:
        assert person.run("BEGIN; COMMIT;").endswith("COMMIT\n")
    assert server.requests == []


def test_no_statement_of_a_block_that_is_too_long_is_run(server: FakeServer) -> None:
    with talk(server) as person:
        for text in ("BEGIN;", *["INSERT INTO t VALUES (1);"] * (TRANSACTION_STATEMENTS_MAX + 3)):
            assert "ERROR" not in person.run(text)
        assert f"at most {TRANSACTION_STATEMENTS_MAX} statements" in person.run("COMMIT;")
        assert not person.shell.in_transaction
    assert server.requests == []


@pytest.mark.parametrize(
    ("sql", "tag"),
    [
        ("CREATE OR REPLACE VIEW v AS SELECT 1", "CREATE VIEW"),
        ("CREATE UNIQUE INDEX ON t (a)", "CREATE INDEX"),
        ("DROP TABLE t", "DROP TABLE"),
        ("TRUNCATE t", "TRUNCATE"),
        ("SAVEPOINT a", "SAVEPOINT"),
        ("RELEASE a", "RELEASE"),
    ],
)
def test_what_was_done_is_named_without_its_names(server: FakeServer, sql: str, tag: str) -> None:
    with talk(server) as person:
        assert person.run(f"{sql};") == f"{tag}\n"


def test_an_error_of_a_live_query_is_shown_in_the_query(server: FakeServer) -> None:
    server.answer("SELECT bad", error("42703", "undefined_column", "no such column", position=8))
    with talk(server) as person:
        shown = "ERROR 42703: no such column\nLINE 1: SELECT bad\n               ^\n"
        assert person.run("\\live SELECT bad") == shown
