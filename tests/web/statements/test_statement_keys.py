"""Keys that can run their statements, and sessions of them with bound parameters."""

from __future__ import annotations

import json
from typing import Any

from qserver.limits import (
    BOUND_BYTES_MAX,
    SESSION_SECONDS,
    STATEMENT_NAME_LENGTH_MAX,
    STATEMENTS_OF_KEY_BYTES_MAX,
    STATEMENTS_OF_KEY_MAX,
)
from tests.web.served import ADMIN, message
from tests.web.todos import OWN, STATEMENTS, Todos, error_of, key_with, todos


async def made(opened: Todos, body: Any, token: str = ADMIN) -> tuple[int, Any]:
    answer = await opened.ask("POST", "/v1/keys", {"name": "k", **body}, token=token)
    return answer.status, json.loads(answer.body)


# --- keys ----------------------------------------------------------------------------------------


async def test_a_key_runs_its_statements_with_parameters_by_name() -> None:
    async with todos() as opened:
        key = opened.key
        found = await opened.run("my_todos", {"user": 7, "done": False}, token=key)
        assert (found["status"], found["success"]) == (200, True)
        assert [row["id"] for row in found["rows"]] == [3, 4]
        assert (await opened.run("count", token=key))["rows"] == [{"n": 4}]
        assert (await opened.run("count", {}, token=key, format="arrays"))["rows"] == [[4]]
        added = await opened.run("add", {"id": 9, "user": 1, "title": "x"}, token=key)
        assert (added["rows"], added["affected_rows"]) == ([{"id": 9}], 1)
        lacking = await opened.run("my_todos", {"user": 7}, token=key)
        assert (lacking["status"], lacking["error"]["message"]) == (
            400,
            "parameter :done was not given",
        )
        for params in ([7, False], "x", {"user": 7, "done": False, "more": 1}):
            assert (await opened.run("my_todos", params, token=key))["status"] == 400


async def test_its_record_shows_the_statements_as_they_are_run_and_no_scope() -> None:
    async with todos() as opened:
        record = await opened.served.admin("GET", f"/v1/keys/{opened.key_id}")
        assert record["scopes"] == [] and record["databases"] == ["main"]
        assert record["statements"]["add"] == STATEMENTS["add"]
        assert record["statements"]["everything"] == (
            'SELECT "todos"."id", "todos"."owner", "todos"."title", "todos"."done" FROM todos'
            " WHERE owner = :user ORDER BY id"
        )
        listed = await opened.served.admin("GET", "/v1/keys")
        limited = {each["id"] for each in listed["keys"] if "statements" in each}
        assert limited == {opened.key_id} and len(listed["keys"]) == 2


async def test_a_column_that_is_added_later_is_not_shown() -> None:
    async with todos() as opened:
        before = await opened.run("everything")
        await opened.served.admin(
            "POST", "/v1/query", {"sql": "ALTER TABLE todos ADD note TEXT DEFAULT 'secret'"}
        )
        after = await opened.run("everything")
        assert after["columns"] == ["id", "owner", "title", "done"]
        assert after["rows"] == before["rows"]


async def test_a_table_that_changes_gives_the_ordinary_error() -> None:
    async with todos() as opened:
        for sql, code in (
            ("ALTER TABLE todos RENAME owner TO who", "42703"),
            ("DROP TABLE todos", "42P01"),
        ):
            await opened.served.admin("POST", "/v1/query", {"sql": sql})
            found = await opened.run("everything")
            assert (found["status"], found["error"]["code"]) == (200, code)
        assert await opened.served.admin("GET", f"/v1/keys/{opened.key_id}")


NOT_GOOD: tuple[tuple[dict[str, str], str], ...] = (
    ({}, "at least one"),
    ({"a b": "SELECT 1"}, "cannot be the name"),
    ({"": "SELECT 1"}, "cannot be the name"),
    ({"а": "SELECT 1"}, "cannot be the name"),  # a Cyrillic letter
    ({"x" * (STATEMENT_NAME_LENGTH_MAX + 1): "SELECT 1"}, "cannot be the name"),
    ({"a": "SELEC 1"}, "the statement 'a' is not good in the database 'main': syntax error"),
    ({"a": "SELECT 1 FROM nowhere"}, 'relation "nowhere" does not exist'),
    ({"a": "SELECT id FROM todos WHERE id = $1"}, "parameters with names"),
    ({"a": "SELECT 1; SELECT 2"}, "more than one"),
    ({"a": "DROP TABLE todos"}, "can be kept"),
    ({"a": "BEGIN"}, "can be kept"),
    ({"a": "EXPLAIN SELECT 1"}, "can be kept"),
    ({f"s{n}": "SELECT 1" for n in range(STATEMENTS_OF_KEY_MAX + 1)}, "at most"),
)


async def test_what_is_no_good_statement_is_refused() -> None:
    async with todos() as opened:
        for statements, says in NOT_GOOD:
            status, body = await made(opened, {"statements": statements})
            assert (status, says in body["error"]["message"]) == (400, True), body
            change = {"statements": statements}
            answer = await opened.ask("PATCH", f"/v1/keys/{opened.key_id}", change, token=ADMIN)
            assert answer.status == 400
        assert (await opened.run("count"))["success"]


async def test_statements_that_are_too_long_are_413() -> None:
    async with todos() as opened:
        long = {"a": f"SELECT '{'x' * STATEMENTS_OF_KEY_BYTES_MAX}'"}
        assert (await made(opened, {"statements": long}))[0] == 413


async def test_scopes_beside_statements_are_refused() -> None:
    async with todos() as opened:
        both = {"statements": {"a": "SELECT 1"}, "scopes": ["data:read"]}
        assert (await made(opened, both))[0] == 400


async def test_the_maker_holds_the_scopes_that_the_statements_need() -> None:
    async with todos() as opened:
        reads, writes = {"a": "SELECT 1"}, {"a": "DELETE FROM todos"}
        draws = {"a": "SELECT nextval('s')"}
        await opened.served.admin("POST", "/v1/query", {"sql": "CREATE SEQUENCE s"})
        for scopes, allowed in (
            (["keys", "data:read"], [reads]),
            (["keys", "data:write"], [writes, draws]),
            (["keys", "data:read", "data:write"], [reads, writes, draws]),
            (["keys", "schema"], []),
            (["data:read", "data:write"], []),
        ):
            maker = await opened.served.admin("POST", "/v1/keys", {"name": "m", "scopes": scopes})
            for statements in (reads, writes, draws):
                status, _ = await made(opened, {"statements": statements}, maker["key"])
                assert status == (201 if statements in allowed else 403), (scopes, statements)


async def test_a_maker_without_data_scopes_learns_nothing_of_the_tables() -> None:
    async with todos() as opened:
        maker = await opened.served.admin("POST", "/v1/keys", {"name": "m", "scopes": ["keys"]})
        told = [
            (await made(opened, {"statements": {"a": sql}}, maker["key"]))[1]["error"]["message"]
            for sql in ("SELECT 1 FROM todos", "SELECT 1 FROM nowhere")
        ]
        assert told[0] == told[1]


async def test_a_statement_is_checked_in_every_database_named() -> None:
    async with todos() as opened:
        await opened.served.admin("POST", "/v1/databases", {"name": "second"})
        both = ["main", "second"]
        status, body = await made(opened, {"statements": STATEMENTS, "databases": both})
        assert status == 400 and "'second'" in body["error"]["message"]
        sql = "CREATE TABLE todos (id INTEGER PRIMARY KEY, owner INTEGER, title TEXT, more TEXT)"
        await opened.served.admin("POST", "/v1/query", {"sql": sql, "database": "second"})
        status, body = await made(
            opened, {"statements": {"a": "SELECT * FROM todos"}, "databases": both}
        )
        assert status == 400 and "not the same" in body["error"]["message"]
        status, body = await made(
            opened, {"statements": {"a": "SELECT id FROM todos"}, "databases": both}
        )
        assert status == 201
        key = body["key"]
        assert len((await opened.run("a", token=key))["rows"]) == 4
        assert (await opened.run("a", token=key, database="second"))["rows"] == []


async def test_without_databases_it_is_for_the_default_one() -> None:
    async with todos() as opened:
        await opened.served.admin("POST", "/v1/databases", {"name": "second"})
        status, body = await made(opened, {"statements": {"a": "SELECT 1 AS x"}})
        assert (status, body["databases"]) == (201, ["main"])
        found = await opened.run("a", token=body["key"], database="second")
        assert found["status"] == 403


async def test_patch_changes_the_statements_but_never_the_kind_of_key() -> None:
    async with todos() as opened:
        path = f"/v1/keys/{opened.key_id}"
        changed = await opened.served.admin("PATCH", path, {"statements": {"one": "SELECT 1 AS x"}})
        assert changed["statements"] == {"one": "SELECT 1 AS x"}
        assert (await opened.run("one", token=opened.key))["rows"] == [{"x": 1}]
        assert (await opened.run("count", token=opened.key))["status"] == 403
        renamed = await opened.served.admin("PATCH", path, {"name": "n", "statements": None})
        assert (renamed["name"], renamed["statements"]) == ("n", {"one": "SELECT 1 AS x"})
        not_allowed: tuple[Any, ...] = ({"scopes": ["data:read"]}, {"statements": {}})
        for change in not_allowed:
            assert (await opened.ask("PATCH", path, change, token=ADMIN)).status == 400
        ordinary = await opened.served.admin("POST", "/v1/keys", {"name": "o"})
        body = {"statements": {"a": "SELECT 1"}}
        answer = await opened.ask("PATCH", f"/v1/keys/{ordinary['id']}", body, token=ADMIN)
        assert answer.status == 400


async def test_patch_needs_the_scopes_of_the_new_statements() -> None:
    async with todos() as opened:
        reader = await opened.served.admin(
            "POST", "/v1/keys", {"name": "r", "scopes": ["keys", "data:read"]}
        )
        _, own = await made(opened, {"statements": {"a": "SELECT 1"}}, reader["key"])
        path = f"/v1/keys/{own['id']}"
        writes = {"statements": {"a": "DELETE FROM todos"}}
        assert (await opened.ask("PATCH", path, writes, token=reader["key"])).status == 403
        assert (await opened.ask("PATCH", path, writes, token=ADMIN)).status == 200
        for body in ({"name": "x"}, {"statements": {"a": "SELECT 1"}}):
            assert (await opened.ask("PATCH", path, body, token=reader["key"])).status == 403
        rotate = await opened.ask("POST", f"{path}/rotate", token=reader["key"])
        assert rotate.status == 403


async def test_rotation_keeps_the_statements() -> None:
    async with todos() as opened:
        rotated = await opened.served.admin("POST", f"/v1/keys/{opened.key_id}/rotate")
        assert (await opened.run("count", token=rotated["key"]))["rows"] == [{"n": 4}]
        assert (await opened.run("count", token=opened.key))["status"] == 401
        sent = {"sql": "SELECT 1"}
        assert (await opened.ask("POST", "/v1/query", sent, token=rotated["key"])).status == 403


# --- sessions ------------------------------------------------------------------------------------


async def test_a_session_binds_parameters() -> None:
    async with todos() as opened:
        found = await opened.run("my_todos", {"done": False})
        assert [row["id"] for row in found["rows"]] == [1, 2]
        assert (await opened.run("count"))["rows"] == [{"n": 4}]
        assert (await opened.run("add", {"id": 9, "title": "x"}))["affected_rows"] == 1
        assert (await opened.run("finish", {"id": 3}))["affected_rows"] == 0
        assert (await opened.run("finish", {"id": 9}))["affected_rows"] == 1
        for user in (OWN, 7, None):
            refused = await opened.run("my_todos", {"done": False, "user": user})
            assert (refused["status"], refused["error"]["code"]) == (403, "QS005")


async def test_a_session_without_bind_leaves_the_parameters_free() -> None:
    async with todos() as opened:
        token = await opened.session_of()
        found = await opened.run("everything", {"user": 7}, token=token)
        assert [row["id"] for row in found["rows"]] == [3, 4]


async def test_bound_values_of_every_kind_arrive_as_they_were_sent() -> None:
    async with todos() as opened:
        statements = {
            "n": "SELECT :v::numeric AS v",
            "j": "SELECT :v::jsonb AS v",
            "a": "SELECT :v::int[] AS v",
            "b": "SELECT :v::boolean AS v",
            "t": "SELECT :v::text AS v",
        }
        key = (await key_with(opened.served, statements))["key"]
        for name, value, shown in (
            ("n", 1.25, "1.25"),
            ("n", 12345678901234567890, "12345678901234567890"),
            ("j", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}),
            ("a", [1, 2], [1, 2]),
            ("b", True, True),
            ("t", None, None),
            ("t", "ünïcode '\"\\ \0"[:-1], "ünïcode '\"\\ "),
        ):
            answer = await opened.ask("POST", "/v1/session", {"bind": {"v": value}}, token=key)
            session = json.loads(answer.body)["session"]
            assert session["bind"] == {"v": value}
            found = await opened.run(name, token=session["token"])
            assert found["rows"] == [{"v": shown}], name


async def test_what_cannot_be_bound_is_refused() -> None:
    async with todos() as opened:
        for bind in (
            {"nobody": 1},
            {"user": 42, "User": 42},
            {"user": "x" * BOUND_BYTES_MAX},
            [42],
            "user",
        ):
            answer = await opened.ask("POST", "/v1/session", {"bind": bind}, token=opened.key)
            assert answer.status == 400, bind
        answer = await opened.ask("POST", "/v1/session", {"bind": {"user": 1}}, token=ADMIN)
        assert answer.status == 400 and "limited to statements" in error_of(answer)["message"]
        scoped = {"scopes": ["data:read"]}
        assert (await opened.ask("POST", "/v1/session", scoped, token=opened.key)).status == 400


async def test_a_bound_session_makes_no_session_lives_a_day_and_ends() -> None:
    async with todos() as opened:
        for body in ({}, {"bind": {"user": 7}}, {"database": "main"}):
            assert (await opened.ask("POST", "/v1/session", body)).status == 403
        refreshed = json.loads((await opened.ask("POST", "/v1/session/refresh")).body)["session"]
        assert refreshed["bind"] == {"user": OWN} and refreshed["scopes"] == []
        assert (await opened.run("everything"))["rows"][0]["owner"] == OWN
        opened.served.clock[0] += 2 * SESSION_SECONDS + 1
        assert (await opened.run("count"))["status"] == 401
        opened.session = await opened.session_of({"user": 7})
        assert (await opened.ask("DELETE", "/v1/session")).status == 204
        assert (await opened.run("count"))["status"] == 401


async def test_a_session_ends_with_its_key() -> None:
    async with todos() as opened:
        await opened.served.admin("DELETE", f"/v1/keys/{opened.key_id}")
        assert (await opened.run("count"))["status"] == 401


async def test_sessions_follow_a_change_of_the_statements() -> None:
    async with todos() as opened:
        path = f"/v1/keys/{opened.key_id}"
        kept = {"mine": "SELECT id FROM todos WHERE owner = :user", "other": "SELECT 1 AS x"}
        await opened.served.admin("PATCH", path, {"statements": kept})
        assert (await opened.run("mine"))["rows"] == [{"id": 1}, {"id": 2}]
        assert (await opened.run("my_todos", {"done": False}))["status"] == 403
        renamed = {"mine": "SELECT id FROM todos WHERE owner = :owner"}
        await opened.served.admin("PATCH", path, {"statements": renamed})
        for params in (None, {"owner": 7}, {"user": 7}):
            found = await opened.run("mine", params)
            assert (found["status"], "no session" in found["error"]["message"]) == (401, True)
        await opened.served.admin("PATCH", path, {"statements": kept})
        assert (await opened.run("mine"))["status"] == 401


async def test_a_session_whose_parameters_no_statement_has_is_refused() -> None:
    async with todos() as opened:
        path = f"/v1/keys/{opened.key_id}"
        other = {"other": "SELECT id FROM todos WHERE owner = :owner"}
        await opened.served.admin("PATCH", path, {"statements": other})
        found = await opened.run("other", {"owner": 7})
        assert (found["status"], "have changed" in found["error"]["message"]) == (401, True)


# --- transactions and streams --------------------------------------------------------------------


async def transaction(opened: Todos, statements: Any, **more: Any) -> tuple[int, Any]:
    body = {"statements": statements, **more}
    answer = await opened.ask("POST", "/v1/transaction", body)
    return answer.status, json.loads(answer.body)


async def test_named_statements_run_together_or_not_at_all() -> None:
    async with todos() as opened:
        add = {"statement": "add", "params": {"id": 8, "title": "x"}}
        status, body = await transaction(opened, [add, {"statement": "everything"}])
        assert (status, body["affected_rows"]) == (200, 1)
        assert [row["id"] for row in body["results"][1]["rows"]] == [1, 2, 8]
        status, body = await transaction(
            opened, [{"statement": "add", "params": {"id": 9, "title": "y"}}, add], format="arrays"
        )
        assert (status, body["error"]["code"], body["error"]["statement"]) == (200, "23505", 1)
        assert (await opened.run("count"))["rows"] == [{"n": 5}]
        many = [{"statement": "finish", "params": {"id": n}} for n in range(1000)]
        status, body = await transaction(opened, many)
        assert (status, body["affected_rows"]) == (200, 3)
        assert (await transaction(opened, [*many, many[0]]))[0] == 400
        long = [
            {"statement": "add", "params": {"id": n, "title": "z" * 90 + str(n)}}
            for n in range(100, 1000)
        ]
        status, body = await transaction(opened, long, timeout_ms=30_000)
        assert (status, body["affected_rows"]) == (200, 900)


OTHERS: tuple[tuple[Any, int], ...] = (
    (["SELECT 1"], 403),
    ([{"sql": "SELECT 1"}], 403),
    ([{"statement": "count", "sql": "SELECT 1"}], 403),
    ([{"statement": "count"}, {"statement": "nothing"}], 403),
    ([{"statement": "everything", "params": {"user": 7}}], 403),
    ([{"statement": "count", "more": 1}], 400),
    ([{"params": {}}], 400),
    ([{"statement": 1}], 400),
    ([["count"]], 400),
    ([None], 400),
    ([], 400),
    ({"statement": "count"}, 400),
    ("count", 400),
    (None, 400),
)


async def test_other_statements_in_a_transaction_are_refused() -> None:
    async with todos() as opened:
        for statements, status in OTHERS:
            answered, body = await transaction(opened, statements)
            assert (answered, body["success"], body["results"]) == (status, False, []), statements


async def test_statements_are_streamed() -> None:
    async with todos() as opened:
        await opened.served.admin(
            "PATCH",
            f"/v1/keys/{opened.key_id}",
            {"statements": {**STATEMENTS, "flow": f"/*+ STREAM */ {STATEMENTS['everything']}"}},
        )
        plain = {"statement": "everything"}
        for body, headers in (
            (plain, {"Accept": "text/event-stream"}),
            ({"statement": "flow"}, {}),
            (plain, {"Accept": "application/x-ndjson"}),
        ):
            answer = await opened.ask("POST", "/v1/query", body, **headers)
            text = answer.body.decode()
            assert answer.status == 200 and text.count('"mine') == 2
            assert '"owner":7' not in text
        status, _ = await transaction(opened, [{"statement": "flow"}])
        assert status == 400


async def test_a_live_query_shows_changes_of_its_own_rows_alone() -> None:
    async with todos() as opened, await opened.served.client() as client:
        body = {"statement": "everything", "live": True, "every_ms": 100}
        await client.stream.send_all(message("POST", "/v1/query", body, opened.session))
        seen = b""

        async def read_until(mark: bytes) -> None:
            nonlocal seen
            while mark not in seen:
                part = await client.stream.receive_some(65536)
                assert part, seen
                seen += part

        await read_until(b"event: ready")
        for owner, title in ((7, "not mine"), (OWN, "new")):
            sql = f"INSERT INTO todos (id, owner, title) VALUES ({owner + 100}, {owner}, '{title}')"
            await opened.served.admin("POST", "/v1/query", {"sql": sql})
        await read_until(b"event: version")
        assert b'"new"' in seen and b"not mine" not in seen and b'"owner":7' not in seen
        change = {"statements": {"everything": "SELECT id FROM todos WHERE owner = :user"}}
        await opened.served.admin("PATCH", f"/v1/keys/{opened.key_id}", change)
        sql = f"INSERT INTO todos (id, owner, title) VALUES (200, {OWN}, 'late')"
        await opened.served.admin("POST", "/v1/query", {"sql": sql})
        await read_until(b"event: error")
        assert b'"late"' not in seen and b"QS005" in seen


async def test_an_ordinary_key_has_no_named_statements() -> None:
    async with todos() as opened:
        sent = message("POST", "/v1/query", {"statement": "count"}, ADMIN)
        answer = await opened.client.ask(sent)
        assert answer.status == 400 and "`statement`" in error_of(answer)["message"]
