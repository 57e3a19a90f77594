"""A key says which parameters every session must bind, so that a mistake opens nobody's rows."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.web.served import ADMIN
from tests.web.todos import OWN, STATEMENTS, Todos, error_of, key_with, todos

NOT_BOUND: tuple[tuple[Any, int], ...] = (
    (None, 400),
    ({}, 400),
    ({"bind": None}, 400),
    ({"bind": {}}, 400),
    ({"bind": {"id": 1}}, 400),
    ({"bind": {"user": None}}, 400),
    ({"bind": {"user": None}, "allow_null": False}, 400),
    ({"bind": {"user": None}, "allow_null": "yes"}, 400),
    ({"bind": {"User": OWN}}, 400),
    ({"allow_null": True}, 400),
    ({"bind": {"user": OWN}}, 201),
    ({"bind": {"user": OWN, "id": None}}, 201),
    ({"bind": {"user": None}, "allow_null": True}, 201),
    ({"bind": {"user": 0}}, 201),
)


async def session_status(opened: Todos, body: Any) -> int:
    return (await opened.ask("POST", "/v1/session", body, token=opened.key)).status


async def test_a_session_binds_what_its_key_wants_bound() -> None:
    async with todos() as opened:
        made = await key_with(opened.served, STATEMENTS, databases=["main"], bound=["user"])
        assert made["bound"] == ["user"]
        opened.key = made["key"]
        for body, status in NOT_BOUND:
            assert await session_status(opened, body) == status, body
        session = await opened.session_of({"user": OWN})
        found = await opened.run("everything", token=session)
        assert [row["id"] for row in found["rows"]] == [1, 2]


async def test_a_session_of_any_key_cannot_bind_null_instead_of_parameters() -> None:
    async with todos() as opened:
        assert await session_status(opened, {"bind": None}) == 400
        assert (await opened.ask("POST", "/v1/session", {"bind": None}, token=ADMIN)).status == 400


@pytest.mark.parametrize(
    "body",
    [
        {"statements": STATEMENTS, "bound": ["nobody"]},
        {"statements": STATEMENTS, "bound": "user"},
        {"statements": STATEMENTS, "bound": [None]},
        {"bound": ["user"]},
    ],
)
async def test_what_cannot_be_bound_is_refused_when_the_key_is_made(body: Any) -> None:
    async with todos() as opened:
        answer = await opened.ask("POST", "/v1/keys", {"name": "k", **body}, token=ADMIN)
        assert (answer.status, error_of(answer)["code"]) == (400, "QS001")


async def test_a_key_that_is_changed_ends_sessions_that_lack_a_parameter() -> None:
    async with todos() as opened:
        address = f"/v1/keys/{opened.key_id}"
        unbound = await opened.session_of({"id": 1})

        async def statuses() -> list[int]:
            asked = [await opened.run("count", token=each) for each in (unbound, opened.session)]
            return [each["status"] for each in asked]

        assert await statuses() == [200, 200]
        changed = await opened.served.admin("PATCH", address, {"bound": ["user"]})
        assert changed["bound"] == ["user"]
        assert await statuses() == [401, 200]
        without = {name: sql for name, sql in STATEMENTS.items() if ":user" not in sql}
        lost = await opened.ask("PATCH", address, {"statements": without}, token=ADMIN)
        assert lost.status == 400
        for wrong in (["nobody"], "user"):
            answer = await opened.ask("PATCH", address, {"bound": wrong}, token=ADMIN)
            assert answer.status == 400
        rotated = await opened.served.admin("POST", f"{address}/rotate", {"grace_seconds": 60})
        assert rotated["bound"] == ["user"]
        opened.key = rotated["key"]
        assert await session_status(opened, {}) == 400
        both = {"statements": without, "bound": []}
        record = await opened.served.admin("PATCH", f"/v1/keys/{rotated['id']}", both)
        assert (record["bound"], list(record["statements"])) == ([], list(without))
        assert await session_status(opened, {}) == 201


async def test_an_ordinary_key_binds_nothing() -> None:
    async with todos() as opened:
        listed = (await opened.served.admin("GET", "/v1/keys"))["keys"]
        (first,) = [each for each in listed if each["id"] != opened.key_id]
        assert "bound" not in first
        answer = await opened.ask("PATCH", f"/v1/keys/{first['id']}", {"bound": []}, token=ADMIN)
        assert answer.status == 400
        assert "bound" in json.loads(answer.body)["error"]["message"]
