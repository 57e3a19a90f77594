"""Section 11: what a restart ends, and what it does not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.web.contract.servers import KINDS, Client, Kind, start
from tests.web.contract.test_open_transactions import Transaction, gone

KEY = "svc_k_restarts_0123456789"
SETTINGS = {"QSERVER_API_KEY": KEY}


def without_times(answer: httpx.Response) -> Any:
    """An answer, but for its times: those of a stored one end where the commit begins."""
    body = answer.json()
    assert body.pop("timings").keys() >= {"total_us", "exec_us"}
    return body


@pytest.mark.parametrize("kind", KINDS)
def test_a_commit_answers_the_same_after_the_server_was_killed(kind: Kind, tmp_path: Path) -> None:
    server = start(kind, tmp_path, SETTINGS)
    try:
        client = Client(server, KEY)
        client.query("create table t (id int primary key, a int)")
        client.query("insert into t values (1, 0), (2, 0)")
        committed, conflicted, read, left, deleted = (Transaction(client) for _ in range(5))
        for each, row in ((committed, 1), (left, 2), (conflicted, 2), (deleted, 2)):
            each.do("update t set a = a + 1 where id = ?", row)
        read.rows("select * from t")
        client.query("update t set a = 10 where id = 2")
        version = client.query("select 1")["version"]
        answers = [each.commit() for each in (committed, conflicted, read)]
        told = [without_times(each) for each in answers]
        assert told[1]["error"]["code"] == "40001"
        times = answers[0].json()["timings"]
        assert 0 < times["commit_us"] <= times["total_us"]
        assert told[2]["version"] == read.record["version"] and told[0]["version"] == version + 1
        again = [each.commit() for each in (committed, conflicted, read)]
        assert [each.content for each in again] == [each.content for each in answers]
        deleted.end()
    finally:
        server.kill()
    server = start(kind, tmp_path, SETTINGS)
    try:
        client = Client(server, KEY)
        for each in (committed, conflicted, read, left, deleted):
            each.client = client
        again = [each.commit() for each in (committed, conflicted)]
        assert [without_times(each) for each in again] == told[:2]
        for each in (
            left,
            deleted,
            read,
        ):  # nothing stores a commit that changed nothing
            gone(each.commit())
        for each in (committed, left):
            gone(each.send("select 1"))
            gone(each.show())
        assert client.rows("select a from t order by id") == [[1], [10]]
        stranger = Client(server, client.new_key()["key"])
        gone(stranger.post(f"/v1/transaction/{committed.id}/commit"))
        assert server.stop() == 0, server.output
    finally:
        server.kill()
