"""The audit log: each change of the control plane leaves exactly one line, and no secret."""

from __future__ import annotations

import json
import resource
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from qserver.config import load
from qserver.errors import DatabaseUnavailable, InvalidSetting
from qserver.web.description.catalogue import ROUTES
from qserver.web.route import Plane, Route
from qserver.web.service.audit import LINE_BYTES_MAX, AuditLog, line_of, wanted_of
from tests.web.served import ADMIN, Served, message, query, serving

AUDITED = [route for route in ROUTES if route.is_audited]
SECRET = "hush-hush"
FULL = Path("/dev/full")


class Audited:
    """A server with an audit log, and what is there to be changed."""

    def __init__(self, opened: Served, file: Path) -> None:
        self.opened, self.file = opened, file
        self.seen = 0
        self.key = self.session = self.other_session = self.held = ""

    async def make(self) -> None:
        for name in ("other", "third"):
            await self.opened.admin("POST", "/v1/databases", {"name": name})
        await self.opened.admin("POST", "/v1/query", {"sql": "CREATE TABLE t (a int PRIMARY KEY)"})
        made = await self.opened.admin("POST", "/v1/keys", {"name": "k"})
        self.key = made["id"]
        opened = await self.opened.admin("POST", "/v1/session", {})
        self.session = opened["session"]["token"]
        another = await self.opened.admin("POST", "/v1/session", {})
        self.other_session = another["session"]["id"]
        held = await self.opened.admin("POST", "/v1/transaction/open", {})
        self.held = held["transaction"]["id"]
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
        path = path.replace("{session_id}", self.other_session).replace("{id}", self.held)
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


@pytest.mark.half
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


@pytest.mark.half
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


async def test_the_line_of_a_statement_names_its_request_however_that_was_sent(
    tmp_path: Path,
) -> None:
    async with audited(tmp_path, QSERVER_AUDIT_STATEMENTS="1") as found:
        inside = {"X-Transaction": found.held}
        copy, csv = "/v1/copy?sql=COPY%20t%20FROM%20STDIN", {"Content-Type": "text/csv"}
        rows, stream = "/v1/tables/t/rows", {"Accept": "text/event-stream"}
        asked = {"sql": "SELECT a FROM t"}
        ways = (
            message("POST", "/v1/query", asked),
            message("POST", "/v1/query", asked, headers=stream),
            message("POST", "/v1/query", asked, headers=inside),
            message("POST", "/v1/query", asked, headers=inside | stream),
            message("GET", "/v1/query?sql=SELECT%20a%20FROM%20t"),
            message("POST", "/v1/transaction", {"statements": ["SELECT a FROM t"]}),
            message("POST", rows, b"a\n1\n", headers=csv),
            message("GET", rows),
            message("POST", copy, b"2\n"),
            message("POST", copy, b"3\n", headers=inside),
        )
        for way in ways:
            async with await found.opened.client() as client:
                answer = await client.ask(way)
            assert answer.status == 200, (way, answer.body)
            (line,) = found.new_lines()
            assert line["request_id"] == answer.header("x-request-id"), way


def test_a_file_that_cannot_be_opened_and_settings_that_do_not_fit_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="cannot be opened"):
        AuditLog(str(tmp_path / "no" / "folder"))
    with pytest.raises(InvalidSetting, match="there is no audit log"):
        load({"QSERVER_AUDIT_STATEMENTS": "1"})


# --- the file itself -----------------------------------------------------------------------------

ODD = '\n\r\x00\x1b\x7f\x85\x9b\u2028\u2029\u202e\ufeff"\\'
"""What ends a line, or steers a terminal."""


def _in_processes(write: Callable[[int], None], count: int) -> None:
    """Run something in processes of their own, all at once."""
    context = get_context("fork")
    started = [context.Process(target=write, args=(number,)) for number in range(count)]
    for each in started:
        each.start()
    for each in started:
        each.join()
        assert each.exitcode == 0


def test_lines_of_several_processes_stay_whole(tmp_path: Path) -> None:
    file, each_writes = tmp_path / "audit.log", 300

    def write(number: int) -> None:
        log = AuditLog(str(file))
        for at in range(each_writes):
            log.write("control", key_id=f"{number}.{at}", path=str(number) * (at * 13))

    _in_processes(write, 2)
    lines = [json.loads(line) for line in file.read_bytes().decode().split("\n")[:-1]]
    named = {each["key_id"] for each in lines}
    assert len(lines) == len(named) == 2 * each_writes
    assert all(each["path"].strip(each["key_id"][0]) == "" for each in lines)


def test_a_line_that_fits_only_in_part_is_taken_back_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file, most = tmp_path / "audit.log", 1000
    told = tmp_path / "told"

    def write(_: int) -> None:
        log = AuditLog(str(file))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
        done = [log.write("control", action=f"{number:0100}") for number in range(10)]
        text = "\n".join(each.getMessage() for each in caplog.records)
        with pytest.raises(DatabaseUnavailable, match="may be changed"):
            log.check()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        told.write_text(f"{done}\n{text}", encoding="utf-8")
        assert log.write("statement", query="the first that is written again")

    _in_processes(write, 1)
    done, text = told.read_text(encoding="utf-8").split("\n", 1)
    lost = done.count("False")
    lines = [json.loads(line) for line in file.read_text().split("\n")[:-1]]
    kinds = [each["kind"] for each in lines]
    assert kinds.count("control") == 10 - lost and 0 < lost < 10
    assert sum(each.get("lost", 0) for each in lines) == lost
    assert kinds[-2:] == ["audit", "statement"]
    assert all(f"{number:0100}" in text for number in range(10 - lost, 10)), "the log has them"


def test_a_folder_that_is_away_for_a_while_costs_only_the_lines_of_that_time(
    tmp_path: Path,
) -> None:
    folder, away = tmp_path / "logs", tmp_path / "away"
    folder.mkdir()
    log = AuditLog(str(folder / "audit.log"))
    assert log.write("control", action="one")
    folder.rename(away)
    others = []
    for _ in range(3):
        assert not log.write("control", action="two")
        others.append((tmp_path / "other").open("w"))  # may get the number of a closed file
    away.rename(folder)
    assert log.write("control", action="three")
    for each in others:
        each.write("still open")
        each.close()
    lines = [json.loads(line) for line in (folder / "audit.log").read_text().split("\n")[:-1]]
    assert [(each["action"][:5], each.get("lost")) for each in lines] == [
        *(("one", None), ("go on", 3), ("three", None)),
    ]


@pytest.mark.parametrize("size", [1, 20, 1000, 10_000])
def test_a_record_is_one_line_of_a_bounded_length(size: int, tmp_path: Path) -> None:
    asked = {
        "name": ODD * size,
        "scopes": [ODD * size] * size if size < 1000 else [ODD * 1000],
        "limits": {f"{ODD}{number}": number for number in range(size)},
        "statements": {"s": SECRET},
        "tier": {"deep": {"name": SECRET}},
    }
    wanted = wanted_of(json.dumps(asked).encode())
    data = line_of("control", {"path": ODD, "wanted": wanted, "query": ODD * 20})
    assert len(data) <= LINE_BYTES_MAX and data.endswith(b"\n") and data.count(b"\n") == 1
    assert len(data.decode().splitlines()) == 1 and data.decode().rstrip("\n").isprintable()
    line = json.loads(data)
    assert line["kind"] == "control" and line.get("cut") is (None if size == 1 else True)
    if size == 1:
        assert line["wanted"]["name"] == ODD
    assert SECRET.encode() not in data
