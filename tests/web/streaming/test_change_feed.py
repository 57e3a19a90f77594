"""Readers of changes over sockets, where a test must reach into the service."""

from __future__ import annotations

import pytest
import trio

from qserver.engine import feed as engine_feed
from qserver.web.streaming import feed as web_feed
from tests.web.served import ADMIN, Served, message, serving

HEAD = f"Host: localhost\r\nAuthorization: Bearer {ADMIN}\r\n"


async def query(served: Served, sql: str) -> int:
    answer = await served.admin("POST", "/v1/query", {"sql": sql})
    version: int = answer["version"]
    return version


async def reads(served: Served) -> None:
    """Return when somebody reads changes."""
    while True:
        await trio.sleep(0.01)
        if len(served.service.feed_readers):
            return


async def received_until(stream: trio.SocketStream, mark: bytes) -> bytes:
    found = b""
    while mark not in found:
        piece = await stream.receive_some()
        assert piece, found
        found += piece
    return found


async def test_a_reader_that_falls_out_of_history_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_feed, "FEED_PAUSE_SECONDS", 0.3)  # while it pauses, versions go
    async with serving(QSERVER_HISTORY="0") as served:
        since = await query(served, "create table t (id serial primary key, v int)")
        stream = await trio.open_tcp_stream(*served.address)
        async with stream, trio.open_nursery() as nursery:
            head = f"GET /v1/changes?since={since} HTTP/1.1\r\n{HEAD}"
            await stream.send_all(f"{head}Accept: text/event-stream\r\n\r\n".encode())
            await received_until(stream, b"\r\n\r\n")
            monkeypatch.setattr(engine_feed, "FEED_VERSIONS_MAX", 1)

            async def write() -> None:
                while True:
                    await query(served, "insert into t (v) values (1)")

            nursery.start_soon(write)
            found = await received_until(stream, b"QS031")
            nursery.cancel_scope.cancel()
        assert b"event: error" in found


@pytest.mark.long
async def test_a_reader_that_waits_for_an_answer_ends_with_its_key() -> None:
    async with serving() as served:
        since = await query(served, "create table t (id int primary key)")
        key = await served.admin("POST", "/v1/keys", {"name": "k", "scopes": ["data:read"]})
        async with await trio.open_tcp_stream(*served.address) as stream:
            path = f"/v1/changes?since={since}&wait_ms=60000"
            head = f"Host: localhost\r\nAuthorization: Bearer {key['key']}\r\n"
            await stream.send_all(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
            with trio.fail_after(240):
                await reads(served)
            await served.admin("DELETE", f"/v1/keys/{key['id']}")
            found = await received_until(stream, b"}")
        assert found.startswith(b"HTTP/1.1 401")
        assert len(served.service.feed_readers) == 0


async def test_a_filter_may_name_a_table_that_is_gone_since() -> None:
    """A reader that was cut off learns of the end of its table when it comes back."""
    async with serving() as served:
        before = await query(served, "create table other (id int primary key)")
        since = await query(served, "create table t (id int primary key)")
        await query(served, "insert into t values (1)")
        await query(served, "alter table t rename to u")
        renamed = await query(served, "insert into u values (2)")
        end = await query(served, "drop table u")

        async def seen(table: str, version: int) -> list[str]:
            answer = await served.admin("GET", f"/v1/changes?since={version}&tables={table}")
            return [each.get("statement", each["op"]) for each in answer["changes"]]

        assert await seen("t", since) == ["insert", "alter table t rename to u"]
        assert await seen("u", renamed - 1) == ["insert", "drop table u"]
        for table, version in (("t", before), ("u", since), ("u", end), ("t", end)):
            answer = await served.admin("GET", f"/v1/changes?since={version}&tables={table}")
            assert answer["error"]["code"] == "42P01"
        async with await trio.open_tcp_stream(*served.address) as stream:
            head = f"GET /v1/changes?since={end}&tables=u HTTP/1.1\r\n{HEAD}"
            last = f"Accept: text/event-stream\r\nLast-Event-ID: {renamed}\r\n\r\n"
            await stream.send_all((head + last).encode())
            found = await received_until(stream, b"id: %d\n" % end)
        assert b"drop table u" in found


async def test_a_filter_of_a_version_that_is_no_longer_kept_is_answered_so() -> None:
    async with serving(QSERVER_HISTORY="0") as served:
        await query(served, "create table t (id int primary key)")
        await query(served, "create table u (id int primary key)")
        await query(served, "drop table t")
        async with await served.client() as client:
            answer = await client.ask(message("GET", "/v1/changes?since=1&tables=t", None), "GET")
        assert answer.status == 410
        assert b'"code":"QS004"' in answer.body
