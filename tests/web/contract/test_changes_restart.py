"""A reader of changes whose server is killed again and again: each commit comes once, in order."""

from __future__ import annotations

import threading
from pathlib import Path

import httpx
import pytest

from tests.web.contract.connections import OpenFeed
from tests.web.contract.servers import KINDS, Client, Kind, start

KEY = "svc_k_feed_0123456789ab"
SETTINGS = {"QSERVER_API_KEY": KEY}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_commit_comes_once_and_in_order_across_kills(kind: Kind, tmp_path: Path) -> None:
    versions: list[int] = []
    seen: list[int] = []
    acknowledged: list[int] = []
    number = 0
    for life in range(2):
        server = start(kind, tmp_path, SETTINGS)
        try:
            client = Client(server, KEY)
            if life == 0:
                client.query("create table t (id int primary key)")
            done = threading.Event()

            def write(first: int, client: Client = client, done: threading.Event = done) -> None:
                try:
                    for each in range(first, first + 10_000):
                        client.query("insert into t values ($1)", [each])
                        acknowledged.append(each)
                        if len(acknowledged) % 40 == 0:
                            done.set()
                except (httpx.TransportError, RuntimeError):
                    pass  # it was killed; whether the last one is committed is unknown
                finally:
                    done.set()

            number += 10_000
            writing = threading.Thread(target=write, args=(number,))
            last = versions[-1] if versions else None
            with OpenFeed(client, "since=0", last_event_id=last) as feed:
                writing.start()
                pending: list[int] = []
                count = 0
                for event in feed.events():
                    if event.kind == "version":
                        assert event.id == str(event.data["version"])
                        versions.append(event.data["version"])
                        seen += pending
                        pending = []
                        count += 1
                        if done.is_set() and count >= 20:
                            break
                    elif event.data["op"] == "insert":
                        pending.append(event.data["after"]["id"])
                server.kill()
                writing.join()
        finally:
            server.kill()
    server = start(kind, tmp_path, SETTINGS)
    try:
        client = Client(server, KEY)
        stored = client.query("select id from t order by id")
        with OpenFeed(client, "since=0", last_event_id=versions[-1]) as feed:
            if versions[-1] < stored["version"]:
                for event in feed.until(stored["version"]):
                    if event.kind == "version":
                        versions.append(event.data["version"])
                    else:
                        seen.append(event.data["after"]["id"])
        assert seen == [row["id"] for row in stored["rows"]]
        assert set(acknowledged) <= set(seen)
        assert versions == list(range(1, stored["version"] + 1))
        assert len(seen) >= 40
        again = client.get("/v1/changes?since=0&limit=10000").json()
        assert [each["after"]["id"] for each in again["changes"][1:]] == seen
        if kind != "hypercorn":  # another server does not tell the application that it stops
            with OpenFeed(client, f"since={versions[-1]}") as feed:
                assert server.stop() == 0, server.output
                assert feed.error()["code"] == "57P03"
    finally:
        server.kill()
