"""Streams beside a clock that jumps: silence, readers that leave, our own mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from qserver.errors import DivisionByZero, QserverError
from qserver.http1 import AnswerCut
from qserver.limits import KEEP_ALIVE_SECONDS
from qserver.query.memory_pool import MemoryPool
from qserver.query.row_stream import RowStream
from qserver.values.types import INTEGER
from qserver.web.statements.rows import RowEncoder
from qserver.web.streaming.parts import AnswerParts
from qserver.web.streaming.streams import (
    CsvLines,
    EventStream,
    Form,
    JsonArray,
    JsonLines,
    RowParts,
)

COLUMNS, TYPES = ("n",), (INTEGER,)
Step = float | list[tuple[int]] | Exception
"""Seconds of silence, a page, or a failure."""


class FakeStream(RowStream):
    """Rows that come when the test says so."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.columns, self.types, self.version = COLUMNS, TYPES, 7
        self.affected_rows = 0
        self.ended = self.closed = self.committed = False
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
    """Asks for parts and keeps them, with the time; may be told to close them early."""

    def __init__(self, *, leaves_at: int | None = None) -> None:
        self.sent: list[tuple[float, bytes]] = []
        self._leaves_at = leaves_at

    @property
    def text(self) -> str:
        return b"".join(part for _, part in self.sent).decode()

    async def run(self, *steps: Step, form_class: Form = EventStream) -> FakeStream:
        stream = FakeStream(steps)
        form = form_class(RowEncoder(COLUMNS, TYPES))
        rows = RowParts(stream, form, "request-1", lambda: 0, _known, MemoryPool())
        parts = AnswerParts(rows.parts(trio.lowlevel.checkpoint), stream.aclose)
        if self._leaves_at != 0:
            async for part in parts:
                self.sent.append((trio.current_time(), part))
                if len(self.sent) == self._leaves_at:
                    break
        await parts.aclose()
        return stream


def _known(error: Exception) -> QserverError:
    return error if isinstance(error, QserverError) else QserverError("internal error")


async def test_silence_is_broken_before_a_proxy_loses_patience(autojump_clock: MockClock) -> None:
    server = FakeServer()
    await server.run([(1,)], *[1.0] * 40, [(2,)])
    assert server.text.count(": keep-alive\n\n") == 2
    times = [time for time, part in server.sent if part]
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert max(pauses) <= KEEP_ALIVE_SECONDS + 1
    assert "event: row\nid: 7:2\n" in server.text, "comments do not count as rows"


async def test_lines_are_kept_alive_with_empty_ones(autojump_clock: MockClock) -> None:
    server = FakeServer()
    await server.run([(1,)], *[1.0] * 20, [(2,)], form_class=JsonLines)
    assert server.text == '{"n":1}\n\n{"n":2}\n'


async def test_silence_does_not_show_in_csv_nor_in_the_value_of_an_array(
    autojump_clock: MockClock,
) -> None:
    server = FakeServer()
    await server.run([(1,)], *[1.0] * 20, [(2,)], form_class=CsvLines)
    assert server.text == "n\r\n1\r\n2\r\n"
    server = FakeServer()
    await server.run([(1,)], *[1.0] * 20, [(2,)], form_class=JsonArray)
    assert server.text == '[{"n":1}\n,\n{"n":2}]\n'


@pytest.mark.parametrize("form", [CsvLines, JsonArray])
async def test_a_format_without_words_for_errors_is_cut_off(form: Form) -> None:
    server = FakeServer()
    with pytest.raises(AnswerCut):
        await server.run([(1,)], DivisionByZero("division by zero"), [(2,)], form_class=form)
    assert "1" in server.text and "2" not in server.text and "]" not in server.text


@pytest.mark.parametrize("form", [EventStream, JsonLines])
async def test_the_last_part_ends_the_answer_and_nothing_follows_it(form: Form) -> None:
    server = FakeServer()
    stream = await server.run([(1,)], DivisionByZero("division by zero"), [(2,)], form_class=form)
    assert b'"code":"22012"' in server.sent[-1][1]
    assert '"code":"22012"' in server.text and '{"n":2}' not in server.text
    assert "event: done" not in server.text
    assert stream.closed


async def test_our_own_mistake_is_an_error_event_that_shows_no_internals() -> None:
    server = FakeServer()
    await server.run([(1,)], ZeroDivisionError("secret of the engine"))
    assert "event: error" in server.text and "internal error" in server.text
    assert "secret of the engine" not in server.text


@pytest.mark.parametrize("at", [0, 1, 2, 3])
async def test_a_reader_that_is_gone_ends_the_stream(at: int) -> None:
    server = FakeServer(leaves_at=at)
    stream = await server.run([(1,)], [(2,)])
    assert stream.closed and len(server.sent) == at
    assert "event: done" not in server.text


async def test_time_that_the_reader_takes_is_not_the_statement_s(autojump_clock: MockClock) -> None:
    stream = FakeStream([[(1,)], [(2,)]])
    away: list[float] = []
    stream.reader_was_away = away.append  # type: ignore[assignment,method-assign]
    form = EventStream(RowEncoder(COLUMNS, TYPES))
    rows = RowParts(stream, form, "id", lambda: 0, _known, MemoryPool())
    async for _ in rows.parts(trio.lowlevel.checkpoint):
        await trio.sleep(5)
    assert away == [5.0, 5.0, 5.0], "the head and two pages"


class Counted(bytes):
    """Counts those that are in memory."""

    alive = 0

    def __init__(self, *_: object) -> None:
        Counted.alive += 1

    def __del__(self) -> None:
        Counted.alive -= 1


class CountedEvents(EventStream):
    def rows(self, stream: RowStream, first: int, rows: Any) -> bytes:
        return Counted(super().rows(stream, first, rows))


async def test_what_was_sent_is_let_go_before_the_next_is_waited_for() -> None:
    class Watching(FakeStream):
        async def step(self) -> Any:
            alive.append(Counted.alive)
            return await super().step()

    alive: list[int] = []
    form = CountedEvents(RowEncoder(COLUMNS, TYPES))
    stream = Watching([[(1,)], [(2,)]])
    rows = RowParts(stream, form, "id", lambda: 0, _known, MemoryPool())
    async for _ in rows.parts(trio.lowlevel.checkpoint):
        _ = b""
    assert alive == [0, 0, 0]
