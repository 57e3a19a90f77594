"""Transactions of a session: states, implicit ones, conflicts, endings."""

from __future__ import annotations

from qserver.pgwire.limits import TRANSACTION_IDLE_SECONDS
from tests.pgwire.serving import KEY, serving
from tests.pgwire.wire import SYNC, Wire, bind, code, execute, kinds, parse, rows, startup, tags

TABLE = "create table t (id int primary key, n int)"


async def status(wire: Wire, sql: str) -> str:
    got = await wire.run(sql)
    assert got[-1].kind == "Z"
    return got[-1].body.decode()


async def test_the_states_of_a_transaction() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        assert await status(wire, TABLE) == "I"
        assert await status(wire, "begin") == "T"
        assert await status(wire, "insert into t values (1, 1)") == "T"
        assert await status(wire, "savepoint a") == "T"
        assert await status(wire, "insert into t values (1, 1)") == "E"
        assert code(await wire.run("select 1")) == "25P02"
        assert await status(wire, "rollback to a") == "T"
        assert await status(wire, "release a") == "T"
        assert tags(await wire.run("commit")) == ["COMMIT"]
        assert rows(await wire.run("select count(*) from t")) == [(b"1",)]


async def test_a_failed_transaction_is_rolled_back_by_commit() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.run("begin; insert into t values (1, 1)")
        assert await status(wire, "select nope") == "E"
        assert code(await wire.ask(parse("select 1") + bind() + SYNC)) == "25P02"
        got = await wire.run("commit")
        assert tags(got) == ["ROLLBACK"] and got[-1].body == b"I"
        assert rows(await wire.run("select count(*) from t")) == [(b"0",)]


async def test_every_error_fails_a_transaction() -> None:
    """Also those that the engine does not hold against one, such as a wrong number of values."""
    async with serving() as served, await Wire.enter(served.port) as wire:
        for wrong in (parse("select $1") + bind(), parse("selec"), bind(name="never")):
            await wire.run("begin")
            got = await wire.ask(wrong + SYNC)
            assert kinds(got)[-2:] == "EZ" and got[-1].body == b"E", got
            await wire.run("rollback")


async def test_several_statements_are_one_transaction() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        got = await wire.run("insert into t values (1, 1); insert into t values (1, 2)")
        assert kinds(got) == "CEZ" and got[-1].body == b"I"
        assert rows(await wire.run("select count(*) from t")) == [(b"0",)]
        got = await wire.run("insert into t values (1, 1); insert into t values (2, 2)")
        assert tags(got) == ["INSERT 0 1"] * 2
        got = await wire.run("insert into t values (3, 3); begin; insert into t values (4, 4)")
        assert got[-1].body == b"T"
        await wire.run("rollback")
        got = await wire.run("insert into t values (5, 5); commit; select nope")
        assert kinds(got) == "CNCEZ"
        found = rows(await wire.run("select id from t order by id"))
        assert found == [(b"1",), (b"2",), (b"5",)]


async def test_notices_outside_and_inside() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        for sql, expected in (("commit", "25P01"), ("rollback", "25P01"), ("begin", None)):
            got = await wire.run(sql)
            told = [each.fields()["C"] for each in got if each.kind == "N"]
            assert told == ([] if expected is None else [expected])
        got = await wire.run("begin")
        assert got[0].fields()["C"] == "25001" and got[0].fields()["S"] == "WARNING"
        assert code(await wire.run("rollback to never")) == "3B001"
        await wire.run("rollback")
        assert code(await wire.run("savepoint a")) == "25P01"


async def test_a_conflict_is_told_at_commit() -> None:
    async with (
        serving() as served,
        await Wire.enter(served.port) as first,
        await Wire.enter(served.port) as second,
    ):
        await first.run(TABLE + "; insert into t values (1, 1)")
        for each in (first, second):
            await each.run("begin; update t set n = n + 1 where id = 1")
        assert tags(await first.run("commit")) == ["COMMIT"]
        got = await second.run("commit")
        assert code(got) == "40001" and got[-1].body == b"I"
        assert rows(await second.run("select n from t")) == [(b"2",)]


async def test_read_only_transactions() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.run("begin transaction isolation level repeatable read, read only")
        assert code(await wire.run("insert into t values (1, 1)")) == "25006"
        await wire.run("rollback")
        await wire.run("begin; set transaction read only")
        assert code(await wire.run("insert into t values (1, 1)")) == "25006"
        await wire.run("rollback")
        await wire.run("set session characteristics as transaction read only")
        await wire.run("begin")
        assert code(await wire.run("create table u (id int)")) == "25006"
        await wire.run("rollback")


async def test_a_session_that_leaves_lets_its_transaction_go() -> None:
    async with serving() as served:
        async with await Wire.enter(served.port) as wire:
            await wire.run(TABLE)
            await wire.run("begin; insert into t values (1, 1)")
            assert served.service.plane.open_transactions.statistics().held == 1
        async with await Wire.enter(served.port) as wire:
            assert rows(await wire.run("select count(*) from t")) == [(b"0",)]
            await wire.run("select 1")
            assert served.service.plane.open_transactions.statistics().held == 0


async def test_a_session_idle_in_a_transaction_ends() -> None:
    hello = startup(user="me", database="main", idle_in_transaction_session_timeout="1ms")
    async with serving() as served, await Wire.enter(served.port, hello) as wire:
        await wire.run("begin")
        got = await wire.until_end()
        assert code(got) == "25P03" and got[0].fields()["S"] == "FATAL"
        assert served.service.plane.open_transactions.statistics().held == 0
    assert TRANSACTION_IDLE_SECONDS > 0


async def test_a_revoked_key_ends_its_sessions() -> None:
    async with serving() as served:
        plane = served.service.plane
        record, secret = await plane.keys.create(await served.grant(), "for a session")
        password = b"p" + (len(secret) + 5).to_bytes(4, "big") + secret.encode() + b"\0"
        async with (
            await Wire.enter(served.port, password=password) as inside,
            await Wire.enter(served.port, password=password) as outside,
            await Wire.enter(served.port) as other,
        ):
            await inside.run("begin; select 1")
            await plane.keys.revoke(await served.grant(), record.id)
            got = await inside.until_end()
            assert got[0].fields()["S"] == "FATAL"
            await outside.send(b"Q\0\0\0\x0dselect 1\0")
            assert code(await outside.until_end()) == "28000"
            assert rows(await other.run("select 1")) == [(b"1",)]
    assert KEY


async def test_execute_alone_is_repeated_by_the_server() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        update = parse("update t set n = n + 1") + bind() + execute() + SYNC
        assert tags(await wire.ask(update)) == ["UPDATE 0"]
        assert served.service.plane.open_transactions.statistics().opened == 0


async def test_the_characteristics_of_a_session_are_its_defaults() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        for how in (
            "set session characteristics as transaction read only, isolation level read committed",
            "set default_transaction_read_only = on; set default_transaction_isolation ="
            " 'read committed'",
        ):
            await wire.run(how)
            for insert in ("insert into t values (1, 1)", "select 1; insert into t values (1, 1)"):
                assert code(await wire.run(insert)) == "25006"
            insert_later = parse("insert into t values (1, 1)") + bind() + execute()
            assert code(await wire.ask(insert_later + SYNC)) == "25006"
            for name, value in (("read_only", b"on"), ("isolation", b"read committed")):
                for prefix in ("default_transaction_", "transaction_"):
                    assert rows(await wire.run(f"show {prefix}{name}")) == [(value,)]
            await wire.run("begin read write, isolation level serializable")
            got = await wire.run("show transaction_read_only; show transaction_isolation")
            assert rows(got) == [(b"off",), (b"serializable",)]
            await wire.run("insert into t values (1, 1)")
            await wire.run("rollback")
            await wire.run("discard all")
            assert tags(await wire.run("begin; insert into t values (2, 2); rollback"))


async def test_a_new_default_is_not_that_of_the_transaction_that_sets_it() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE)
        await wire.run("begin; set default_transaction_read_only = on")
        assert tags(await wire.run("insert into t values (1, 1)")) == ["INSERT 0 1"]
        assert rows(await wire.run("show transaction_read_only")) == [(b"off",)]
        assert tags(await wire.run("commit")) == ["COMMIT"]
        assert code(await wire.run("insert into t values (2, 2)")) == "25006"


async def test_what_is_set_for_a_transaction_ends_with_a_statement_that_is_one() -> None:
    async with serving() as served, await Wire.enter(served.port) as wire:
        await wire.run(TABLE + "; insert into t values (1, 1), (2, 2)")
        setting = "select set_config('a.b', 'x', true)"
        for asked in (
            wire.run(setting),
            wire.ask(parse(setting) + bind() + execute() + SYNC),
            wire.ask(parse(setting) + bind() + execute("", 1) + SYNC),
            wire.run("set local a.b = 'x'"),
            wire.run("insert into t select 3, length(set_config('a.b', 'x', true))"),
        ):
            await asked
            assert rows(await wire.run("select current_setting('a.b', true)")) == [(None,)]
        await wire.run("select set_config('a.b', 'x', false)")
        failing = "select set_config('a.b', 'y', false), 1 / (id - 2) from t"
        assert code(await wire.run(failing)) == "22012"
        assert rows(await wire.run("show a.b")) == [(b"x",)]
        await wire.run("begin; select set_config('a.b', 'y', true)")
        assert rows(await wire.run("show a.b")) == [(b"y",)]
        await wire.run("commit")
        assert rows(await wire.run("show a.b")) == [(b"x",)]
