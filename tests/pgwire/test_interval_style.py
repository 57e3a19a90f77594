"""IntervalStyle iso_8601: what frameworks set that read lengths of time as ISO 8601 writes them."""

from __future__ import annotations

from tests.pgwire.serving import serving
from tests.pgwire.wire import SYNC, Wire, bind, code, execute, parse, rows

QUERY = "select interval '1 year 2 mons -3 days 04:05:06.7', array[interval '1 day', null]"
ISO = [(b"P1Y2M-3DT4H5M6.7S", b"{P1D,NULL}")]
PLAIN = [(b"1 year 2 mons -3 days +04:05:06.7", b'{"1 day",NULL}')]


async def test_intervals_are_sent_in_the_style_of_the_session() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("set intervalstyle = iso_8601")
        for _ in range(2):
            assert rows(await wire.run(QUERY)) == ISO
            got = await wire.ask(parse(QUERY) + bind([]) + execute() + SYNC)
            assert rows(got) == ISO
        await wire.run("begin; set local intervalstyle = postgres")
        assert rows(await wire.run(QUERY)) == PLAIN
        await wire.run("commit")
        assert rows(await wire.run(f"{QUERY} from generate_series(1, 2)")) == ISO * 2
        assert rows(await wire.run("select interval '0', interval '-0.5'")) == [
            (b"PT0S", b"PT-0.5S")
        ]
        assert rows(await wire.run("show intervalstyle")) == [(b"iso_8601",)]
        await wire.run("reset intervalstyle")
        assert rows(await wire.run(QUERY)) == PLAIN


async def test_what_is_another_text_within_statements_is_refused() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        assert code(await wire.run("set intervalstyle = sql_standard")) == "0A000"
        assert code(await wire.run("set intervalstyle = nothing_such")) == "22023"
        await wire.run("set intervalstyle = iso_8601")
        assert rows(await wire.run("select (interval '1 day')::text")) == [(b"1 day",)]
