"""Both flavours of the client, over real sockets; what one can the other can."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
import trio
from msgspec import Struct

from qserver.client import (
    Change,
    Client,
    ConnectionFailed,
    ConnectionLost,
    Named,
    Statement,
    TrioClient,
    UnexpectedAnswer,
)
from qserver.errors import (
    DivisionByZero,
    HistoryTooOld,
    InvalidRequest,
    NotFound,
    RateLimited,
    ReaderTooSlow,
    Unauthorized,
    UndefinedTable,
)
from qserver.web.description.shapes import OpenRequest, QueryRequest, TransactionRequest
from tests.client.fake_server import (
    KEY,
    Answer,
    FakeServer,
    Piece,
    changed,
    error,
    event,
    result,
    rows,
    stream,
    streamed,
)

HEAD = event("columns", {"columns": ["n"], "types": ["integer"], "version": 3})
DONE = event("done", {"success": True, "row_count": 1, "affected_rows": 0, "version": 3})


@asynccontextmanager
async def both(server: FakeServer, database: str | None = None) -> AsyncIterator[Any]:
    """A function that makes a call with each flavour, and gives what both came to."""

    async def call(name: str, *arguments: Any, **options: Any) -> Any:
        one = getattr(blocking, name)
        there = await trio.to_thread.run_sync(lambda: one(*arguments, **options))
        here = await getattr(waiting, name)(*arguments, **options)
        assert here == there
        return here

    with Client(server.url, KEY, database) as blocking:
        async with TrioClient(server.url, KEY, database) as waiting:
            yield call


async def test_a_query_gives_rows_as_tuples_and_as_dicts(server: FakeServer) -> None:
    server.answer("SELECT", rows(["id", "name"], ["integer", "text"], [[1, "Ada"], [2, None]]))
    async with both(server, "shop") as call:
        found = await call("query", "SELECT", [1])
    assert found.columns == ("id", "name")
    assert found.types == ("integer", "text")
    assert found.rows == [(1, "Ada"), (2, None)]
    assert list(found.dicts()) == [{"id": 1, "name": "Ada"}, {"id": 2, "name": None}]
    assert (found.version, found.retries, found.timings["exec_us"]) == (17, 0, 10)
    for received in server.requests:
        assert received.body == {
            "sql": "SELECT",
            "format": "arrays",
            "params": [1],
            "database": "shop",
        }


async def test_rows_that_come_as_objects_are_tuples_too(server: FakeServer) -> None:
    objects = {**result(["b", "a"], ["text", "text"], []), "rows": [{"a": 1, "b": 2}]}
    server.answer("SELECT", Answer(objects))
    async with both(server) as call:
        assert (await call("query", "SELECT")).rows == [(2, 1)]


async def test_parameters_go_as_the_texts_of_the_api(server: FakeServer) -> None:
    given = [Decimal("1.10"), date(2024, 2, 29), b"ab", float("nan"), float("-inf"), None, [1.5]]
    async with both(server) as call:
        await call("query", "SELECT", given)
    expected = ["1.10", "2024-02-29", "YWI=", "NaN", "-Infinity", None, [1.5]]
    assert [each.body["params"] for each in server.requests] == [expected, expected]


async def test_a_transaction_is_one_request(server: FakeServer) -> None:
    answer = {
        "success": True,
        "results": [result(["n"], ["integer"], [[1]]), result([], [], [], 2)],
        "affected_rows": 2,
        "version": 18,
        "retries": 1,
        "timings": {"total_us": 1, "exec_us": 1, "commit_us": 1},
    }
    server.route("POST", "/v1/transaction", Answer(answer))
    async with both(server) as call:
        done = await call("transaction", ["SELECT 1", Statement("UPDATE", {"a": 1})], max_retries=0)
    assert [each.rows for each in done.results] == [[(1,)], []]
    assert (done.affected_rows, done.version, done.retries) == (2, 18, 1)
    assert server.requests[0].body == {
        "statements": ["SELECT 1", {"sql": "UPDATE", "params": {"a": 1}}],
        "max_retries": 0,
    }


async def test_an_idempotency_key_is_a_header_and_a_replayed_answer_says_so(
    server: FakeServer,
) -> None:
    def replay(received: Any) -> Answer:
        assert received.headers["idempotency-key"] == "order 7"
        assert "idempotency_key" not in received.body
        return Answer(answer, headers={"Idempotency-Replayed": "true"})

    answer = {**result([], [], [], 1), "results": [], "success": True}
    server.answer("UPDATE", replay)
    server.route("POST", "/v1/transaction", replay)
    server.answer("SELECT", rows([], [], []))
    async with both(server) as call:
        assert (await call("query", "UPDATE", idempotency_key="order 7")).replayed
        assert (await call("transaction", ["UPDATE"], idempotency_key="order 7")).replayed
        assert not (await call("query", "SELECT")).replayed
        for wrong in ("", "ä", "a\nb"):
            with pytest.raises(InvalidRequest):
                await call("query", "UPDATE", idempotency_key=wrong)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (error("42P01", "undefined_table", "no x", position=15), UndefinedTable),
        (error("QS001", "invalid_request", "no", status=400), InvalidRequest),
        (Answer(b"<html>", 502), UnexpectedAnswer),
        (Answer({"hello": 1}), UnexpectedAnswer),
        (Answer(b"\xff\xfe"), UnexpectedAnswer),
    ],
)
async def test_failures_are_raised_by_query_and_by_stream(
    server: FakeServer, answer: Answer, expected: type[Exception]
) -> None:
    server.answer("SELECT", answer)
    with Client(server.url, KEY) as client:
        with pytest.raises(expected):
            client.query("SELECT")
        with pytest.raises(expected), client.stream("SELECT"):
            raise AssertionError("the stream never opens")
    async with TrioClient(server.url, KEY) as waiting:
        with pytest.raises(expected):
            await waiting.query("SELECT")
        with pytest.raises(expected):
            async with waiting.stream("SELECT"):
                raise AssertionError("the stream never opens")


def test_a_rate_limit_says_how_long_to_wait(server: FakeServer) -> None:
    limited = error("QS012", "rate_limited", "too many", status=429)
    server.answer("SELECT", Answer(limited.body, 429, {"Retry-After": "7"}))
    with Client(server.url, KEY) as client, pytest.raises(RateLimited) as caught:
        client.query("SELECT")
    assert caught.value.retry_after_seconds == 7


async def test_rows_of_a_stream_are_there_before_the_stream_ends(server: FakeServer) -> None:
    seen = [threading.Event(), threading.Event()]

    def answer(received: Any) -> Answer:
        assert received.headers["accept"] == "text/event-stream"
        turn = seen.pop(0)
        return stream(HEAD, event("row", {"n": 1}), lambda: _wait(turn), DONE)

    server.answer("SELECT", answer)
    first, second = seen
    with Client(server.url, KEY) as client, client.stream("SELECT") as batches:
        assert batches.columns == ("n",)
        iterator = iter(batches)
        assert next(iterator) == (1,)
        first.set()
        assert list(iterator) == []
    async with TrioClient(server.url, KEY) as waiting:
        async with waiting.stream("SELECT") as incoming:
            assert incoming.types == ("integer",)
            assert await anext(incoming) == (1,)
            second.set()
            assert [row async for row in incoming] == []


def _wait(turn: threading.Event) -> None:
    assert turn.wait(240)


async def test_a_stream_can_be_left_early_and_the_client_used_again(server: FakeServer) -> None:
    server.answer("SELECT many", streamed(["n"], ["integer"], [[n] for n in range(5000)]))
    server.answer("SELECT 1", rows(["n"], ["integer"], [[1]]))
    with Client(server.url, KEY) as client:
        with client.stream("SELECT many") as found:
            assert next(iter(found)) == (0,)
        assert client.query("SELECT 1").rows == [(1,)]
    async with TrioClient(server.url, KEY) as waiting:
        async with waiting.stream("SELECT many") as incoming:
            assert await anext(incoming) == (0,)
        assert (await waiting.query("SELECT 1")).rows == [(1,)]


async def test_a_loop_over_a_stream_opens_and_closes_it(server: FakeServer) -> None:
    server.answer("SELECT many", streamed(["n"], ["integer"], [[n] for n in range(5000)]))
    server.answer("SELECT 1", rows(["n"], ["integer"], [[1]]))

    def run() -> None:
        with Client(server.url, KEY) as client:
            assert list(client.stream("SELECT many")) == [(n,) for n in range(5000)]
            assert sum(map(len, client.stream("SELECT many").batches())) == 5000
            for row in client.stream("SELECT many"):
                assert row == (0,)
                break
            assert client.query("SELECT 1").rows == [(1,)]

    await trio.to_thread.run_sync(run)


async def test_a_stream_that_trio_has_not_opened_says_so(server: FakeServer) -> None:
    async with TrioClient(server.url, KEY) as client:
        with pytest.raises(RuntimeError, match="async with"):
            async for _ in client.stream("SELECT"):
                raise AssertionError("there are no rows")
    assert server.requests == []


@pytest.mark.parametrize("streams", [False, True])
async def test_a_call_that_is_cancelled_leaves_a_client_that_works(
    server: FakeServer, streams: bool
) -> None:
    asked, ended = trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def hang(received: Any) -> Answer:
        trio.from_thread.run_sync(asked.set, trio_token=token)
        return stream(HEAD, lambda: _wait(ended), DONE)

    async def call() -> None:
        if streams:
            async with client.stream("SELECT") as incoming:
                await anext(incoming)
        else:
            await client.query("SELECT")

    server.answer("SELECT", hang)
    server.answer("SELECT 1", rows(["n"], ["integer"], [[1]]))
    async with TrioClient(server.url, KEY) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await asked.wait()
            nursery.cancel_scope.cancel()
        assert (await client.query("SELECT 1")).rows == [(1,)]
    ended.set()


async def test_an_answer_that_does_not_stream_is_read_as_one_that_does(server: FakeServer) -> None:
    server.answer("INSERT", changed(3))
    server.answer("SELECT", rows(["n"], ["integer"], [[1], [2]]))
    with Client(server.url, KEY) as client:
        with client.stream("INSERT") as none:
            assert (list(none), none.affected_rows, none.columns) == ([], 3, ())
        with client.stream("SELECT") as two:
            assert list(two) == [(1,), (2,)]
    async with TrioClient(server.url, KEY) as waiting, waiting.stream("SELECT") as incoming:
        assert [row async for row in incoming] == [(1,), (2,)]


async def test_a_stream_that_breaks_is_an_error_after_its_rows(server: FakeServer) -> None:
    server.answer("cut", stream(HEAD, event("row", {"n": 1})))
    failed = {"code": "22012", "name": "division_by_zero", "message": "division by zero"}
    server.answer("fail", stream(HEAD, event("row", {"n": 1}), event("error", {"error": failed})))
    for sql, expected in (("cut", ConnectionLost), ("fail", DivisionByZero)):
        got: list[Any] = []
        with Client(server.url, KEY) as client, client.stream(sql) as found:
            with pytest.raises(expected):
                got.extend(iter(found))
        async with TrioClient(server.url, KEY) as waiting, waiting.stream(sql) as incoming:
            with pytest.raises(expected):
                async for row in incoming:
                    got.append(row)
        assert len(got) <= 2


async def test_lists_are_read_to_their_last_page(server: FakeServer) -> None:
    pages = {"/v1/keys": (["a"], "x y"), "/v1/keys?cursor=x+y": (["b"], None)}
    for path, (names, cursor) in pages.items():
        records = [{"id": name} for name in names]
        body = {"success": True, "keys": records, "next_cursor": cursor}
        server.route("GET", path, Answer(body))
    async with both(server) as call:
        assert await call("keys") == [{"id": "a"}, {"id": "b"}]


async def test_records_are_made_changed_and_removed(server: FakeServer) -> None:
    server.route("POST", "/v1/databases", Answer({"success": True, "name": "shop"}, 201))
    server.route("DELETE", "/v1/databases/a%2Fb", Answer(status=204))
    server.route("POST", "/v1/keys", Answer({"success": True, "id": "k", "key": "svc_k_x"}, 201))
    server.route("POST", "/v1/keys/k/rotate", Answer({"success": True, "key": "svc_k_y"}, 201))
    server.route("DELETE", "/v1/keys/k", Answer(status=204))
    session = {"success": True, "session": {"id": "s", "token": "svc_s_x"}}
    server.route("POST", "/v1/session", Answer(session, 201))
    server.route("POST", "/v1/session/refresh", Answer(session))
    server.route("DELETE", "/v1/session", Answer(status=204))
    server.route("GET", "/tables", Answer({"success": True, "database": "main", "tables": []}))
    async with both(server, "main") as call:
        assert await call("create_database", "shop") == {"name": "shop"}
        assert await call("delete_database", "a/b") is None
        assert await call("create_key", "ci", ["data:read"]) == {"id": "k", "key": "svc_k_x"}
        assert await call("rotate_key", "k", 60) == {"key": "svc_k_y"}
        assert await call("revoke_key", "k") is None
        assert (await call("open_session", "main"))["token"] == "svc_s_x"
        assert (await call("refresh_session"))["id"] == "s"
        assert await call("end_session") is None
        assert await call("tables") == {"database": "main", "tables": []}
        with pytest.raises(NotFound):
            await call("delete_database", "other")
    made = [each.body for each in server.requests if each.path == "/v1/keys"]
    assert made == [{"name": "ci", "scopes": ["data:read"]}] * 2
    tables = [each.headers["x-database"] for each in server.requests if each.path == "/tables"]
    assert tables == ["main", "main"]


async def test_a_server_that_is_not_there_is_connection_failed() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with Client(url, KEY) as client, pytest.raises(ConnectionFailed, match=url) as caught:
            client.query("SELECT 1")
        assert "qserver serve" in str(caught.value.hint)
        async with TrioClient(url, KEY) as waiting:
            with pytest.raises(ConnectionFailed, match=url):
                await waiting.query("SELECT 1")


def test_a_server_that_hangs_up_leaves_the_outcome_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with Client(url, KEY) as client, pytest.raises(ConnectionLost) as caught:
            client.query("INSERT")
        thread.join()
    assert "perhaps applied" in repr(caught.value)


def test_a_silent_server_is_given_up_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Client(url, KEY, silence_seconds=0.05) as client:
            with pytest.raises(ConnectionLost, match="silent"):
                client.query("SELECT 1")


OF_LIVE = {"database", "timeout_ms", "every_ms", "min_version", "consistency", "max_age_ms"}


@pytest.mark.parametrize("flavour", [Client, TrioClient])
@pytest.mark.parametrize(
    ("method", "shape", "ignored"),
    [
        ("query", QueryRequest, {"live", "every_ms"}),
        ("transaction", TransactionRequest, set()),
        ("stream", QueryRequest, {"dry_run", "live", "every_ms"}),
        ("live", QueryRequest, set(QueryRequest.__struct_fields__) - OF_LIVE),
        ("open_transaction", OpenRequest, set()),
    ],
)
def test_the_options_that_a_call_offers_are_the_fields_that_the_server_takes(
    flavour: type, method: str, shape: type[Struct], ignored: set[str]
) -> None:
    offered = set(re.findall(r"`(\w+)`", getattr(flavour, method).__doc__))
    arguments = {"sql", "params", "statements", "format"}
    if method in ("query", "transaction"):
        offered.remove("idempotency_key")  # which is a header
    assert offered == set(shape.__struct_fields__) - arguments - ignored


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://host", "http://", "", "http://[::1"])
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="is not the URL"):
        Client(url, KEY)


def test_the_key_is_in_no_text(server: FakeServer) -> None:
    with Client(server.url, "svc_k_secret", "shop") as client:
        assert repr(client) == f"<client of {server.url}, database shop>"
        with pytest.raises(Unauthorized) as caught:
            client.query("SELECT 1")
    assert "secret" not in repr(caught.value) + str(vars(caught.value))


@pytest.mark.parametrize("key", ["svc_k_a\r\nX: y", "svc_k_ä", "svc k"])
def test_a_key_that_is_none_is_refused_without_being_shown(key: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        Client("http://127.0.0.1:1", key)
    assert key not in str(caught.value) + str(caught.value.hint)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://127.9.9.9", True),
        ("http://[::1]:8000", True),
        ("https://localhost", True),
        ("https://LOCALHOST:8443", True),
        ("https://db.example.com", False),
        ("http://localhost.example.com", False),
        ("http://10.0.0.1", False),
        ("http://[2001:db8::1]", False),
    ],
)
async def test_only_a_server_elsewhere_is_asked_to_compress(url: str, local: bool) -> None:
    with Client(url, KEY) as blocking:
        async with TrioClient(url, KEY) as waiting:
            for client in (blocking, waiting):
                accepted = client._http.headers["accept-encoding"]
                assert accepted == "identity" if local else "gzip" in accepted


async def test_statements_by_name_and_parameters_that_a_session_binds(server: FakeServer) -> None:
    server.answer("mine", rows(["n"], ["integer"], [[1]]))
    server.route("POST", "/v1/transaction", Answer({**changed(1).body, "results": []}))
    server.route("POST", "/v1/keys", Answer({"success": True, "id": "k", "key": "svc_k_x"}, 201))
    server.route("PATCH", "/v1/keys/k", Answer({"success": True, "id": "k"}))
    session = {"success": True, "session": {"id": "s", "token": "svc_s_x"}}
    server.route("POST", "/v1/session", Answer(session, 201))
    statements = {"mine": "SELECT n FROM t WHERE owner = :user"}
    async with both(server) as call:
        made = await call("create_key", "b", statements=statements, bound=["user"])
        assert made["id"] == "k"
        assert await call("change_key", "k", statements=statements, bound=[]) == {"id": "k"}
        assert (await call("open_session", bind={"user": 42}))["token"] == "svc_s_x"
        await call("open_session", bind={"user": None}, allow_null=True)
        assert (await call("query", Named("mine"), {"a": 1})).rows == [(1,)]
        await call("transaction", [Named("one"), Statement(Named("two"), {"b": 2}), "SELECT 3"])
    bodies = [each.body for each in server.requests]
    assert bodies[::2] == bodies[1::2]
    assert bodies[::2] == [
        {"name": "b", "statements": statements, "bound": ["user"]},
        {"statements": statements, "bound": []},
        {"bind": {"user": 42}},
        {"bind": {"user": None}, "allow_null": True},
        {"statement": "mine", "params": {"a": 1}, "format": "arrays"},
        {
            "statements": [
                {"statement": "one"},
                {"statement": "two", "params": {"b": 2}},
                "SELECT 3",
            ]
        },
    ]


def live_events(*, end: bytes = b"") -> list[Piece]:
    return [
        event("columns", {"columns": ["n"], "types": ["integer"], "version": 3}),
        event("row", {"n": 1}) + event("row", {"n": 1}) + event("row", {"n": 2}),
        event("ready", {"version": 3, "row_count": 3}),
        event("delete", {"n": 1}) + event("insert", {"n": 5}),
        event("version", {"version": 7}) + b": keep-alive\n\n",
        event("insert", {"n": 6}) + event("version", {"version": 8}),
        end,
    ]


def test_a_live_query_keeps_its_rows_up_to_date(server: FakeServer) -> None:
    failed = event("error", {"error": {"code": "42P01", "name": "undefined_table", "message": "t"}})
    server.answer("SELECT n", stream(*live_events(end=failed)))
    changes: list[Any] = []
    with Client(server.url, KEY) as client:
        with client.live("SELECT n", [1], every_ms=100) as query:
            assert query.columns == ("n",)
            with pytest.raises(UndefinedTable):
                for change in query:
                    changes.append(change)
            assert (query.version, sorted(query.rows)) == (8, [(1,), (2,), (5,), (6,)])
    assert changes == [Change(7, [(1,)], [(5,)]), Change(8, [], [(6,)])]
    (received,) = server.requests
    assert received.body == {"sql": "SELECT n", "params": [1], "live": True, "every_ms": 100}
    assert received.headers["accept"] == "text/event-stream"


async def test_a_live_query_that_is_cut_off_says_so(server: FakeServer) -> None:
    server.answer("SELECT n", stream(*live_events()))
    async with TrioClient(server.url, KEY) as client, client.live("SELECT n") as query:
        with pytest.raises(ConnectionLost, match="live query ended"):
            async for _ in query:
                pass
        assert (query.version, len(query.rows)) == (8, 4)
    server.answer("SELECT n", error("42P01", "undefined_table", "no t"))
    with Client(server.url, KEY) as blocking, pytest.raises(UndefinedTable):
        with blocking.live("SELECT n"):
            pass


def open_routes(server: FakeServer) -> None:
    opened = {"success": True, "transaction": {"id": "txn_1", "version": 3}}
    server.route("POST", "/v1/transaction/open", Answer(opened, 201))
    committed = {"success": True, "version": 4, "affected_rows": 1, "timings": {}}
    server.route("POST", "/v1/transaction/txn_1/commit", Answer(committed))
    server.route("DELETE", "/v1/transaction/txn_1", Answer(status=204))
    server.route("POST", "/v1/transaction", Answer({**changed(1).body, "results": []}))


async def test_an_open_transaction_commits_at_the_end_of_its_block(server: FakeServer) -> None:
    open_routes(server)
    with Client(server.url, KEY, "shop") as client, client.begin(read_only=False) as one:
        one.query("SELECT 1")
        one.together(["SELECT 2"])
        with one.stream("SELECT 3") as found:
            assert list(found) == []
    sent = [(each.method, each.path, each.body) for each in server.requests]
    server.requests.clear()
    async with TrioClient(server.url, KEY, "shop") as trio_client:
        async with trio_client.begin(read_only=False) as two:
            await two.query("SELECT 1")
            await two.together(["SELECT 2"])
            async with two.stream("SELECT 3") as also:
                assert [row async for row in also] == []
    assert [(each.method, each.path, each.body) for each in server.requests] == sent
    assert sent[0] == ("POST", "/v1/transaction/open", {"database": "shop", "read_only": False})
    assert [each[2]["transaction"] for each in sent[1:4]] == ["txn_1"] * 3
    assert sent[4:] == [("POST", "/v1/transaction/txn_1/commit", None)]


async def test_an_exception_rolls_an_open_transaction_back(server: FakeServer) -> None:
    open_routes(server)
    with Client(server.url, KEY) as client, pytest.raises(KeyError), client.begin():
        raise KeyError
    assert [each.method for each in server.requests] == ["POST", "DELETE"]
    server.route("DELETE", "/v1/transaction/txn_1", error("QS030", "gone", "gone", status=404))
    async with TrioClient(server.url, KEY) as trio_client:
        with pytest.raises(KeyError):
            async with trio_client.begin():
                raise KeyError
        async with trio_client.begin() as left:
            assert (await left.commit())["version"] == 4
    assert [each.method for each in server.requests[2:]] == ["POST", "DELETE", "POST", "POST"]


def fed(*ends: Piece) -> Answer:
    change = {"version": 8, "table": "t", "op": "insert", "after": {"n": 1}}
    return stream(
        event("version", {"version": 7}),
        event("change", change) + event("change", change),
        b'event: version\nid: 8\ndata: {"version":8}\n\n: keep-alive\n\n',
        event("change", {**change, "version": 9}),
        *ends,
    )


async def test_changes_come_as_whole_versions(server: FakeServer) -> None:
    slow = event("error", {"error": {"code": "QS031", "name": "reader_too_slow", "message": "x"}})
    server.route("GET", "/v1/changes?since=5&tables=t%2Cu&database=shop", fed(slow))
    with Client(server.url, KEY, "shop") as client:
        with client.changes(5, ["t", "u"]) as feed:
            assert feed.version == 5
            versions = []
            with pytest.raises(ReaderTooSlow):
                for version in feed:
                    versions.append(version)
            assert feed.version == 8
    assert [(each.version, len(each.changes)) for each in versions] == [(8, 2)]
    assert server.requests[0].headers["accept"] == "text/event-stream"
    server.route("GET", "/v1/changes?since=5", fed())
    async with TrioClient(server.url, KEY) as waiting, waiting.changes(5) as feed:
        with pytest.raises(ConnectionLost, match="stream of changes ended"):
            async for version in feed:
                versions.append(version)
        assert feed.version == 8
    assert versions[0] == versions[1]
    server.route("GET", "/v1/changes?since=5", error("QS004", "history_too_old", "x", status=410))
    with Client(server.url, KEY) as client, pytest.raises(HistoryTooOld):
        with client.changes(5):
            pass
