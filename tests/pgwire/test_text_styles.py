"""Settings that say how values are written as texts: IntervalStyle, floats, bytes."""

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


FLOATS = """
select 0.1::float8 + 0.2, 1e20::float8, 'NaN'::float8, 1::float4 / 3::float4,
    array['-0'::float8, 1e-5, null]
"""
BYTES = r"select '\x00ff5c41'::bytea, array['\x00'::bytea, 'a']"


async def test_floats_have_as_many_digits_as_the_session_asks_for() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        for digits, wanted in (
            ("0", (b"0.3", b"1e+20", b"NaN", b"0.333333", b"{-0,1e-05,NULL}")),
            ("-15", (b"0.3", b"1e+20", b"NaN", b"0.3", b"{-0,1e-05,NULL}")),
            ("3", (b"0.30000000000000004", b"1e+20", b"NaN", b"0.33333334", b"{-0,1e-05,NULL}")),
        ):
            await wire.run(f"set extra_float_digits = {digits}")
            assert rows(await wire.run(FLOATS)) == [wanted]
            got = await wire.ask(parse(FLOATS) + bind([]) + execute() + SYNC)
            assert rows(got) == [wanted]
            assert rows(await wire.run("show extra_float_digits")) == [(digits.encode(),)]
        binary = parse("select 0.1::float8") + bind([], results=(1,)) + execute() + SYNC
        await wire.run("set extra_float_digits = 0")
        assert rows(await wire.ask(binary)) == [(bytes.fromhex("3fb999999999999a"),)]
        assert code(await wire.run("set extra_float_digits = 4")) == "22023"


async def test_bytes_are_sent_with_escapes_if_the_session_asks_for_them() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run("begin; set local bytea_output = escape")
        assert rows(await wire.run(BYTES)) == [(rb"\000\377\\A", rb'{"\\000",a}')]
        await wire.run("commit")
        assert rows(await wire.run(BYTES)) == [(rb"\x00ff5c41", rb'{"\\x00","\\x61"}')]
        assert code(await wire.run("set bytea_output = nothing")) == "22023"
