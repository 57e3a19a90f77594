"""Keys and databases from a terminal: tables, JSON, secrets shown once, questions asked."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from qserver.cli import main
from tests.client.fake_server import KEY, Answer, FakeServer, error

RECORD: dict[str, Any] = {
    "id": "key_1",
    "name": "ci",
    "prefix": "svc_k_abcd",
    "state": "active",
    "scopes": ["data:read", "data:write"],
    "databases": None,
    "created_at": "2024-02-29T00:00:00Z",
    "expires_at": None,
    "revoked_at": None,
}
DATABASE: dict[str, Any] = {
    "id": "db_1",
    "name": "shop",
    "organization": "default",
    "state": "ready",
    "version": 3,
    "tables": 2,
    "rows": 12345,
    "size_bytes": 4096,
    "created_at": "2024-02-29T00:00:00Z",
}


class Terminal(io.StringIO):
    """Standard input with a person at it, who has typed this."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def connected(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QSERVER_URL", server.url)
    monkeypatch.setenv("QSERVER_API_KEY", KEY)


def test_a_key_is_made_from_statements(
    server: FakeServer, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    server.route("POST", "/v1/keys", Answer({"success": True, **RECORD, "key": "svc_k_x"}, 201))
    file = tmp_path / "statements.json"
    file.write_text('{"one": "SELECT 1", "two": "SELECT 2"}')
    given = ["--statements-from", str(file), "--statement", "two = SELECT a FROM t WHERE b=:c"]
    assert main(["key", "create", "ci", "--database", "shop", "--bound", "c", *given]) == 0
    assert server.requests[-1].body == {
        "name": "ci",
        "databases": ["shop"],
        "statements": {"one": "SELECT 1", "two": "SELECT a FROM t WHERE b=:c"},
        "bound": ["c"],
    }
    capsys.readouterr()
    file.write_text('{"one": 1}')
    for wrong in (["--statement", "SELECT 1"], ["--statements-from", str(file)]):
        assert main(["key", "create", "ci", *wrong]) == 1
    assert "NAME=SQL" in capsys.readouterr().err


def test_the_list_of_keys_names_their_statements(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = {**RECORD, "scopes": [], "statements": {"mine": "SELECT 1", "add": "SELECT 2"}}
    answer = {"success": True, "keys": [limited, RECORD], "next_cursor": None}
    server.route("GET", "/v1/keys", Answer(answer))
    assert main(["key", "list"]) == 0
    assert "mine, add" in capsys.readouterr().out


def test_keys_are_listed_as_a_table(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    server.route(
        "GET", "/v1/keys", Answer({"success": True, "keys": [RECORD], "next_cursor": None})
    )
    assert main(["key", "list"]) == 0
    head, _, row = capsys.readouterr().out.splitlines()
    assert head.split(" | ")[0].strip() == "id"
    assert "key_1" in row
    assert "data:read, data:write" in row


def test_lists_are_json_when_asked(server: FakeServer, capsys: pytest.CaptureFixture[str]) -> None:
    listed = {"success": True, "databases": [DATABASE], "next_cursor": None}
    server.route("GET", "/v1/databases", Answer(listed))
    assert main(["database", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [DATABASE]
    assert main(["database", "list"]) == 0
    assert "12345 |" in capsys.readouterr().out


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_secret_is_shown_once_with_a_warning(
    flags: list[str], server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"success": True, **RECORD, "key": "svc_k_new"}
    server.route("POST", "/v1/keys", Answer(made, 201))
    arguments = ["key", "create", "ci", "--scope", "data:read", "--database", "shop"]
    assert main([*arguments, "--expires-in", "30d", *flags]) == 0
    printed = capsys.readouterr()
    secret = json.loads(printed.out)["key"] if flags else printed.out.strip()
    assert secret == "svc_k_new"
    assert "only time" in printed.err
    assert server.requests[0].body == {
        "name": "ci",
        "scopes": ["data:read"],
        "databases": ["shop"],
        "expires_in": 2_592_000,
    }


def test_a_key_is_rotated_with_a_grace(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    made = {"success": True, **RECORD, "key": "svc_k_next"}
    server.route("POST", "/v1/keys/key_1/rotate", Answer(made, 201))
    assert main(["key", "rotate", "key_1", "--grace", "1h"]) == 0
    assert capsys.readouterr().out == "svc_k_next\n"
    assert server.requests[0].body == {"grace_seconds": 3600}


@pytest.mark.parametrize(
    ("arguments", "path"),
    [(["key", "revoke", "key_1"], "/v1/keys/key_1"), (["database", "delete", "shop"], None)],
)
@pytest.mark.parametrize(
    ("typed", "code"), [("y\n", 0), ("yes\n", 0), ("\n", 1), ("n\n", 1), ("", 1)]
)
def test_what_destroys_asks_first(
    arguments: list[str],
    path: str | None,
    typed: str,
    code: int,
    server: FakeServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    server.route("DELETE", path or "/v1/databases/shop", Answer(status=204))
    monkeypatch.setattr("sys.stdin", Terminal(typed))
    assert main(arguments) == code
    assert len(server.requests) == (1 if code == 0 else 0)
    assert "[y/N]" in capsys.readouterr().err


def test_yes_does_not_ask_and_a_pipe_must_say_it(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server.route("DELETE", "/v1/databases/shop", Answer(status=204))
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert main(["database", "delete", "shop"]) == 1
    assert "--yes" in capsys.readouterr().err
    assert server.requests == []
    assert main(["database", "delete", "shop", "--yes"]) == 0
    assert capsys.readouterr().out == "Deleted shop.\n"


def test_a_database_is_made_and_a_taken_name_is_a_sentence(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.route("POST", "/v1/databases", Answer({"success": True, **DATABASE}, 201))
    assert main(["database", "create", "shop"]) == 0
    assert capsys.readouterr().out == "Created the database shop (db_1).\n"
    taken = error("QS008", "already_exists", "shop is taken", 409, hint="Choose another name.")
    server.route("POST", "/v1/databases", taken)
    assert main(["database", "create", "shop"]) == 1
    assert capsys.readouterr().err == "qserver: shop is taken\nChoose another name.\n"


def test_versions_are_listed_as_many_as_wanted(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {"version": 9, "time": "2024-02-29T00:00:00Z", "tables": ["a", "b"], "rows_changed": 2}
    pages = {"": ([first, {**first, "version": 8}], "8"), "?before=8": ([{"version": 7}], None)}
    for query, (versions, cursor) in pages.items():
        body = {"success": True, "versions": versions, "next_cursor": cursor}
        server.route("GET", f"/v1/databases/shop/versions{query}", Answer(body))
    assert main(["database", "versions", "shop", "--json"]) == 0
    assert [each["version"] for each in json.loads(capsys.readouterr().out)] == [9, 8, 7]
    assert main(["database", "versions", "shop", "--limit", "1"]) == 0
    shown = capsys.readouterr().out
    assert "a, b" in shown and shown.count("2024-02-29") == 1
    assert [each.path for each in server.requests][2:] == ["/v1/databases/shop/versions"]


def test_the_difference_of_two_versions_is_read_to_its_end(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    change = {"table": "t", "op": "update", "key": {"id": 1}, "before": {"n": 1}, "after": {"n": 2}}
    pages = {"": ("x", "from=3&tables=t%2Cu"), "x": (None, "from=3&to=9&tables=t%2Cu&cursor=x")}
    for cursor, query in pages.values():
        body = {"success": True, "from": 3, "to": 9, "changes": [change], "next_cursor": cursor}
        server.route("GET", f"/v1/databases/shop/diff?{query}", Answer(body))
    assert main(["database", "diff", "shop", "3", "--table", "t", "--table", "u"]) == 0
    shown = capsys.readouterr().out
    assert shown.count('{"id":1}') == 2 and '{"n":2}' in shown


def test_two_databases_are_compared_at_the_same_two_versions(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    change = {"table": "t", "op": "delete", "key": {"id": 1}, "before": {"n": 1}, "after": None}
    first, other = "from_database=shop", "from=3&to=9&from_database=shop&cursor=x"
    for query, cursor in ((first, "x"), (other, None)):
        body = {"success": True, "from": 3, "to": 9, "changes": [change], "next_cursor": cursor}
        server.route("GET", f"/v1/databases/trial/diff?{query}", Answer(body))
    assert main(["database", "diff", "trial", "--from-database", "shop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [change, change]
    counts = [{"table": "t", "schema": 0, "insert": 0, "update": 1234567, "delete": 2}]
    body = {"success": True, "from": 3, "to": 9, "changes": [], "counts": counts}
    query = "from=3&from_database=shop&tables=t&count=true"
    server.route("GET", f"/v1/databases/trial/diff?{query}", Answer(body))
    given = ["trial", "3", "--from-database", "shop", "--table", "t", "--count"]
    assert main(["database", "diff", *given]) == 0
    assert "1234567" in capsys.readouterr().out


def test_a_restore_asks_and_says_how_to_undo_it(
    server: FakeServer, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"success": True, "version": 12, "restored": 5}
    server.route("POST", "/v1/databases/shop/restore", Answer(answer))
    listed = {"success": True, "versions": [{"version": 11}], "next_cursor": None}
    server.route("GET", "/v1/databases/shop/versions", Answer(listed))
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert main(["database", "restore", "shop", "5"]) == 1
    assert server.requests == []
    assert main(["database", "restore", "shop", "2024-02-29T00:00:00Z", "--yes"]) == 0
    assert server.requests[-1].body == {"as_of": "2024-02-29T00:00:00Z"}
    assert "restore shop 11" in capsys.readouterr().out
    listed["versions"] = [{"version": 12}]
    server.route("GET", "/v1/databases/shop/versions", Answer(listed))
    assert main(["database", "restore", "shop", "5", "--yes"]) == 0
    assert capsys.readouterr().out == "shop is what version 5 was already.\n"
    with pytest.raises(SystemExit):
        main(["database", "versions", "shop", "--limit", "0"])
    assert "from 1 to 100000" in capsys.readouterr().err


ORGANIZATION: dict[str, Any] = {
    "id": "org_1",
    "name": "acme",
    "tier": "free",
    "limits": {"requests_per_minute": 200, "databases": 25, "stored_bytes": None, "keys": 1000},
    "created_at": "2024-02-29T00:00:00Z",
    "use": {"requests_this_minute": 7, "databases": 3, "stored_bytes": 4096, "keys": 1},
}


def test_organizations_are_listed_with_what_they_use_and_may_use(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    other = {**ORGANIZATION, "id": "org_2", "name": "other", "tier": "pro"}
    answer = {"success": True, "organizations": [ORGANIZATION, other], "next_cursor": None}
    server.route("GET", "/v1/organizations", Answer(answer))
    assert main(["organization", "list"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    words = [[word for word in line if word != "|"] for line in lines]
    assert ["acme", "free", "requests_per_minute", "7", "200"] in words
    assert ["other", "pro", "requests_per_minute", "7", "200"] in words
    assert words.count(["databases", "3", "25"]) == words.count(["stored_bytes", "4096"]) == 2
    assert main(["organization", "list", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [ORGANIZATION, other]


def test_the_tier_and_limits_of_an_organization_are_changed(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.route("PATCH", "/v1/organizations/acme", Answer({"success": True, **ORGANIZATION}))
    limits = [
        "--limit",
        "live_queries=50",
        "--limit",
        "stored_bytes = 10GB",
        "--limit",
        "feeds=tier",
    ]
    assert main(["organization", "change", "acme", "--tier", "pro", *limits]) == 0
    assert server.requests[-1].body == {
        "tier": "pro",
        "limits": {"live_queries": 50, "stored_bytes": 10**10, "feeds": None},
    }
    assert "acme" in capsys.readouterr().out
    assert main(["organization", "change", "acme", "--tier", "free", "--json"]) == 0
    assert server.requests[-1].body == {"tier": "free"}
    assert json.loads(capsys.readouterr().out) == ORGANIZATION


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "nothing to change"),
        (["--limit", "feeds"], "is not NAME=VALUE"),
        (["--limit", "feeds=many"], "such as 50 or 10GB"),
        (["--limit", "feeds=-1"], "is not NAME=VALUE"),
    ],
)
def test_a_change_that_makes_no_sense_is_not_sent(
    given: list[str], said: str, server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["organization", "change", "acme", *given]) == 1
    assert said in capsys.readouterr().err and server.requests == []


def test_a_key_that_may_not_change_organizations_is_told_why(
    server: FakeServer, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = error("QS003", "forbidden", "only keys of `default` may do this", 403)
    server.route("PATCH", "/v1/organizations/acme", refused)
    assert main(["organization", "change", "acme", "--tier", "pro"]) == 1
    assert "only keys of `default`" in capsys.readouterr().err
