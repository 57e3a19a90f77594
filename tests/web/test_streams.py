"""Streams beside a clock that jumps: silence, readers that leave, our own mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from qserver.engine.row_stream import RowStream
from qserver.errors import DivisionByZero, QserverError
from qserver.limits import KEEP_ALIVE_SECONDS
from qserver.values.types import INTEGER
from qserver.web.exchange import Exchange, Message
from qserver.web.rows import RowEncoder
from qserver.web.streams import EventStream, JsonLines, send_stream

COLUMNS, TYPES = ("n",), (INTEGER,)
Step = float | list[tuple[int]] | Exception
"""Seconds of silence, a page, or a failure."""


class FakeStream(RowStream):
    """Rows that come when the test says so."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.columns, self.types, self.version = COLUMNS, TYPES, 7
        self.affected_rows = 0
        self.ended = self.closed = False
        self._steps = list(steps)

    async def step(self) -> Any:
        if not self._steps:
            self.ended = True
            return None
        step = self._steps.pop(0)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float):
            await trio.sleep(step)
            return None
        return step

    async def aclose(self) -> None:
        self.ended = self.closed = True
        await trio.lowlevel.checkpoint()

    def reader_was_away(self, seconds: float) -> None:
        """No deadline waits for the reader."""


class FakeServer:
    """Keeps what is sent, with the time; may refuse it, or say that the client has left."""

    def __init__(self, *, leaves_after: float | None = None, breaks_at: int | None = None) -> None:
        self.sent: list[tuple[float, Message]] = []
        self._leaves_after = leaves_after
        self._breaks_at = breaks_at

    async def receive(self) -> Message:
        await trio.sleep(self._leaves_after or trio.current_time() + 1e9)
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if self._breaks_at is not None and len(self.sent) >= self._breaks_at:
            raise BrokenPipeError("the client is gone")
        self.sent.append((trio.current_time(), message))

    @property
    def text(self) -> str:
        return b"".join(message.get("body", b"") for _, message in self.sent).decode()

    async def run(self, *steps: Step, lines: bool = False) -> FakeStream:
        exchange = Exchange({}, self.receive, self.send, {}, "request-1")
        stream = FakeStream(steps)
        encoder = RowEncoder(COLUMNS, TYPES)
        form = JsonLines(encoder) if lines else EventStream(encoder)
        await send_stream(exchange, stream, form, _internal, trio.lowlevel.checkpoint)
        return stream


def _internal(error: Exception) -> QserverError:
    return QserverError("internal error")


async def test_silence_is_broken_before_a_proxy_loses_patience(autojump_clock: MockClock) -> None:
    server = FakeServer()
    await server.run([(1,)], *[1.0] * 40, [(2,)])
    assert server.text.count(": keep-alive\n\n") == 2
    times = [time for time, message in server.sent if message.get("body")]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert max(pauses) <= KEEP_ALIVE_SECONDS + 1
    assert "event: row\nid: 7:2\n" in server.text, "comments do not count as rows"


async def test_lines_are_kept_alive_with_empty_ones(autojump_clock: MockClock) -> None:
    server = FakeServer()
    await server.run([(1,)], *[1.0] * 20, [(2,)], lines=True)
    assert server.text == '{"n":1}\n\n{"n":2}\n'


@pytest.mark.parametrize("lines", [False, True])
async def test_the_last_part_ends_the_answer_and_nothing_follows_it(lines: bool) -> None:
    server = FakeServer()
    stream = await server.run([(1,)], DivisionByZero("division by zero"), [(2,)], lines=lines)
    more = [message.get("more_body", False) for _, message in server.sent[1:]]
    assert more == [True] * (len(more) - 1) + [False]
    assert '"code":"22012"' in server.text and '{"n":2}' not in server.text
    assert "event: done" not in server.text
    assert stream.closed


async def test_our_own_mistake_is_an_error_event_that_shows_no_internals() -> None:
    server = FakeServer()
    await server.run([(1,)], ZeroDivisionError("secret of the engine"))
    assert "event: error" in server.text and "internal error" in server.text
    assert "secret of the engine" not in server.text


async def test_a_reader_that_says_it_is_gone_ends_the_stream(autojump_clock: MockClock) -> None:
    server = FakeServer(leaves_after=5.0)
    stream = await server.run([(1,)], *[1.0] * 1000)
    assert trio.current_time() < 10
    assert stream.closed and "event: done" not in server.text


@pytest.mark.parametrize("at", [1, 2, 3])
async def test_a_reader_that_is_found_to_be_gone_ends_the_stream_quietly(at: int) -> None:
    server = FakeServer(breaks_at=at)
    stream = await server.run([(1,)], [(2,)])
    assert stream.closed
