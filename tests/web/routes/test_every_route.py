"""Every route, from the table of routes: what it does not know, it refuses, in plain words.

unknown fields and parameters     400, and the message names them
texts that cannot be              4xx: a NUL, what is not UTF-8, what is much too long
bodies that are no JSON           4xx, and no message shows an exception of Python
X-Transaction, Idempotency-Key    refused where they would have no effect
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import pytest

from qserver.web.description.catalogue import BODILESS, ROUTES
from qserver.web.route import Route
from tests.http1.serving import Answer
from tests.sampling import sampled
from tests.web.served import Served, message, serving

BODIES: dict[str, Any] = {
    "POST /v1/query": {"sql": "select 1"},
    "POST /sql": {"query": "select 1"},
    "POST /v1/transaction": {"statements": ["select 1"]},
    "POST /v1/signup": {"organization": "acme"},
    "POST /v1/databases": {"name": "other"},
    "PATCH /v1/databases/{database}": {"name": "other"},
    "POST /v1/databases/{database}/restore": {"as_of": 1},
    "POST /v1/keys": {"name": "k"},
    "PATCH /v1/keys/{key_id}": {"name": "k"},
}
"""A body that would be good, for routes that need one."""

PLACES = {"name": "t", "database": "main"}
NOT_JSON = ("POST /query", "POST /v1/tables/{name}/rows", "POST /v1/copy")
HOT = ("POST /v1/query", "POST /query", "POST /v1/transaction")
PYTHON = re.compile(
    rb"codec|recursion|Traceback|msgspec|NoneType|<class|has no attribute|universal-newline"
    rb"|field limit|start byte|continuation byte|surrogate|object at 0x|Exception|Errno"
)
"""Words of Python's own errors."""


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


def address_of(route: Route, key_id: str = "key_0") -> str:
    places = {**PLACES, "id": "txn_0_0", "key_id": key_id}
    return re.sub(r"\{(\w+)\}", lambda found: places.get(found[1], "x"), route.path)


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    async with serving() as opened:
        await opened.admin("POST", "/v1/query", {"sql": "create table t (id int primary key)"})
        yield opened


async def ask(opened: Served, sent: bytes, method: str) -> Answer:
    """On a connection of its own: a server that refuses a head ends the connection."""
    async with await opened.client() as client:
        return await client.ask(sent, method)


def error_in(answer: Answer) -> dict[str, Any]:
    """The error of an answer; some routes have a shape of their own."""
    found = json.loads(answer.body)
    error: dict[str, Any] = found.get("error", found)
    return error


async def test_a_route_refuses_a_field_that_it_does_not_know() -> None:
    async with served() as opened:
        for route in ROUTES:
            if route.method in BODILESS or name_of(route) in NOT_JSON:
                continue
            body = {**BODIES.get(name_of(route), {}), "no_such_field": 1}
            sent = message(route.method, address_of(route), body)
            answer = await ask(opened, sent, route.method)
            assert answer.status == 400, (name_of(route), answer)
            told = error_in(answer)["message"]
            assert "no_such_field" in told, (name_of(route), told)


async def test_a_route_refuses_a_parameter_that_it_does_not_know() -> None:
    async with served() as opened:
        for route in ROUTES:
            if route.anonymous:
                continue
            body = b"select 1" if name_of(route) == "POST /query" else BODIES.get(name_of(route))
            unknown = "max_rows" if name_of(route) in HOT else "no_such"  # others have no effect
            sent = message(route.method, f"{address_of(route)}?{unknown}=1", body)
            answer = await ask(opened, sent, route.method)
            assert answer.status == 400, (name_of(route), answer)


BAD_TEXTS = {"NUL": "%00", "NUL inside": "a%00b", "no UTF-8": "%ff%fe", "long": "x" * 5000}
MISSING = ("42P01", "42703")
"""A name that is not there is an error of SQL, in a 200."""


@pytest.mark.parametrize("kind", BAD_TEXTS)
async def test_a_text_that_cannot_be_is_refused(kind: str) -> None:
    """In each place of a path, and in each parameter."""
    text = BAD_TEXTS[kind]
    async with served() as opened:
        for route in ROUTES:
            if route.anonymous and "{" not in route.path:
                continue
            path = address_of(route)
            addresses = [
                path.replace(place, text, 1)
                for place in re.findall(r"\{\w+\}", route.path)
                for path in [re.sub(r"\{(\w+)\}", _other(place), route.path)]
            ]
            addresses += [
                f"{path}?{each.name}={text}" for each in route.queries if each.type is str
            ]
            for address in addresses:
                body = BODIES.get(name_of(route))
                sent = message(route.method, address, body)
                answer = await ask(opened, sent, route.method)
                assert not PYTHON.search(answer.body), (route.method, address[:80], answer)
                if answer.status == 200 and kind == "long":
                    assert error_in(answer)["code"] in MISSING, (address, answer)
                    continue
                assert 400 <= answer.status < 500, (route.method, address[:80], answer)
        assert opened.reports == []


def _other(kept: str) -> Any:
    """What replaces the places of a path, but for one that is kept."""
    return lambda found: kept if found[0] == kept else PLACES.get(found[1], "x")


@pytest.mark.long
@pytest.mark.parametrize("text", ["\0", "a\0b", "x" * 100_000, "\ud800"])
async def test_a_text_in_a_body_that_cannot_be_is_refused(text: str) -> None:
    """In each field that takes a text, alone or in a list."""
    fields = ("sql", "database", "transaction", "name", "branch_of", "as_of", "organization")
    lists = ("scopes", "databases", "bound", "statements")
    async with served() as opened:
        for route in ROUTES:
            if route.method in BODILESS or name_of(route) in NOT_JSON:
                continue
            for field in (*fields, *lists):
                value = [text] if field in lists else text
                body = {**BODIES.get(name_of(route), {}), field: value}
                sent = message(route.method, address_of(route), json.dumps(body).encode())
                answer = await ask(opened, sent, route.method)
                assert not PYTHON.search(answer.body), (name_of(route), field, answer)
                if answer.status == 200:  # an error of SQL
                    assert field in ("sql", "statements"), (name_of(route), field, answer)
                    assert not json.loads(answer.body)["success"], (name_of(route), answer)
                    continue
                assert 400 <= answer.status < 500, (name_of(route), field, answer)


BAD_BODIES = (
    b"\xff\xfe",
    b"\x00",
    b"nul",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"sql": "\xff"}',
    b'{"sql": "select 1"} {"sql": "select 2"}',
    b'{"sql": "select 1", "params": [' + b"[" * 5000 + b"]" * 5000 + b"]}",
    b'{"sql": "select 1", "params": [1e9999999999]}',
    b'{"a": 1, "a": "\xff"}\n',
    b'{"id": 1}{"id": 2}\n',
    b'{"id": 1, "x": ' + b"[" * 3000 + b"]" * 3000 + b"}\n",
    b'id\n"1\n',
    b"id\n\xff\n",
    b"id\n1\x002\n",
    b'id\n"a"b\n',
    b"[{}, {]",
    b'[{"id": "\xff"}]',
)
TYPES = ("application/json", "application/x-ndjson", "text/csv", "text/plain")


@pytest.mark.long
@pytest.mark.parametrize("media", sampled(TYPES, 2))
async def test_a_body_that_cannot_be_read_is_refused_without_a_word_of_python(media: str) -> None:
    async with served() as opened:
        for route in ROUTES:
            if route.method in BODILESS:
                continue
            for body in BAD_BODIES:
                headers = {"Content-Type": media}
                sent = message(route.method, address_of(route), body, headers=headers)
                answer = await ask(opened, sent, route.method)
                where = (name_of(route), media, body[:40], answer.status, answer.body[:300])
                assert not PYTHON.search(answer.body), where
                if answer.status == 200:  # a CSV may hold any text, and SQL may be wrong
                    assert not json.loads(answer.body)["success"], where
                else:
                    assert 400 <= answer.status < 500, where
        assert opened.reports == []
        found = await opened.admin("POST", "/v1/query", {"sql": "select count(*) as n from t"})
        assert found["rows"] == [{"n": 0}]


async def test_x_transaction_is_honoured_or_refused() -> None:
    """An unknown one is not found where it counts, and `400` where it would have no effect."""
    async with served() as opened:
        for route in ROUTES:
            if route.anonymous:
                continue
            body = b"select 1" if name_of(route) == "POST /query" else BODIES.get(name_of(route))
            headers = {"X-Transaction": "txn_0_0"}
            sent = message(route.method, address_of(route), body, headers=headers)
            answer = await ask(opened, sent, route.method)
            wanted = (404, "QS030") if name_of(route) in HOT else (400, "QS001")
            if route.error is not None:
                wanted = 400, "25000"
            code = error_in(answer)["code"]
            assert (answer.status, code) == wanted, (name_of(route), answer)


async def test_an_idempotency_key_is_honoured_or_refused() -> None:
    async with served() as opened:
        for route in ROUTES:
            if route.method in BODILESS or route.takes_idempotency_key:
                continue
            headers = {"Idempotency-Key": "once"}
            body = BODIES.get(name_of(route))
            sent = message(route.method, address_of(route), body, headers=headers)
            answer = await ask(opened, sent, route.method)
            assert answer.status == 400, (name_of(route), answer)
            assert "Idempotency-Key" in error_in(answer)["message"]


async def test_x_database_names_a_database_wherever_one_is_read() -> None:
    """One that is not there is not found by any route of the data plane."""
    async with served() as opened:
        for route in ROUTES:
            takes = any(each.name == "database" for each in route.queries)
            if not (takes or name_of(route) in (*HOT, "POST /v1/transaction/open")):
                continue
            body = b"select 1" if name_of(route) == "POST /query" else BODIES.get(name_of(route))
            address = address_of(route)
            if route.path == "/v1/query" and route.method == "GET":
                address += "?sql=" + quote("select 1")
            if route.path == "/v1/changes":
                address += "?since=0"
            if route.path == "/v1/copy":
                way = "from stdin" if route.method == "POST" else "to stdout"
                address += "?sql=" + quote(f"copy t {way}")
            if route.path == "/v1/notifications":
                address += "?channel=news"
            sent = message(route.method, address, body, headers={"X-Database": "nowhere"})
            answer = await ask(opened, sent, route.method)
            assert answer.status == 404, (name_of(route), answer)
