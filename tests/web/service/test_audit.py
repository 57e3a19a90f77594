"""The audit log: each change of the control plane leaves exactly one line, and no secret."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from qserver.config import load
from qserver.errors import InvalidSetting
from qserver.web.description.catalogue import ROUTES
from qserver.web.route import Plane, Route
from qserver.web.service.audit import AuditLog
from tests.web.served import ADMIN, Served, message, query, serving

AUDITED = [route for route in ROUTES if route.is_audited]
SECRET = "hush-hush"
FULL = Path("/dev/full")


class Audited:
    """A server with an audit log, and what is there to be changed."""

    def __init__(self, opened: Served, file: Path) -> None:
        self.opened, self.file = opened, file
        self.seen = 0
        self.key = self.session = ""

    async def make(self) -> None:
        for name in ("other", "third"):
            await self.opened.admin("POST", "/v1/databases", {"name": name})
        await self.opened.admin("POST", "/v1/query", {"sql": "CREATE TABLE t (a int PRIMARY KEY)"})
        made = await self.opened.admin("POST", "/v1/keys", {"name": "k"})
        self.key = made["id"]
        opened = await self.opened.admin("POST", "/v1/session", {})
        self.session = opened["session"]["token"]
        self.new_lines()

    def new_lines(self) -> list[dict[str, Any]]:
        lines = self.file.read_text(encoding="utf-8").splitlines()
        new, self.seen = lines[self.seen :], len(lines)
        return [json.loads(line) for line in new]

    def request_of(self, route: Route, token: str = ADMIN, database: str = "other") -> bytes:
        bodies: dict[str, Any] = {
            "POST /v1/signup": {"organization": f"acme-{SECRET}"[:8]},
            "POST /v1/session": {"scopes": ["admin", "data:read", "databases"]},
            "POST /v1/databases": {"name": "new"},
            "PATCH /v1/databases/{database}": {"history": "1h"},
            "POST /v1/databases/{database}/restore": {"as_of": 0},
            "POST /v1/keys": {"name": "n", "statements": {"s": f"SELECT '{SECRET}'"}},
            "PATCH /v1/keys/{key_id}": {"name": "renamed"},
            "POST /v1/keys/{key_id}/rotate": {"grace_seconds": 5},
            "PATCH /v1/organizations/{organization}": {"limits": {"databases": 100}},
        }
        name = f"{route.method} {route.path}"
        path = route.path.replace("{key_id}", self.key).replace("{organization}", "default")
        database = "third" if name == "DELETE /v1/databases/{database}" else database
        path = path.replace("{database}", database)
        if route.path.startswith("/v1/session/") or name == "DELETE /v1/session":
            token = self.session if token == ADMIN else token
        return message(route.method, path, bodies.get(name), token)

    async def ask(self, sent: bytes, method: str = "POST") -> int:
        async with await self.opened.client() as client:
            return (await client.ask(sent, method)).status


@asynccontextmanager
async def audited(folder: Path, **variables: str) -> AsyncIterator[Audited]:
    file = folder / "audit.log"
    async with serving(QSERVER_AUDIT=str(file), **variables) as opened:
        found = Audited(opened, file)
        await found.make()
        yield found


def in_order(routes: list[Route]) -> list[Route]:
    """What ends the session, the key or everything comes last."""
    late = ("DELETE /v1/session", "DELETE /v1/keys/{key_id}", "POST /admin/reset")
    names = {id(route): f"{route.method} {route.path}" for route in routes}
    early = [route for route in routes if names[id(route)] not in late]
    return early + [route for name in late for route in routes if names[id(route)] == name]


def test_every_route_that_is_not_of_the_data_plane_and_changes_something_is_audited() -> None:
    for route in ROUTES:
        changes = route.method not in ("GET", "HEAD", "OPTIONS") and route.plane is not Plane.DATA
        assert route.is_audited is changes
    assert len(AUDITED) >= 15


async def test_each_change_leaves_exactly_one_line(tmp_path: Path) -> None:
    async with audited(tmp_path) as found:
        for route in in_order(AUDITED):
            status = await found.ask(found.request_of(route), route.method)
            (line,) = found.new_lines()
            assert (line["kind"], line["action"]) == ("control", f"{route.method} {route.path}")
            assert (line["status"], line["outcome"]) == (status, "done"), line
            assert line["address"] == "127.0.0.1" and line["request_id"]
            if not route.anonymous:
                assert line["organization"] == "default" and line["key_id"].startswith("key_")
    text = found.file.read_text(encoding="utf-8")
    assert SECRET not in text and "svc_" not in text and ADMIN not in text
    assert found.file.stat().st_mode & 0o777 == 0o600


async def test_a_change_that_is_refused_to_a_key_leaves_one_line(tmp_path: Path) -> None:
    async with audited(tmp_path) as found:
        made = await found.opened.admin("POST", "/v1/keys", {"name": "r", "scopes": ["data:read"]})
        found.new_lines()
        for route in in_order(AUDITED):
            if route.anonymous or route.path.startswith("/v1/session"):
                continue
            status = await found.ask(found.request_of(route, made["key"], "none"), route.method)
            (line,) = found.new_lines()
            assert status in (400, 403, 404) and line["status"] == status, (route, line)
            assert line["outcome"] == "refused" and line["code"] and line["key_id"] == made["id"]


async def test_reading_and_asking_without_a_key_leave_no_line(tmp_path: Path) -> None:
    async with audited(tmp_path) as found:
        for route in ROUTES:
            if route.plane is Plane.CONTROL and route.method == "GET":
                await found.ask(found.request_of(route), "GET")
        for route in AUDITED:
            if not route.anonymous:
                assert await found.ask(found.request_of(route, "svc_k_" + "0" * 20)) == 401
        assert found.new_lines() == []


async def test_the_log_is_appended_to_after_a_restart_and_a_rotation(tmp_path: Path) -> None:
    for _ in range(2):
        async with audited(tmp_path) as found:
            before = found.seen
            found.file.rename(tmp_path / "audit.log.1")
            await found.opened.admin("POST", "/v1/databases", {"name": "more"})
            found.seen = 0
            (line,) = found.new_lines()
            assert line["wanted"] == {"name": "more"} and line["id"].startswith("db_")
            (tmp_path / "audit.log.1").replace(tmp_path / "kept.log")
        kept = (tmp_path / "kept.log").read_text(encoding="utf-8").splitlines()
        assert len(kept) == before
        found.file.write_text("".join(f"{each}\n" for each in kept), encoding="utf-8")


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")
async def test_nothing_may_be_changed_while_the_log_cannot_be_written(tmp_path: Path) -> None:
    file = FULL
    async with serving(QSERVER_AUDIT=str(file)) as opened:
        await opened.admin("POST", "/v1/databases", {"name": "one"})
        found = Audited(opened, file)
        # The file is there again, but every write fails.
        assert await found.ask(message("POST", "/v1/databases", {"name": "two"})) == 503
        assert await found.ask(query("SELECT 1")) == 200


async def test_statements_are_audited_if_that_is_set(tmp_path: Path) -> None:
    async with audited(tmp_path, QSERVER_AUDIT_STATEMENTS="1") as found:
        sql = f"SELECT 1 WHERE '{SECRET}' = $1"
        for _ in range(3):
            await found.opened.admin("POST", "/v1/query", {"sql": sql, "params": [SECRET]})
        lines = found.new_lines()
        assert [line["kind"] for line in lines] == ["statement"] * 3
        assert {line["query"] for line in lines} == {"SELECT $2 WHERE $3 = $1"}
        assert [line["rows"] for line in lines] == [1, 1, 1]
        assert all(line["key_id"].startswith("key_") for line in lines)
    assert SECRET not in found.file.read_text(encoding="utf-8")


def test_a_file_that_cannot_be_opened_and_settings_that_do_not_fit_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be opened"):
        AuditLog(str(tmp_path / "no" / "folder"))
    with pytest.raises(InvalidSetting, match="there is no audit log"):
        load({"QSERVER_AUDIT_STATEMENTS": "1"})
