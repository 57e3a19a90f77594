"""A live query whose server is killed and started again: the next one begins where the data is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.contract.live_results import LiveResult, multiset
from tests.web.contract.servers import KINDS, Client, Kind, start

KEY = "svc_k_live_0123456789ab"
SQL = "select id, v from t where v > 2"


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_server_loses_nothing_that_a_live_query_has_shown(
    kind: Kind, tmp_path: Path
) -> None:
    server = start(kind, tmp_path, {"QSERVER_API_KEY": KEY})
    try:
        client = Client(server, KEY)
        client.query("create table t (id int primary key, v int)")
        client.query("insert into t select n, n from generate_series(1, 5) n")
        with LiveResult(client, SQL) as live, LiveResult(client, "select sum(v) from t") as total:
            version = client.query("update t set v = v + 10 where id < 3")["version"]
            live.until(version)
            total.until(version)
            shown, summed = +live.result, +total.result
            server.kill()
            with pytest.raises((AssertionError, OSError)):
                live.until(version + 1)
    finally:
        server.kill()
    again = start(kind, tmp_path, {"QSERVER_API_KEY": KEY})
    try:
        client = Client(again, KEY)
        with LiveResult(client, SQL) as live, LiveResult(client, "select sum(v) from t") as total:
            assert live.version >= version
            assert (+live.result, +total.result) == (shown, summed)
            version = client.query("delete from t where id = 1")["version"]
            live.until(version)
            assert +live.result == multiset(client.query(SQL)["rows"])
        if kind != "hypercorn":  # another server does not tell the application that it stops
            with LiveResult(client, SQL) as live:
                assert again.stop() == 0, again.output
                assert live.error()["code"] == "57P03"
    finally:
        again.kill()
