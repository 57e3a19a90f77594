"""A long answer is encoded as it is read: what nobody reads is not made."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from qserver.errors import ProgramLimitExceeded
from qserver.limits import ANSWER_BYTES_WHOLE, ANSWER_PART_BYTES, ROW_BYTES_MAX
from qserver.values.types import INTEGER, TEXT
from qserver.web.app import Application
from qserver.web.asgi import AsgiApplication, Message
from qserver.web.statements.rows import RowEncoder
from tests.web.test_app import KEY, new_app, running

ROWS = 20_000
LONG = f"SELECT i AS id, repeat('x', 100) || i AS text FROM generate_series(1, {ROWS}) AS s(i)"


class Reader:
    """A client that takes so many parts of an answer, and then no more."""

    def __init__(self, parts_most: int = 1 << 30) -> None:
        self.parts: list[bytes] = []
        self.headers: dict[bytes, bytes] = {}
        self.ended = False
        self._most = parts_most

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.headers = dict(message["headers"])
            return
        if len(self.parts) == self._most:
            await trio.sleep_forever()
        self.parts.append(message.get("body", b""))
        self.ended = not message.get("more_body", False)

    def answer(self) -> Any:
        assert self.ended
        return json.loads(b"".join(self.parts))


async def ask(app: Application, path: str, request: dict[str, Any], reader: Reader) -> None:
    body = json.dumps(request).encode()
    headers = [(b"authorization", f"Bearer {KEY}".encode()), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
    messages = [{"type": "http.request", "body": body}]

    async def receive() -> Message:
        if not messages:
            await trio.sleep_forever()
        return messages.pop()

    await AsgiApplication(app)({**scope, "query_string": b""}, receive, reader.send)


@pytest.mark.half
async def test_a_long_answer_comes_in_parts_and_is_the_same() -> None:
    app = new_app()
    async with running(app):
        whole, parts = Reader(), Reader()
        await ask(app, "/v1/query", {"sql": f"{LONG} LIMIT 10"}, whole)
        await ask(app, "/v1/query", {"sql": LONG}, parts)
    assert len(whole.parts) == 1 and b"content-length" in whole.headers
    assert len(parts.parts) > 8 and b"content-length" not in parts.headers
    assert max(map(len, parts.parts)) < 2 * ANSWER_PART_BYTES
    answer = parts.answer()
    assert answer["rows"][:10] == whole.answer()["rows"]
    assert [row["id"] for row in answer["rows"]] == list(range(1, ROWS + 1))
    assert answer.keys() == whole.answer().keys()


@pytest.mark.parametrize("form", ["objects", "arrays"])
async def test_the_results_of_a_transaction_come_in_parts_too(form: str) -> None:
    app = new_app()
    async with running(app):
        reader = Reader()
        statements = ["SELECT 1 AS one", LONG, "SELECT 2 AS two WHERE false"]
        await ask(app, "/v1/transaction", {"statements": statements, "format": form}, reader)
    assert len(reader.parts) > 8
    first, long, none = reader.answer()["results"]
    assert first["rows"] == [{"one": 1}] if form == "objects" else [[1]]
    assert len(long["rows"]) == ROWS and none["rows"] == []


async def test_what_a_client_does_not_read_is_not_encoded_and_counts_as_memory() -> None:
    app = new_app()
    async with running(app):
        reader = Reader(parts_most=3)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, app, "/v1/query", {"sql": LONG}, reader)
            await wait_all_tasks_blocked()
            assert sum(map(len, reader.parts)) < ANSWER_BYTES_WHOLE
            assert app.service.memory.held > ROWS * 100
            nursery.cancel_scope.cancel()
        assert app.service.memory.held == 0


async def test_what_is_committed_is_answered_however_little_memory_is_left() -> None:
    app = new_app()
    async with running(app):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, app, "/v1/query", {"sql": LONG}, Reader(parts_most=1))
            await wait_all_tasks_blocked()
            app.service.memory.most = app.service.memory.held - 1
            nursery.cancel_scope.cancel()
        read, defined = Reader(), Reader()
        await ask(app, "/v1/query", {"sql": LONG}, read)
        statements = ["CREATE TABLE t (id INT)", LONG]
        await ask(app, "/v1/transaction", {"statements": statements}, defined)
    assert read.answer()["error"]["code"] == "53200"
    assert defined.answer()["success"]


def test_rows_are_cut_by_their_bytes() -> None:
    encoder = RowEncoder(("id", "text"), (INTEGER, TEXT))
    rows = [(at, "x" * (200_000 if at % 5 == 0 else 10)) for at in range(100)]
    parts = list(encoder.cut(rows))
    assert [row for part, _ in parts for row in part] == rows
    assert all(size == encoder.size_about(part) for part, size in parts)
    assert all(size <= ANSWER_PART_BYTES for part, size in parts if len(part) > 1)
    assert 15 <= len(parts) <= 40
    assert list(encoder.cut([])) == []


def test_a_row_that_cannot_be_sent_in_one_piece_is_refused() -> None:
    encoder = RowEncoder(("a", "b"), (TEXT, TEXT))
    half = "x" * (ROW_BYTES_MAX // 2)
    with pytest.raises(ProgramLimitExceeded, match="row is too big"):
        list(encoder.cut([(half, half + "x")]))
    assert [part for part, _ in encoder.cut([(half, half)])] == [[(half, half)]]


@pytest.mark.parametrize(
    "statements",
    [
        ["INSERT INTO t VALUES (2) RETURNING id, {five}"],
        ["INSERT INTO t VALUES (2)", "SELECT {five} FROM long"],
        ["INSERT INTO t VALUES (2)", "SELECT array[{five}] FROM long"],
    ],
)
async def test_a_write_whose_answer_has_too_big_a_row_is_not_applied(statements: list[str]) -> None:
    five = ", ".join(["(SELECT text FROM long)"] * 5)
    app = new_app()
    async with running(app):
        for sql in (
            "CREATE TABLE t (id INT PRIMARY KEY)",
            "CREATE TABLE long (text TEXT)",
            f"INSERT INTO long VALUES (repeat('x', {ROW_BYTES_MAX // 5 + 1}))",
        ):
            await ask(app, "/v1/query", {"sql": sql}, Reader())
        refused, after = Reader(), Reader()
        body = {"statements": [each.format(five=five) for each in statements]}
        await ask(app, "/v1/transaction", body, refused)
        await ask(app, "/v1/query", {"sql": "SELECT count(*) AS rows FROM t"}, after)
    error = refused.answer()["error"]
    assert error["code"] == "54000" and error["message"].startswith("row is too big")
    assert error["statement"] == len(statements) - 1
    assert after.answer()["rows"] == [{"rows": 0}], "what is said to have failed is not applied"
