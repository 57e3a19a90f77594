"""Slow statements are logged with their plan and without values; all logs may be JSON."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from tests.cli.real_server import KEY, real_server
from tests.web.served import message, serving

SECRET, NUMBER = "hush-hush", 918273


def slow_in(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    found = [re.fullmatch(r"slow statement (\{.*\})", each.getMessage()) for each in caplog.records]
    return [json.loads(each[1]) for each in found if each is not None]


async def test_a_slow_statement_is_logged_with_its_plan_and_without_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with serving(QSERVER_SLOW_MS="0") as opened:

        async def run(sql: str, *params: Any) -> None:
            await opened.admin("POST", "/v1/query", {"sql": sql, "params": list(params) or None})

        await run("CREATE TABLE t (id int PRIMARY KEY, n text)")
        for _ in range(3):
            await run(
                f"SELECT n FROM t WHERE id = {NUMBER} AND n > '{SECRET}' -- {SECRET}\n"
                f" AND n < $1 AND id IN ({NUMBER}, 1) LIMIT {NUMBER}",
                SECRET,
            )
        await run(f"INSERT INTO t VALUES ({NUMBER}, '{SECRET}')")
        await run("UPDATE t SET n = $1 WHERE n LIKE 'hush%'", SECRET)
        lines = slow_in(caplog)
    assert len(lines) == 6
    query = lines[1]
    assert query["query"] == (
        "SELECT n FROM t WHERE id = $2 AND n > $3 AND n < $1 AND id IN ($4, ...) LIMIT $5"
    )
    assert (query["database"], query["rows"]) == ("main", 0)
    assert query["organization"].startswith("org_") and query["database_id"].startswith("db_")
    assert query["ms"] >= query["cpu_ms"] >= 0
    assert query["key_id"].startswith("key_")
    assert len({line["request_id"] for line in lines} - {None}) == len(lines)
    assert "t" in json.dumps(query["plan"]) and "Node Type" in query["plan"]
    assert lines[5]["plan"]["Operation"] == "Update" and lines[5]["rows"] == 1
    assert SECRET not in json.dumps(lines) and str(NUMBER) not in json.dumps(lines)


async def test_fast_statements_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    for settings in ({"QSERVER_SLOW_MS": "86400000"}, {}):
        async with serving(**settings) as opened:
            for _ in range(3):
                await opened.admin("POST", "/v1/query", {"sql": "SELECT 1"})
    assert slow_in(caplog) == []


@pytest.mark.long
def test_every_line_that_a_server_logs_is_json(tmp_path: Path) -> None:
    settings = {
        "QSERVER_LOG_FORMAT": "json",
        "QSERVER_SLOW_MS": "0",
        "QSERVER_ACCESS_LOG": "1",
        "QSERVER_CONNECTIONS_MAX": "900000",  # more than files: a warning
    }
    lines: list[str] = []
    with real_server(tmp_path / "data", settings, lines) as address:
        body = json.dumps({"sql": "SELECT 1"}).encode()
        asked = Request(f"{address}/v1/query", body, {"Authorization": f"Bearer {KEY}"})
        with urlopen(asked) as answer:
            assert answer.status == 200
    found = [json.loads(line) for line in lines]
    assert all({"time", "level", "message"} <= each.keys() for each in found)
    kinds = {each.get("kind") for each in found}
    assert {"start", "access", "slow statement", None} <= kinds


async def test_a_request_that_is_audited_and_slow_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "audit.log"
    settings = {"QSERVER_AUDIT": str(file), "QSERVER_AUDIT_STATEMENTS": "1"}
    async with serving(**settings, QSERVER_SLOW_MS="0") as opened:
        async with await opened.client() as client:
            await client.ask(message("POST", "/v1/query", {"sql": "SELECT 1"}))
    assert len(slow_in(caplog)) == 1
    assert len(file.read_text(encoding="utf-8").splitlines()) == 1
