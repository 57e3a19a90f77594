"""GET /v1/notifications: who hears what, over HTTP, and how that ends."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from qserver.engine import channels as engine_channels
from tests.patience import PATIENCE_SECONDS
from tests.web.served import ADMIN, Served, message, serving


class Stream:
    def __init__(self, socket: trio.SocketStream) -> None:
        self._socket = socket
        self._rest = b""

    async def event(self) -> tuple[str, Any]:
        """Return the kind and the data of the next event."""
        while True:
            while b"\n\n" not in self._rest:
                piece = await self._socket.receive_some()
                assert piece, self._rest
                self._rest += piece
            text, self._rest = self._rest.split(b"\n\n", 1)
            lines = [
                line for line in text.decode().split("\n") if line.startswith(("event", "data"))
            ]
            if lines:
                kind, data = (line.split(": ", 1)[1] for line in lines)
                return kind, json.loads(data)


@asynccontextmanager
async def listening(served: Served, query: str, key: str = ADMIN) -> AsyncIterator[Stream]:
    async with await trio.open_tcp_stream(*served.address) as socket:
        head = f"GET /v1/notifications?{query} HTTP/1.1\r\nHost: localhost\r\n"
        await socket.send_all(f"{head}Authorization: Bearer {key}\r\n\r\n".encode())
        yield Stream(socket)


async def nobody_reads(served: Served) -> None:
    while True:
        await trio.sleep(0.01)
        if not len(served.service.feed_readers):
            return


async def query(served: Served, sql: str, **fields: Any) -> Any:
    return await served.admin("POST", "/v1/query", {"sql": sql, **fields})


async def test_what_requests_tell_is_heard_in_commit_order() -> None:
    async with serving() as served:
        async with listening(served, "channel=news&channel=a%20b") as stream:
            assert await stream.event() == ("listening", {"channels": ["a b", "news"]})
            first = await query(served, "NOTIFY news, 'one'")
            await query(served, "SELECT pg_notify($1, $2)", params=["a b", "two"])
            await query(served, "SELECT pg_notify($1, $2)", params=["a b", "three"])
            await query(served, "NOTIFY other")
            await query(served, "NOTIFY news, 'dry'", dry_run=True)
            statements = [{"sql": "NOTIFY news, 'x'"}, {"sql": "SELECT 1 / 0"}]
            await served.admin("POST", "/v1/transaction", {"statements": statements})
            statements = [{"sql": "SAVEPOINT s"}, {"sql": "NOTIFY news, 'x'"}]
            statements += [{"sql": "ROLLBACK TO s"}, {"sql": "NOTIFY news, 'four'"}]
            await served.admin("POST", "/v1/transaction", {"statements": statements})
            opened = (await served.admin("POST", "/v1/transaction/open", {}))["transaction"]["id"]
            await query(served, "NOTIFY news, 'five'", transaction=opened)
            await query(served, "NOTIFY news, 'six'")
            await served.admin("POST", f"/v1/transaction/{opened}/commit")
            heard = [await stream.event() for _ in range(6)]
        assert [data["payload"] for _, data in heard] == [
            "one",
            "two",
            "three",
            "four",
            "six",
            "five",
        ]
        one = {"channel": "news", "payload": "one", "pid": 0, "version": first["version"]}
        assert heard[0] == ("notification", one)
        versions = [data["version"] for _, data in heard]
        assert versions == sorted(set(versions))
        with trio.fail_after(PATIENCE_SECONDS):
            await nobody_reads(served)


async def test_a_key_that_only_reads_hears_and_tells_nothing() -> None:
    async with serving() as served:
        made = await served.admin("POST", "/v1/keys", {"name": "k", "scopes": ["data:read"]})
        writer = await served.admin("POST", "/v1/keys", {"name": "w", "scopes": ["data:write"]})
        async with await served.client() as client:
            for sql in ("NOTIFY news", "SELECT pg_notify('news', '')"):
                sent = message("POST", "/v1/query", {"sql": sql}, made["key"])
                assert json.loads((await client.ask(sent)).body)["error"]["code"] == "QS005"
            refused = await client.ask(
                message("GET", "/v1/notifications?channel=a", None, writer["key"]), "GET"
            )
            assert refused.status == 403
        async with listening(served, "channel=news", made["key"]) as stream:
            await stream.event()
            await query(served, "NOTIFY news, 'heard'")
            assert (await stream.event())[1]["payload"] == "heard"
            await served.admin("DELETE", f"/v1/keys/{made['id']}")
            kind, data = await stream.event()
            assert (kind, data["error"]["code"]) == ("error", "QS002")


@pytest.mark.parametrize(
    "query", ["", "channel=", "channel=" + "x" * 64, "channel=a&no=1", "database=main"]
)
async def test_a_request_without_channels_is_refused(query: str) -> None:
    async with serving() as served, await served.client() as client:
        answer = await client.ask(message("GET", f"/v1/notifications?{query}"), "GET")
        assert answer.status == 400
        assert (
            await client.ask(message("HEAD", "/v1/notifications?channel=a"), "HEAD")
        ).status == 200


async def test_listen_is_refused_with_the_route_that_does_it() -> None:
    async with serving() as served:
        answer = await query(served, "LISTEN news")
        assert answer["error"]["code"] == "0A000"
        assert "GET /v1/notifications" in answer["error"]["hint"]
        assert (await query(served, "UNLISTEN *"))["success"]
        opened = (await served.admin("POST", "/v1/transaction/open", {}))["transaction"]["id"]
        answer = await query(served, "LISTEN news", transaction=opened)
        assert answer["error"]["code"] == "0A000"


async def test_a_reader_that_is_too_slow_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_channels, "NOTIFICATIONS_QUEUED_MAX", 10)
    async with serving() as served, listening(served, "channel=news") as stream:
        await stream.event()
        await query(served, "SELECT pg_notify('news', n::text) FROM generate_series(1, 11) n")
        kind, data = await stream.event()
        assert (kind, data["error"]["code"]) == ("error", "QS031")


async def test_listeners_end_with_the_service_and_their_database() -> None:
    async with serving() as served:
        await served.admin("POST", "/v1/databases", {"name": "second"})
        async with (
            listening(served, "channel=a&database=second") as second,
            listening(served, "channel=a") as first,
        ):
            await first.event()
            await second.event()
            await served.admin("DELETE", "/v1/databases/second")
            assert (await second.event())[0] == "error"
            await query(served, "NOTIFY a, 'goes on'")
            assert (await first.event())[1]["payload"] == "goes on"
            served.service.feed_readers.end()
            kind, data = await first.event()
            assert (kind, data["error"]["code"]) == ("error", "57P03")
