"""Temporary tables of connections: psycopg, and connections that end in every way."""

from __future__ import annotations

import psycopg
import pytest

from tests.pgwire.serving import Served, in_thread, serving
from tests.pgwire.wire import Wire, code, rows, tags


def _psycopg(served: Served) -> None:
    with (
        psycopg.connect(served.url, autocommit=True) as one,
        psycopg.connect(served.url, autocommit=True) as other,
    ):
        one.execute("create table t (id int primary key, n text)")
        one.execute("insert into t values (1, 'lasting')")
        for connection, text in ((one, "one"), (other, "other")):
            connection.execute("create temp table t (id serial primary key, n text)")
            with connection.cursor().copy("copy t (n) from stdin") as copy:
                for number in range(5):
                    copy.write_row((f"{text} {number}",))
        select = "select id, n from t where id = %s"
        for _ in range(2):
            for connection, text in ((one, "one"), (other, "other")):
                for prepare in (False, True):
                    found = connection.execute(select, (2,), prepare=prepare).fetchone()
                    assert found == (2, f"{text} 1")
        with one.cursor().copy("copy t to stdout") as copy:
            assert b"".join(copy).count(b"\n") == 5
        with one.transaction():
            one.execute("create temp table gone on commit drop as select n from t")
            with one.cursor("named") as cursor:
                cursor.execute("select n from gone order by n")
                assert cursor.fetchone() == ("one 0",)
            one.execute("insert into public.t select id + 10, n from t")
            with pytest.raises(psycopg.errors.UniqueViolation), one.transaction():
                one.execute("insert into t values (1, 'again')")
        with pytest.raises(psycopg.errors.UndefinedTable):
            one.execute("select * from gone")
        other.execute("discard all")
        assert other.execute("select count(*) from t").fetchone() == (6,)
        assert one.execute("select count(*) from t").fetchone() == (5,)
    with psycopg.connect(served.url) as later:
        assert later.execute("select count(*) from t").fetchone() == (6,)


async def test_temporary_tables_of_psycopg() -> None:
    async with serving() as served:
        await in_thread(_psycopg, served)


async def test_nothing_is_left_of_a_connection_however_it_ends() -> None:
    async with serving() as served:
        grant = await served.grant()
        async with await Wire.enter(served.port) as watching:
            await watching.run("create table lasting (a int)")
            for ending in ("terminate", "cut", "inside", "failed"):
                async with await Wire.enter(served.port) as wire:
                    assert tags(await wire.run("create temp table t (a int)")) == ["CREATE TABLE"]
                    await wire.run("insert into t select n from generate_series(1, 5000) n")
                    assert grant.share.memory.held > 0
                    if ending == "inside":
                        await wire.run("begin; insert into t values (1)")
                    elif ending == "failed":
                        await wire.run("begin; insert into t values (1); select nope")
                    elif ending == "terminate":
                        await wire.send(b"X\0\0\0\4")
                while grant.share.memory.held:
                    await watching.run("select 1")
            assert code(await watching.run("select * from t")) == "42P01"
            found = await watching.run("select count(*) from pg_class where relpersistence = 't'")
            assert rows(found) == [(b"0",)]
