"""What failed is sent again where that cannot apply it twice, and streams go on where they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio

from qserver.client import Change, Client, ConnectionLost, TrioClient, Version
from qserver.client.failures import ConnectionFailed, error_from
from qserver.client.requests import Request, commit, query, read
from qserver.client.retrying import Trials, may_send_again
from qserver.errors import QserverError, RateLimited, ReaderTooSlow
from tests.client.fake_server import (
    KEY,
    Answer,
    Answering,
    FakeServer,
    Received,
    changed,
    error,
    event,
    stream,
)

LOST = ConnectionLost("the connection broke")
FAILED = ConnectionFailed("cannot reach it")
LIMITED = error_from({"code": "QS012", "message": ""}, 429, "0")
STARTING = error_from({"code": "57P03", "message": ""}, 503, "0")
LOG_FAILED = error_from({"code": "QS022", "message": ""}, 503, "0")
RUNNING = error_from({"code": "QS033", "message": ""}, 409, "0")
CONFLICT = error_from({"code": "40001", "message": "", "retryable": True}, 200)
TAKEN = error_from({"code": "QS008", "message": ""}, 409)

WRITE = query("INSERT", None, None, {})
ONCE = query("INSERT", None, None, {"idempotency_key": "a"})
READ = read("SELECT", None, None, {})
COMMIT = commit("txn_1")
BULK = Request("POST", "/v1/tables/t/rows", iter([b"{}"]), idempotency_key="a")


@pytest.mark.parametrize(
    ("failure", "again"),
    [
        (FAILED, {"write", "once", "read", "commit"}),
        (LIMITED, {"write", "once", "read", "commit"}),
        (STARTING, {"write", "once", "read", "commit"}),
        (RUNNING, {"write", "once", "read", "commit"}),
        (LOST, {"once", "read", "commit"}),
        (LOG_FAILED, {"once", "read", "commit"}),
        (CONFLICT, set()),
        (TAKEN, set()),
    ],
)
def test_a_change_is_sent_again_only_if_it_cannot_be_applied_twice(
    failure: QserverError, again: set[str]
) -> None:
    requests = {"write": WRITE, "once": ONCE, "read": READ, "commit": COMMIT, "bulk": BULK}
    assert {name for name, each in requests.items() if may_send_again(failure, each)} == again


def test_pauses_grow_and_end_in_time() -> None:
    trials, now, pauses = Trials(10.0), 100.0, []
    while (pause := trials.pause_after(FAILED, READ, now)) is not None:
        pauses.append(pause)
        now += pause
    assert 5 < len(pauses) < 30 and now <= 110.0
    assert max(pauses) > 10 * min(pauses)
    assert trials.pause_after(FAILED, READ, 110.0) is None
    trials.succeed()
    assert trials.pause_after(FAILED, READ, 110.0) is not None
    assert Trials(0.0).pause_after(FAILED, READ, 0.0) is None


def test_the_server_says_when_to_come_back() -> None:
    limited = error_from({"code": "QS012", "message": ""}, 429, "17")
    assert Trials(60.0).pause_after(limited, WRITE, 0.0) == 17
    assert Trials(10.0).pause_after(limited, WRITE, 0.0) is None


def hang_up() -> None:
    raise OSError("the connection breaks")


def in_turn(*answers: Answer) -> Callable[[Received], Answer]:
    left: Iterator[Answer] = iter(answers)
    return lambda _: next(left)


BROKEN = stream(hang_up)
BUSY = Answer(
    error("QS012", "rate_limited", "too many").body, status=429, headers={"Retry-After": "0"}
)


async def both(server: FakeServer, name: str, *arguments: Any, **options: Any) -> list[Any]:
    """What a call of each flavour gives, or raises."""
    found: list[Any] = []
    with Client(server.url, KEY, retry_seconds=20) as blocking:
        one = getattr(blocking, name)
        try:
            found.append(await trio.to_thread.run_sync(lambda: one(*arguments, **options)))
        except QserverError as failure:
            found.append(type(failure))
    async with TrioClient(server.url, KEY, retry_seconds=20) as waiting:
        try:
            found.append(await getattr(waiting, name)(*arguments, **options))
        except QserverError as failure:
            found.append(type(failure))
    return found


async def test_a_request_is_sent_until_it_is_answered(server: FakeServer) -> None:
    server.answer("INSERT", in_turn(*(BUSY, BUSY, changed(1)) * 2))
    assert [each.affected_rows for each in await both(server, "query", "INSERT")] == [1, 1]
    server.answer("UPDATE", in_turn(*(BROKEN, changed(2)) * 2))
    found = await both(server, "query", "UPDATE", idempotency_key="a")
    assert [each.affected_rows for each in found] == [2, 2]
    assert len(server.requests) == 6 + 4


async def test_a_write_without_a_key_is_never_sent_twice(server: FakeServer) -> None:
    server.answer("INSERT", BROKEN)
    assert await both(server, "query", "INSERT") == [ConnectionLost, ConnectionLost]
    assert len(server.requests) == 2


async def test_a_commit_is_asked_for_until_it_is_answered(server: FakeServer) -> None:
    done = Answer({"success": True, "version": 4, "affected_rows": 1, "timings": {}})
    server.route("POST", "/v1/transaction/txn_1/commit", in_turn(*(BROKEN, BROKEN, done) * 2))
    found = await both(server, "commit_transaction", "txn_1")
    assert [each["version"] for each in found] == [4, 4]


async def test_without_retries_a_failure_is_raised_at_once(server: FakeServer) -> None:
    server.answer("SELECT", BUSY)
    with Client(server.url, KEY) as client, pytest.raises(RateLimited):
        client.query("SELECT")
    assert len(server.requests) == 1


def change(version: int, n: int) -> bytes:
    return event("change", {"version": version, "table": "t", "op": "insert", "after": {"n": n}})


def ended(version: int) -> bytes:
    return event("version", {"version": version})


def feed(*answers: Answer) -> dict[str, Answering]:
    """The answers of a server whose reader comes back behind each of these versions."""
    versions = ("5", "7", "9")
    return {f"/v1/changes?since={at}": each for at, each in zip(versions, answers, strict=False)}


async def test_a_feed_goes_on_behind_the_last_version_that_was_read(server: FakeServer) -> None:
    first = stream(change(6, 1), ended(6), ended(7), change(8, 2), hang_up)
    stopping = event("error", {"error": {"code": "57P03", "name": "x", "message": "stopping"}})
    second = stream(change(8, 2), change(8, 3), ended(8), ended(9), stopping)
    slow = event("error", {"error": {"code": "QS031", "name": "x", "message": "too slow"}})
    last = stream(change(10, 4), ended(10), lambda: None, slow)
    for path, answer in feed(first, second, last).items():
        server.route("GET", path, answer)
    seen: list[Version] = []
    with Client(server.url, KEY, retry_seconds=20) as client:
        with pytest.raises(ReaderTooSlow), client.changes(5) as reader:
            for version in reader:
                assert reader.version == version.version
                seen.append(version)
        assert reader.version == 10
    numbers = [(each.version, [one["after"]["n"] for one in each.changes]) for each in seen]
    assert numbers == [(6, [1]), (8, [2, 3]), (10, [4])]
    again: list[Version] = []
    async with TrioClient(server.url, KEY) as waiting:
        with pytest.raises(ReaderTooSlow):
            async with waiting.changes(5, retry_seconds=20) as following:
                async for version in following:
                    again.append(version)
    assert again == seen


def test_a_version_that_came_with_an_error_is_read_again(server: FakeServer) -> None:
    lost = event("error", {"error": {"code": "57P03", "name": "x", "message": "stopping"}})
    answers = in_turn(
        stream(change(6, 1) + ended(6) + lost), stream(change(6, 1) + ended(6), hang_up)
    )
    server.route("GET", "/v1/changes?since=5", answers)
    with Client(server.url, KEY) as client, client.changes(5, retry_seconds=20) as reader:
        assert next(iter(reader)).version == 6


def live(version: int, rows: list[int], *more: Any) -> Answer:
    head = event("columns", {"columns": ["n"], "types": ["integer"], "version": version})
    ready = event("ready", {"version": version, "row_count": len(rows)})
    return stream(head, *(event("row", {"n": n}) for n in rows), ready, *more)


GONE = event("error", {"error": {"code": "42P01", "name": "undefined_table", "message": "t"}})


async def test_a_live_query_goes_on_with_what_differs(server: FakeServer) -> None:
    half = event("delete", {"n": 1}) + event("insert", {"n": 9})
    answers = [
        live(3, [1, 1, 2], event("insert", {"n": 4}) + ended(4), half, hang_up),
        BUSY,
        live(8, [1, 2, 5]),
        live(8, [1, 2, 5], lambda: None, GONE),
    ]
    server.answer("SELECT n", in_turn(*answers * 2))
    expected = [Change(4, [], [(4,)]), Change(8, [(1,), (4,)], [(5,)])]

    def follow() -> list[tuple[Change, list[Any]]]:
        seen: list[tuple[Change, list[Any]]] = []
        with Client(server.url, KEY, retry_seconds=20) as client, client.live("SELECT n") as query:
            assert (query.version, sorted(query.rows)) == (3, [(1,), (1,), (2,)])
            with pytest.raises(QserverError):
                for each in query:
                    assert query.version == each.version
                    seen.append((each, sorted(query.rows)))
        return seen

    seen = await trio.to_thread.run_sync(follow)
    assert [each for each, _ in seen] == expected
    assert seen[-1][1] == [(1,), (2,), (5,)]
    again: list[Change] = []
    async with TrioClient(server.url, KEY, retry_seconds=20) as waiting:
        async with waiting.live("SELECT n") as query:
            with pytest.raises(QserverError):
                async for each in query:
                    again.append(each)
            assert sorted(query.rows) == [(1,), (2,), (5,)]
    assert again == expected


def test_rows_of_a_live_query_are_those_of_the_change_that_was_read(server: FakeServer) -> None:
    together = (
        event("insert", {"n": 2}) + ended(4) + event("insert", {"n": 3}) + ended(5)
        + event("insert", {"n": 4})
    )  # fmt: skip
    server.answer("SELECT n", live(3, [1], together, hang_up))
    with Client(server.url, KEY) as client, client.live("SELECT n") as query:
        changes = iter(query)
        assert next(changes).version == query.version == 4
        assert query.rows == [(1,), (2,)]
        assert next(changes).version == query.version == 5
        with pytest.raises(ConnectionLost):
            next(changes)
        assert query.rows == [(1,), (2,), (3,)]


async def test_pages_of_changes_and_open_transactions_can_be_looked_at(server: FakeServer) -> None:
    page = {"success": True, "changes": [], "next": 7, "newest": 7}
    path = "/v1/changes?since=5&tables=t%2Cu&limit=10&wait_ms=1000"
    server.route("GET", path, Answer(page))
    found = await both(server, "changes_since", 5, ["t", "u"], limit=10, wait_ms=1000)
    assert found == [{"changes": [], "next": 7, "newest": 7}] * 2
    record = {"id": "txn_1", "state": "failed"}
    server.route("GET", "/v1/transaction/txn_1", Answer({"success": True, "transaction": record}))
    assert await both(server, "show_transaction", "txn_1") == [record, record]


OPENED = Answer({"success": True, "transaction": {"id": "txn_1"}}, status=201)
ENDINGS = [
    (error("25P02", "in_failed_sql_transaction", "aborted"), True),
    (BUSY, True),
    (error("40001", "serialization_failure", "conflict"), False),
    (BROKEN, False),
]


@pytest.mark.parametrize(("commit", "rolled_back"), ENDINGS)
async def test_a_block_leaves_no_transaction_open(
    server: FakeServer, commit: Answer, rolled_back: bool
) -> None:
    server.route("POST", "/v1/transaction/open", OPENED)
    server.route("POST", "/v1/transaction/txn_1/commit", commit)
    server.route("DELETE", "/v1/transaction/txn_1", Answer(status=204))
    methods = ["POST", "POST", *["DELETE"] * rolled_back]
    with Client(server.url, KEY) as client, pytest.raises(QserverError), client.begin():
        pass
    assert [each.method for each in server.requests] == methods
    server.requests.clear()
    async with TrioClient(server.url, KEY) as waiting:
        with pytest.raises(QserverError):
            async with waiting.begin():
                pass
    assert [each.method for each in server.requests] == methods


async def test_a_block_that_is_cancelled_rolls_back(server: FakeServer) -> None:
    server.route("POST", "/v1/transaction/open", OPENED)
    server.route("DELETE", "/v1/transaction/txn_1", Answer(status=204))
    async with TrioClient(server.url, KEY) as waiting:
        with trio.CancelScope() as scope:
            async with waiting.begin():
                scope.cancel()
                await trio.sleep_forever()
    assert [each.method for each in server.requests] == ["POST", "DELETE"]
