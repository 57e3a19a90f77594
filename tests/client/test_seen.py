"""Reads that a replica may answer carry the newest version that the client has seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from qserver.client import Client, TrioClient
from qserver.client.requests import query
from qserver.client.seen import SeenVersions
from qserver.errors import NotFreshEnough
from tests.client.fake_server import KEY, Answer, FakeServer, Received, error, event, result, stream

LATE = error("QS025", "not_fresh_enough", "it has not reached version 17", status=503)


class Versioned:
    """Answers everything with a version, and notes what was asked of it."""

    def __init__(self, server: FakeServer) -> None:
        self.version = 17
        self.database: str | None = None
        """The branch that the answer names."""
        self.refuses_tokens = False
        self.asked: list[tuple[str | None, str | None]] = []
        """The version that each request names, and its consistency."""
        server.respond = self.respond  # type: ignore[method-assign]

    def respond(self, received: Received) -> Answer:
        body, parts = received.body, urlsplit(received.path)
        fields = body if isinstance(body, dict) else {}
        fields = fields or {name: value for name, (value,) in parse_qs(parts.query).items()}
        token = received.headers.get("x-min-version")
        self.asked.append((token, fields.get("consistency")))
        if self.refuses_tokens and token is not None:
            return LATE
        if received.headers["accept"] == "text/event-stream":
            head = {"columns": ["x"], "types": ["integer"], "version": self.version}
            last = "ready" if fields.get("live") else "done"
            told = {"success": True, "version": self.version, "row_count": 0}
            return stream(event("columns", head), event(last, told))
        answer = {**result(["x"], ["integer"], []), "version": self.version, "results": []}
        if parts.path.endswith("/open"):
            answer = {"success": True, "transaction": {"id": "txn_1"}}
        named = {} if self.database is None else {"database": self.database}
        return Answer({**answer, **named})

    def last(self) -> tuple[str | None, str | None]:
        return self.asked[-1]


@pytest.fixture
def versioned(server: FakeServer) -> Versioned:
    return Versioned(server)


def drained(stream: Any) -> None:
    with stream as rows:
        list(rows)


def left(live: Any) -> None:
    with live:
        pass


READS: dict[str, Callable[[Client], object]] = {
    "query": lambda client: client.query("SELECT 1"),
    "read": lambda client: client.read("SELECT 1"),
    "transaction": lambda client: client.transaction(["SELECT 1"]),
    "stream": lambda client: drained(client.stream("SELECT 1")),
    "live": lambda client: left(client.live("SELECT 1")),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_only_what_a_replica_may_answer_carries_a_version(
    server: FakeServer, versioned: Versioned, read: Callable[[Client], object]
) -> None:
    with Client(server.url, KEY) as client:
        read(client)
        read(client)
        assert client.seen.newest("") == 17 and versioned.asked == [(None, None)] * 2
    with Client(server.url, KEY, consistency="session") as client:
        read(client)
        assert versioned.last() == (None, "session")
        versioned.version = 19
        read(client)
        versioned.version = 18
        read(client)
        assert versioned.last() == ("19", "session")
        client.query("SELECT 1", as_of=3)
        assert versioned.last() == (None, "session"), "an older version is what is wanted"
        client.query("SELECT 1", consistency="strong")
        assert versioned.last() == (None, "strong")
        client.query("SELECT 1", consistency="any")
        assert versioned.last() == (None, "any")
        assert client.seen.newest("") == 19


async def test_both_flavours_do_so(server: FakeServer, versioned: Versioned) -> None:
    async with TrioClient(server.url, KEY, consistency="session") as client:
        await client.query("INSERT")
        await client.read("SELECT 1")
        assert versioned.last() == ("17", "session")
        versioned.refuses_tokens = True
        async with client.stream("SELECT 1") as rows:
            assert rows.version == 17
        assert versioned.asked[-2:] == [("17", "session"), (None, None)]


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_version_that_nobody_has_is_forgotten(
    server: FakeServer, versioned: Versioned, read: Callable[[Client], object]
) -> None:
    with Client(server.url, KEY, consistency="session") as client:
        client.query("INSERT")
        versioned.refuses_tokens, versioned.version = True, 3
        read(client)
        assert versioned.asked[-2:] == [("17", "session"), (None, None)]
        assert client.seen.newest("") == 3
        versioned.refuses_tokens = False
        read(client)
        assert versioned.last() == ("3", "session")


def test_a_version_that_the_caller_names_is_an_error(server: FakeServer) -> None:
    server.answer("SELECT 1", LATE)
    with Client(server.url, KEY) as client, pytest.raises(NotFreshEnough):
        client.query("SELECT 1", min_version=17)
    with Client(server.url, KEY) as client, pytest.raises(NotFreshEnough):
        client.query("SELECT 1", min_version=17, consistency="session", max_age_ms=5)
    first, asked, strongly = (each.body for each in server.requests)
    assert asked == {**first, "consistency": "session", "max_age_ms": 5} and strongly == first


def test_databases_have_versions_of_their_own(server: FakeServer, versioned: Versioned) -> None:
    with Client(server.url, KEY, "shop", consistency="session") as client:
        client.query("INSERT")
        client.query("SELECT 1", database="other")
        assert versioned.last() == (None, "session")
        versioned.version, versioned.database = 30, "shop-branch-1"
        client.transaction(["INSERT"], branch=True)
        versioned.database = None
        newest = [client.seen.newest(name) for name in ("shop", "other", "shop-branch-1", "")]
        assert newest == [17, 17, 30, None]
        client.create_database("shop-branch-1")
        assert client.seen.newest("shop-branch-1") is None


def test_what_is_inside_a_transaction_carries_nothing(
    server: FakeServer, versioned: Versioned
) -> None:
    with Client(server.url, KEY, consistency="session") as client:
        client.query("INSERT")
        with client.begin() as transaction:
            transaction.query("SELECT 1")
            assert versioned.last() == (None, None)
            versioned.version = 20
        client.query("SELECT 1")
        assert versioned.last() == ("20", "session")


def test_it_is_the_newest_version_that_counts() -> None:
    seen, request = SeenVersions(), query("SELECT 1", None, None, {"consistency": "session"})
    assert seen.with_token(request).min_version is None
    for version in (3, 9, 5, None, "12"):
        seen.note("", version)
    seen.note(None, 99)
    assert seen.with_token(request).min_version == 9
    seen.forget("")
    seen.forget(None)
    assert seen.with_token(request).min_version is None
