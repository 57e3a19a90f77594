"""COPY over HTTP: the data is the body, in and out, by the parser of the wire."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.http1.serving import Answer, Client
from tests.web.served import ADMIN, Served, message, opened_transaction, query, serving

TABLE = "create table t (id int primary key, n text, at date)"
DATA = b"1\ta\t2024-01-02\n2\t\\N\t\\N\n3\tc\\td\t2024-01-04\n"
FORMATS = {
    "": "text/plain",
    "(format csv, header)": "text/csv",
    "(format binary)": "application/octet-stream",
    "(format csv, delimiter ';', null 'nothing', force_quote *)": "text/csv",
}


@asynccontextmanager
async def shop() -> AsyncIterator[tuple[Served, Client]]:
    async with serving() as served, await served.client() as client:
        assert (await client.ask(query(TABLE))).status == 200
        yield served, client


async def send(
    client: Client, sql: str, data: bytes = b"", token: str = ADMIN, **headers: str
) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    address = f"/v1/copy?{urlencode({'sql': sql})}"
    return await client.ask(message("POST", address, data, token, named))


async def load(client: Client, sql: str, data: bytes, **headers: str) -> dict[str, Any]:
    answer = await send(client, sql, data, **headers)
    found: dict[str, Any] = json.loads(answer.body)
    assert (answer.status, found["success"]) == (200, True), found
    return found


async def read(client: Client, sql: str, token: str = ADMIN, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    address = f"/v1/copy?{urlencode({'sql': sql})}"
    return await client.ask(message("GET", address, None, token, named), "GET")


async def rows(client: Client, sql: str, **headers: str) -> list[Any]:
    answer = json.loads((await client.ask(query(sql, **headers))).body)
    assert answer["success"], answer
    return [list(row.values()) for row in answer["rows"]]


def error_of(answer: Answer, status: int, code: str) -> dict[str, Any]:
    assert answer.status == status, answer.body
    error: dict[str, Any] = json.loads(answer.body)["error"]
    assert error["code"] == code, error
    return error


@pytest.mark.parametrize("options", FORMATS)
async def test_what_goes_out_comes_in(options: str) -> None:
    async with shop() as (_, client):
        assert (await load(client, "-- t\n/* all */ copy t from stdin", DATA))["affected_rows"] == 3
        out = await read(client, f"copy t to stdout {options}")
        assert out.status == 200
        assert dict(out.headers)["content-type"].partition(";")[0] == FORMATS[options]
        before = await rows(client, "select * from t order by id")
        await client.ask(query("delete from t"))
        answer = await load(client, f"copy t from stdin {options}", out.body)
        assert answer.keys() == {"success", "affected_rows", "version", "timings"}
        assert await rows(client, "select * from t order by id") == before


async def test_a_query_is_copied_and_many_rows_are_streamed() -> None:
    async with shop() as (_, client):
        many = b"".join(b"%d\tn%d\t\\N\n" % (each, each) for each in range(5000))
        assert (await load(client, "COPY t FROM STDIN", many))["affected_rows"] == 5000
        out = await read(client, "copy (select id, n from t order by id) to stdout")
        assert out.body == many.replace(b"\t\\N\n", b"\n")
        some = await read(client, "copy t (n) to stdout (format csv, header)")
        assert some.body.startswith(b"n\nn0\n") and some.body.count(b"\n") == 5001
        none = await read(client, "copy (select 1 where false) to stdout (format csv, header)")
        assert none.body == b"?column?\n"


@pytest.mark.parametrize(
    ("data", "options", "code", "where", "column"),
    [
        (b"1\ta\t\\N\nx\tb\t\\N\n", "", "22P02", 'COPY t, line 2, column id: "x"', "id"),
        (b"1\ta\t\\N\n2\tb\t2024-13-01\n", "", "22008",
         'COPY t, line 2, column at: "2024-13-01"', "at"),
        (b"1\ta\t\\N\n1\tb\t\\N\n", "", "23505", "COPY t, line 2", None),
        (b"1\ta\n", "", "22P04", 'COPY t, line 1: "1\ta"', None),
        (b'id,n,at\n1,"a\nb",\nx,,\n', "(format csv, header)", "22P02",
         'COPY t, line 4, column id: "x"', "id"),
        (b'1,"a,', "(format csv)", "22P04", 'COPY t, line 1: "1,"a,"', None),
        (b"\xff\t\n", "", "22021", "COPY t, line 1", None),
        (b"no", "(format binary)", "22P04", "COPY t, line 0", None),
    ],
)  # fmt: skip
async def test_a_bad_row_undoes_all_and_has_line_and_column(
    data: bytes, options: str, code: str, where: str, column: str | None
) -> None:
    async with shop() as (_, client):
        answer = await send(client, f"copy t from stdin {options}", data)
        found = json.loads(answer.body)["error"]
        assert (found["code"], found["where"]) == (code, where)
        if column is not None:
            assert found["column"] == column
        assert await rows(client, "select count(*) from t") == [[0]]


async def test_wrong_statements_say_what_to_send() -> None:
    async with shop() as (_, client):
        for sql, status, code in (
            ("select 1", 400, "QS001"),
            ("", 400, "QS001"),
            ("copy t to stdout", 400, "QS001"),
            ("copy t from '/etc/passwd'", 200, "0A000"),
            ("copy t from stdin (format xml)", 200, "22023"),
            ("copy t from stdin more", 400, "42601"),
            ("copy gone from stdin", 200, "42P01"),
            ("copy t (gone) from stdin", 200, "42703"),
        ):
            error_of(await send(client, sql, DATA), status, code)
        error_of(await read(client, "copy t from stdin"), 400, "QS001")
        error_of(await read(client, "copy gone to stdout"), 200, "42P01")
        error_of(await read(client, "copy (delete from t returning id) to stdout"), 405, "QS007")
        refused = await client.ask(query("copy t from stdin"))
        assert "/v1/copy" in error_of(refused, 200, "0A000")["hint"]
        missing = await client.ask(message("POST", "/v1/copy", DATA))
        error_of(missing, 400, "QS001")


async def test_it_is_a_step_of_an_open_transaction() -> None:
    async with shop() as (_, client):
        name = await opened_transaction(client)
        inside = {"X_Transaction": name}
        assert (await load(client, "copy t from stdin", DATA, **inside))["affected_rows"] == 3
        out = await read(client, "copy (select id from t order by 1) to stdout", **inside)
        assert out.body == b"1\n2\n3\n"
        assert await rows(client, "select count(*) from t") == [[0]]
        await client.ask(query("savepoint s", **inside))
        error_of(await send(client, "copy t from stdin", b"9\n", **inside), 200, "22P04")
        error_of(await send(client, "copy t from stdin", b"", **inside), 200, "25P02")
        await client.ask(query("rollback to s", **inside))
        await load(client, "copy t from stdin", b"4\tx\t\\N\n", **inside)
        keyed = await send(client, "copy t from stdin", b"", **inside, Idempotency_Key="k")
        error_of(keyed, 400, "QS001")
        done = await client.ask(message("POST", f"/v1/transaction/{name}/commit", {}))
        assert done.status == 200, done.body
        assert await rows(client, "select count(*) from t") == [[4]]
        error_of(await send(client, "copy t from stdin", DATA, **inside), 404, "QS030")


async def test_a_transaction_that_only_reads_takes_no_rows() -> None:
    async with shop() as (_, client):
        answer = await client.ask(message("POST", "/v1/transaction/open", {"read_only": True}))
        inside = {"X_Transaction": json.loads(answer.body)["transaction"]["id"]}
        error_of(await send(client, "copy t from stdin", DATA, **inside), 200, "25006")
        assert (await read(client, "copy t to stdout", **inside)).body == b""


async def test_it_is_applied_once_under_an_idempotency_key() -> None:
    async with shop() as (_, client):
        first = await load(client, "copy t from stdin", DATA, Idempotency_Key="k")
        again = await send(client, "copy t from stdin", DATA, Idempotency_Key="k")
        assert dict(again.headers)["idempotency-replayed"] == "true"
        assert json.loads(again.body)["version"] == first["version"]
        other = await send(client, "copy t (id) from stdin", b"9\n", Idempotency_Key="k")
        error_of(other, 422, "QS032")
        assert await rows(client, "select count(*) from t") == [[3]]


async def test_scopes_and_statement_keys_hold() -> None:
    async with shop() as (served, client):
        keys = {}
        wanted: dict[str, dict[str, Any]] = {
            "reads": {"scopes": ["data:read"]},
            "writes": {"scopes": ["data:write"]},
            "named": {"statements": {"all": "select * from t"}},
        }
        for name, fields in wanted.items():
            made = await served.admin("POST", "/v1/keys", {"name": name, **fields})
            keys[name] = made["key"]
        error_of(await send(client, "copy t from stdin", DATA, keys["reads"]), 403, "QS005")
        error_of(await send(client, "copy t from stdin", DATA, keys["named"]), 403, "QS005")
        error_of(await read(client, "copy t to stdout", keys["writes"]), 403, "QS005")
        error_of(await read(client, "copy t to stdout", keys["named"]), 403, "QS005")
        assert (await send(client, "copy t from stdin", DATA, keys["writes"])).status == 200
        assert (await read(client, "copy t to stdout", keys["reads"])).body == DATA
