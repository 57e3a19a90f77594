"""What somebody tries who holds the token of a bound session: nothing shows another's rows."""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final
from urllib.parse import quote

import pytest
import trio

from qserver.control.records import Grant
from qserver.errors import Forbidden, ProgramLimitExceeded
from qserver.functions.text.strings import character_of
from qserver.query.sql_database import Statement
from qserver.sql.described import Described
from qserver.web.description.catalogue import ROUTES
from qserver.web.description.shapes import QueryRequest
from qserver.web.statements.named import Named, hide_rows
from qserver.web.statements.open_transactions import KINDS
from tests.http1.serving import Answer
from tests.web.served import ADMIN, message
from tests.web.todos import OTHER, OWN, SECRET, STATEMENTS, Todos, error_of, todos

OPEN_ROUTES: Final = {
    ("POST", "/v1/query"),
    ("GET", "/v1/query"),
    ("POST", "/v1/transaction"),
    ("POST", "/v1/session"),
    ("POST", "/v1/session/refresh"),
    ("DELETE", "/v1/session"),
    ("POST", "/v1/transaction/open"),
    ("POST", "/v1/transaction/{id}/commit"),
    ("GET", "/v1/transaction/{id}"),
    ("DELETE", "/v1/transaction/{id}"),
}
"""The routes that are for such a token; any other needs none, or refuses it."""


async def rows_of_all(opened: Todos) -> Any:
    sql = "SELECT id, owner, title, done FROM todos ORDER BY id"
    return (await opened.served.admin("POST", "/v1/query", {"sql": sql}))["rows"]


def shows_nothing(answer: Answer) -> None:
    assert SECRET.encode() not in answer.body and b"hidden" not in answer.body, answer


# --- routes --------------------------------------------------------------------------------------


async def test_every_other_route_refuses_the_key_and_its_sessions() -> None:
    async with todos() as opened:
        before = await rows_of_all(opened)
        for route in ROUTES:
            if route.anonymous or (route.method, route.path) in OPEN_ROUTES:
                continue
            path = route.path
            for name, value in (
                ("{database}", "main"),
                ("{key_id}", opened.key_id),
                ("{name}", "todos"),
            ):
                path = path.replace(name, value)
            path = path.partition("{")[0] + ("x" if "{" in path else "")
            for token in (opened.key, opened.session):
                for query in ("", f"?key={ADMIN}&sql=SELECT+1&database=main"):
                    answer = await opened.ask(
                        route.method, path + query, {"name": "x", "sql": "SELECT 1"}, token=token
                    )
                    assert answer.status == 403, (route.method, route.path, answer)
                    shows_nothing(answer)
        assert await rows_of_all(opened) == before


async def test_the_routes_for_it_are_these_and_no_others() -> None:
    declared = {(each.method, each.path) for each in ROUTES if each.for_statement_keys}
    hot = {("POST", "/v1/query"), ("GET", "/v1/query"), ("POST", "/v1/transaction")}
    assert declared | hot | set(KINDS) == OPEN_ROUTES


async def test_other_methods_and_paths_lead_nowhere() -> None:
    async with todos() as opened:
        for method, path in (
            ("PUT", "/v1/query"),
            ("PATCH", "/v1/query"),
            ("HEAD", "/tables"),
            ("POST", "/v1/query/"),
            ("POST", "//v1/query"),
            ("POST", "/v1/./query"),
            ("POST", "/V1/QUERY"),
            ("POST", "/v1%2fquery"),
            ("POST", "/query?statement=count"),
        ):
            body = {"statement": "everything", "sql": "SELECT * FROM hidden"}
            answer = await opened.ask(method, path, body)
            assert answer.status in (403, 404, 405), (method, path, answer)
            shows_nothing(answer)


async def test_raw_text_is_refused_whatever_it_says() -> None:
    async with todos() as opened:
        for text in ("SELECT * FROM hidden", "everything", STATEMENTS["count"], "", "SELEC"):
            for kind in ("text/plain", "application/json", "text/plain; charset=utf-8"):
                answer = await opened.ask("POST", "/query", text.encode(), Content_Type=kind)
                assert answer.status == 403, (text, kind)


# --- requests ------------------------------------------------------------------------------------

PLAIN: Final = {"statement": "everything"}
REFUSED: Final[tuple[tuple[Any, int], ...]] = (
    ({"sql": "SELECT * FROM hidden"}, 403),
    ({**PLAIN, "sql": "SELECT * FROM hidden"}, 403),
    ({**PLAIN, "sql": None}, 403),
    ({**PLAIN, "dry_run": True}, 403),
    ({**PLAIN, "branch": True}, 403),
    ({**PLAIN, "as_of": 1}, 403),
    ({**PLAIN, "as_of": "2020-01-01T00:00:00Z"}, 403),
    ({**PLAIN, "bind": {"user": OTHER}}, 400),
    ({**PLAIN, "statements": {"x": "SELECT 1"}}, 400),
    ({**PLAIN, "params": {"user": OTHER}}, 403),
    ({**PLAIN, "params": {"user": OWN}}, 403),
    ({**PLAIN, "params": {"user": None}}, 403),
    ({**PLAIN, "params": {"User": OTHER}}, 400),
    ({**PLAIN, "params": {":user": OTHER}}, 400),
    ({**PLAIN, "params": {"user ": OTHER}}, 400),
    ({**PLAIN, "params": {"usеr": OTHER}}, 400),  # with a Cyrillic letter
    ({**PLAIN, "params": {"user\u0000": OTHER}}, 400),
    ({**PLAIN, "params": {"$1": OTHER}}, 400),
    ({**PLAIN, "params": [OTHER]}, 400),
    ({**PLAIN, "params": OTHER}, 400),
    ({**PLAIN, "params": "user"}, 400),
    ({**PLAIN, "database": "control"}, 403),
    ({**PLAIN, "database": "nowhere"}, 403),
    ({**PLAIN, "database": "other"}, 403),
    ({**PLAIN, "database": ""}, 403),
    ({**PLAIN, "database": "../control"}, 403),
    ({**PLAIN, "database": 1}, 400),
    ({"statement": "Everything"}, 403),
    ({"statement": "everything "}, 403),
    ({"statement": "everything;"}, 403),
    ({"statement": "everything -- "}, 403),
    ({"statement": "/*+ STREAM */ everything"}, 403),
    ({"statement": "еverything"}, 403),  # with a Cyrillic letter
    ({"statement": "__class__"}, 403),
    ({"statement": ""}, 403),
    ({"statement": STATEMENTS["everything"]}, 403),
    ({"statement": "information_schema.tables"}, 403),
    ({"statement": ["everything"]}, 400),
    ({"statement": {"sql": "SELECT 1"}}, 400),
    ({"statement": None}, 400),
    ({"Statement": "everything"}, 400),
    ({}, 400),
    ([], 400),
    ("everything", 400),
    (None, 400),
)


async def test_requests_that_want_more_are_refused() -> None:
    async with todos() as opened:
        await opened.served.admin("POST", "/v1/databases", {"name": "other"})
        for sql in ("CREATE TABLE hidden (word TEXT)", f"INSERT INTO hidden VALUES ('{SECRET}')"):
            await opened.served.admin("POST", "/v1/query", {"sql": sql, "database": "other"})
        before = await rows_of_all(opened)
        for body, status in REFUSED:
            for headers in ({}, {"Accept": "text/event-stream"}, {"Idempotency-Key": "k"}):
                answer = await opened.ask("POST", "/v1/query", json.dumps(body).encode(), **headers)
                assert answer.status == status, (body, headers, answer)
                assert b"columns" not in answer.body or b'"columns":[]' in answer.body
                shows_nothing(answer)
        for database in ("other", "control", "nowhere", "db_x"):
            answer = await opened.ask("POST", "/v1/query", PLAIN, X_Database=database)
            assert (answer.status, error_of(answer)["code"]) == (403, "QS005")
        assert await rows_of_all(opened) == before


async def test_get_runs_a_statement_that_only_reads_and_nothing_else() -> None:
    async with todos() as opened:
        for query, status in (
            ("statement=everything", 200),
            ("statement=my_todos&params=" + quote('{"done": false}'), 200),
            ("statement=add&params=" + quote('{"id": 9, "title": "x"}'), 405),
            ("statement=nothing", 403),
            ("sql=SELECT+1", 403),
            ("statement=everything&sql=SELECT+1", 403),
            ("statement=everything&params=" + quote('{"user": 7}'), 403),
            ("statement=everything&params=[7]", 400),
            ("statement=everything&params=" + quote('{},"statement":"count"'), 400),
            ("statement=everything&params=" + quote('{},"transaction":"txn_1"'), 400),
            ("statement=everything&statement=count", 400),
            ("statement=everything&database=nowhere", 403),
        ):
            answer = await opened.ask("GET", f"/v1/query?{query}")
            assert answer.status == status, (query, answer)
            shows_nothing(answer)
            if status == 200:
                found = json.loads(answer.body)
                assert len(found["rows"]) == 2
                assert found["timings"]["exec_us"] <= found["timings"]["total_us"]
        injected = quote('null,"live":true')
        answer = await opened.ask("GET", f"/v1/query?sql=SELECT+1&params={injected}", token=ADMIN)
        assert answer.status == 400
        assert (await opened.ask("HEAD", "/v1/query?statement=everything")).body == b""


async def test_duplicates_in_json_choose_one_reading_for_all_checks() -> None:
    async with todos() as opened:
        for body, status in (
            (b'{"statement":"nothing","statement":"everything"}', 200),
            (b'{"statement":"everything","statement":"nothing"}', 403),
            (b'{"statement":"everything","params":{"user":7},"params":{}}', 200),
            (b'{"statement":"everything","params":{},"params":{"user":7}}', 403),
            (b'{"statement":"everything","params":{"user":7,"user":7}}', 403),
            (b'{"statement":"everything","sql":"SELECT 1","sql":null}', 403),
            (b'{"statement":"everything","params":{"\\u0075ser":7}}', 403),
            (b'{"\\u0073tatement":"everything"}', 200),
            (b'{"statement":"everything"} {"sql":"SELECT 1"}', 400),
        ):
            answer = await opened.ask("POST", "/v1/query", body)
            assert answer.status == status, (body, answer)
            shows_nothing(answer)
            if status == 200:
                found = json.loads(answer.body)["rows"]
                assert {row["owner"] for row in found} == {OWN}


async def test_values_of_other_shapes_change_no_meaning() -> None:
    async with todos() as opened:
        for value in (
            "0 OR owner = 7",
            "false' OR '1'='1",
            [False],
            [[True, False]],
            {"a": 1},
            {"sql": "SELECT 1"},
            10**40,
            1.5,
            "\u202e",
            "x" * 70_000,
            None,
        ):
            found = await opened.run("my_todos", {"done": value})
            ids = [row["id"] for row in found["rows"]]
            assert set(ids) <= {1, 2} and (found["success"] or ids == []), value


def test_whatever_a_route_decodes_is_compared_with_the_grant() -> None:
    sql = STATEMENTS["everything"]
    statements = {"everything": Described(sql, ("user",), False)}
    fields = *("org", "org", "free", "key", "ses"), frozenset[str](), None
    named = Named(Grant(*fields, statements=statements, bound={"user": OWN}))
    named.check(QueryRequest(sql), [Statement(sql, {"user": OWN})])
    for statement in (
        Statement("SELECT 1"),
        Statement(sql + " ", {"user": OWN}),
        Statement(sql, {"user": OTHER}),
        Statement(sql, {"user": None}),
        Statement(sql, {}),
        Statement(sql),
        Statement(sql, [OWN]),
    ):
        with pytest.raises(Forbidden):
            named.check(QueryRequest(sql), [Statement(sql, {"user": OWN}), statement])
    with pytest.raises(Forbidden):
        named.check(QueryRequest(sql, dry_run=True), [Statement(sql, {"user": OWN})])


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0x10FFFF + 1, 0xD800])
def test_an_error_that_is_no_data_error_has_the_value_in_its_detail(number: int) -> None:
    with pytest.raises(ProgramLimitExceeded, match=r"^requested character [a-z ]+$") as caught:
        character_of(number)
    assert str(number) in str(caught.value.detail)
    hide_rows(caught.value)
    assert caught.value.detail is None


async def test_errors_show_no_row_and_no_text() -> None:
    async with todos() as opened:
        for name, params, code in (
            ("number", {"n": 1}, "22P02"),
            ("add", {"id": 3, "title": "x"}, "23505"),
            ("add", {"id": 9, "title": "mine"}, "23505"),
            ("add", {"id": 9, "title": "x" * 100}, "23514"),
            ("add", {"id": 9, "title": None}, "23502"),
            ("add", {"id": "nine", "title": "x"}, "22P02"),
        ):
            found = await opened.run(name, params)
            error = found["error"]
            assert (found["status"], error["code"]) == (200, code)
            assert [error[each] for each in ("detail", "hint", "position")] == [None] * 3
            assert "conflict" not in error
            text = json.dumps(found)
            assert SECRET not in text and "SELECT" not in text
        number = (await opened.run("number", {"n": 1}))["error"]
        assert number["message"] == "invalid text representation"
        streamed = await opened.ask(
            "POST",
            "/v1/query",
            {"statement": "number", "params": {"n": 1}},
            Accept="text/event-stream",
        )
        assert b"event: error" in streamed.body or streamed.status == 200
        assert b"mine" not in streamed.body


async def test_an_unknown_name_and_a_known_one_are_told_apart_by_nothing_else() -> None:
    async with todos() as opened:
        told = []
        for name in ("nothing", "hidden", "todos"):
            answer = await opened.ask("POST", "/v1/query", {"statement": name})
            told.append(error_of(answer)["message"].replace(name, "…"))
            assert error_of(answer)["hint"] is None and error_of(answer)["detail"] is None
        assert len(set(told)) == 1


# --- while it runs -------------------------------------------------------------------------------


async def test_an_open_transaction_belongs_to_its_session_and_runs_its_statements() -> None:
    async with todos() as opened:
        other = await opened.session_of({"user": OTHER})
        answer = await opened.ask("POST", "/v1/transaction/open")
        name = json.loads(answer.body)["transaction"]["id"]
        inside = {"transaction": name}
        assert (await opened.run("add", {"id": 9, "title": "x"}, **inside))["affected_rows"] == 1
        assert len((await opened.run("everything", **inside))["rows"]) == 3
        assert len((await opened.run("everything"))["rows"]) == 2
        for body in ({"sql": "SELECT 1"}, {"statement": "everything", "params": {"user": OTHER}}):
            for headers in ({}, {"X-Transaction": name}):
                sent = {**body, **({} if headers else inside)}
                assert (await opened.ask("POST", "/v1/query", sent, **headers)).status == 403
        text = await opened.ask("POST", "/query", b"SELECT 1", X_Transaction=name)
        assert text.status == 403
        path = f"/v1/transaction/{name}"
        for token in (other, opened.key, await opened.session_of({"user": OWN})):
            assert (await opened.run("everything", token=token, **inside))["status"] == 404
            for method, where in (("GET", path), ("DELETE", path), ("POST", f"{path}/commit")):
                assert (await opened.ask(method, where, token=token)).status == 404
        assert (await opened.ask("POST", "/v1/transaction/open", {"as_of": 1})).status in (400, 403)
        assert (await opened.ask("POST", f"{path}/commit")).status == 200
        assert len((await opened.run("everything"))["rows"]) == 3


@pytest.mark.half
async def test_a_stream_ends_when_its_key_or_its_statement_goes() -> None:
    statements = {
        "flow": "SELECT n, repeat('x', 500) AS x FROM generate_series(1, 400000) AS s (n)"
    }
    changed = {"flow": "SELECT 1 AS n"}
    more = {**statements, "other": "SELECT 2 AS n"}
    for method, body, ends in (
        ("DELETE", None, True),
        ("PATCH", {"statements": changed}, True),
        ("PATCH", {"statements": more}, False),
    ):
        async with todos() as opened:
            made = await opened.served.admin(
                "POST", "/v1/keys", {"name": "s", "statements": statements}
            )
            async with await opened.served.client() as client:
                sent = message(
                    "POST",
                    "/v1/query",
                    {"statement": "flow"},
                    made["key"],
                    {"Accept": "text/event-stream"},
                )
                await client.stream.send_all(sent)
                received = await client.stream.receive_some(4096)
                assert b"event: columns" in received
                await opened.served.admin(method, f"/v1/keys/{made['id']}", body)
                rest = b""
                with trio.fail_after(240):
                    while b"event: error" not in rest and (ends or len(rest) < 8_000_000):
                        part = await client.stream.receive_some(1 << 20)
                        assert part, "it ends without an error"
                        rest = rest[-100:] + part if ends else rest + part
                assert (b"event: error" in rest) == ends


# --- everything at random ------------------------------------------------------------------------

NAMES: Final = (*STATEMENTS, "", "COUNT", "my_todos;", "hidden", "count--")
PARAMETERS: Final = ("user", "done", "id", "title", "n", "USER", "user2", ":user", "", "sql")
VALUES: Final[tuple[Any, ...]] = (
    *(OWN, OTHER, 1, 3, 0, -1, True, False, None, "", "x", SECRET, "7", "true", 1.5, 10**30),
    *([], [OTHER], {}, {"user": OTHER}, "' OR 1=1 --", "mine"),
)
EXTRAS: Final[tuple[tuple[str, Any], ...]] = (
    *(("format", "arrays"), ("format", "objects"), ("max_rows", 1), ("timeout_ms", 5000)),
    *(("max_retries", 0), ("database", "main"), ("database", "other"), ("sql", "SELECT 1")),
    *(("dry_run", True), ("as_of", 1), ("branch", True), ("bind", {})),
)
HEADERS: Final[tuple[dict[str, str], ...]] = (
    *({}, {}, {}, {"X-Database": "main"}, {"X-Database": "other"}, {"X-Transaction": "txn_1"}),
    *({"Accept": "application/x-ndjson"}, {"Origin": "https://evil.example.com"}),
)


def some_request(chance: Random) -> dict[str, Any]:
    name = chance.choice(NAMES)
    text = STATEMENTS.get(name, "")
    wanted = [each for each in PARAMETERS if f":{each}" in text and each not in ("", "user")]
    params: dict[str, Any] = {each: chance.choice(VALUES) for each in wanted}
    if chance.random() < 0.3:
        params[chance.choice(PARAMETERS)] = chance.choice(VALUES)
    if params and chance.random() < 0.1:
        params.pop(chance.choice(list(params)))
    body: dict[str, Any] = {"statement": name, "params": params}
    if chance.random() < 0.4:
        body.update([chance.choice(EXTRAS)])
    return body


def is_well_formed(body: dict[str, Any], headers: dict[str, str]) -> bool:
    text = STATEMENTS.get(body["statement"])
    if text is None or (headers.get("X-Database", "main") != "main" and "database" not in body):
        return False
    wanted = {each for each in ("done", "id", "title", "n") if f":{each}" in text}
    allowed = {"statement", "params", "format", "max_rows", "timeout_ms", "max_retries", "database"}
    return (
        body["params"].keys() == wanted
        and allowed.issuperset(body)
        and body.get("database", "main") == "main"
    )


@pytest.mark.long
async def test_at_random_a_bound_session_sees_its_statement_and_nothing_else() -> None:
    chance = Random(20)
    async with todos() as opened:
        strangers = [row for row in await rows_of_all(opened) if row["owner"] != OWN]
        answered = 0
        for _ in range(400):
            body, headers = some_request(chance), chance.choice(HEADERS)
            if "X-Transaction" in headers and chance.random() < 0.9:
                headers = {}
            reads = STATEMENTS.get(body["statement"], "").startswith("SELECT")
            answer = await opened.ask("POST", "/v1/query", body, **headers)
            shown = answer.body
            if body["params"].get("title") != SECRET and body["params"].get("title") != "mine":
                assert SECRET.encode() not in shown, (body, answer)
            if not is_well_formed(body, headers):
                lines = "Accept" in headers and answer.status == 200
                assert lines or not json.loads(shown)["success"], (body, headers, answer)
            elif reads and "X-Transaction" not in headers and "Accept" not in headers:
                sent = {**body, "sql": STATEMENTS[body["statement"]]}
                del sent["statement"]
                if ":user" in sent["sql"]:
                    sent["params"] = {**sent["params"], "user": OWN}
                expected = json.loads(
                    (await opened.client.ask(message("POST", "/v1/query", sent))).body
                )
                found = json.loads(shown)
                for each in ("success", "columns", "rows", "affected_rows"):
                    assert found[each] == expected[each], (body, answer)
                answered += found["success"]
            left = [row for row in await rows_of_all(opened) if row["owner"] != OWN]
            assert left == strangers, body
        assert answered > 20


async def test_a_page_of_another_origin_may_call_with_the_token_only() -> None:
    async with todos() as opened:
        origin = {"Origin": "https://app.example.com"}
        asked = {**origin, "Access-Control-Request-Method": "POST"}
        preflight = await opened.ask("OPTIONS", "/v1/query", **asked)
        assert preflight.status == 204
        assert "authorization" in (preflight.header("access-control-allow-headers") or "").lower()
        answer = await opened.ask("POST", "/v1/query", PLAIN, **origin)
        assert answer.header("access-control-allow-origin") == "*"
        for path in (f"/v1/query?key={opened.session}", f"/v1/query?access_token={quote('x')}"):
            sent = message("POST", path, PLAIN, "", {"Cookie": f"token={opened.session}"})
            refused = await opened.client.ask(sent)
            assert refused.status == 401
