"""Sessions: every setting, plans under other settings, and what a commit judges."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.engine.work import run
from qserver.errors import ProgramLimitExceeded, QserverError, SerializationFailure
from qserver.query.results import Result, RunOptions, Statement
from qserver.query.session import Session
from qserver.query.settings.declared import Setting, listed
from qserver.query.settings.reading import shown_value
from qserver.values.zones import SESSION_ZONE
from tests.query.connections import Connection, outcome
from tests.sql.databases import opened_sql

CHANGEABLE = [each for each in listed() if each.context in ("user", "superuser")]
FIXED_AT_START = [each for each in listed() if each.context not in ("user", "superuser")]


def others(setting: Setting) -> list[str]:
    """Values that differ from the default."""
    if setting.kind == "bool":
        return ["off" if setting.default == "on" else "on"]
    if setting.kind == "enum":
        return [each for each in setting.words if each != setting.default][:2]
    if setting.kind in ("integer", "real"):
        return [each for each in (setting.least, setting.greatest) if each != setting.default]
    return ["other"]


async def rows_of(connection: Connection, sql: str, parameters: Any = None) -> Any:
    found = await outcome(connection, sql, parameters)
    return found if isinstance(found, str) else found.rows


async def test_every_setting_shows_what_pg_settings_has() -> None:
    async with opened_sql() as database:
        connection = Connection(database)
        shown = {row[0]: row[1] for row in await rows_of(connection, "SHOW ALL")}
        assert len(shown) == len(listed()) > 300
        for setting in listed():
            wanted = shown_value(setting, setting.default)
            assert shown[setting.name] == wanted
            assert await rows_of(connection, f'SHOW "{setting.name}"') == [(wanted,)]
            named = await rows_of(connection, "SELECT current_setting($1)", [setting.name])
            assert named == [(wanted,)]


@pytest.mark.parametrize("setting", FIXED_AT_START, ids=lambda setting: setting.name)
async def test_what_the_server_decides_cannot_be_set(setting: Setting) -> None:
    async with opened_sql() as database:
        connection = Connection(database)
        value = setting.default.replace("'", "''")
        assert await outcome(connection, f"SET {setting.name} = '{value}'") == "55P02"
        found = await outcome(connection, "SELECT set_config($1, $2, false)", [setting.name, value])
        assert found == "55P02"


@pytest.mark.long
async def test_every_setting_that_may_be_set_holds_and_is_rolled_back() -> None:
    """Refused or kept: a value is never ignored. First and second run, with and without $1."""
    async with opened_sql() as database:
        connection = Connection(database)
        for setting in CHANGEABLE:
            for value in (setting.default, *others(setting)):
                await check_value(connection, setting, value)


async def check_value(connection: Connection, setting: Setting, value: str) -> None:
    text, show = value.replace("'", "''"), f'SHOW "{setting.name}"'
    before = await rows_of(connection, show)
    first = await rows_of(connection, "SELECT set_config($1, $2, false)", [setting.name, value])
    if isinstance(first, str):
        assert first in ("0A000", "22023"), (setting.name, value, first)
        assert value != setting.default or setting.default in ("", "(disabled)"), setting.name
        assert await outcome(connection, f"SET \"{setting.name}\" TO '{text}'") == first
        assert await rows_of(connection, show) == before
        return
    if setting.name in ("search_path", "transaction_isolation", "transaction_read_only"):
        return
    assert await rows_of(connection, show) in (first, before), setting.name
    await connection.run(f'RESET "{setting.name}"')
    assert await rows_of(connection, show) == before
    for end, after in (("ROLLBACK", before), ("COMMIT", before)):
        await connection.run("BEGIN")
        await connection.run("SAVEPOINT s")
        await connection.run(f"SET LOCAL \"{setting.name}\" TO '{text}'")
        held = await rows_of(connection, show)
        assert await rows_of(connection, "SELECT current_setting($1)", [setting.name]) == held
        await connection.run("ROLLBACK TO s")
        assert await rows_of(connection, show) == before
        await connection.run(f"SET LOCAL \"{setting.name}\" TO '{text}'")
        assert await rows_of(connection, show) == held
        await connection.run(end)
        assert await rows_of(connection, show) == after, setting.name


async def test_a_plan_is_for_one_search_path_and_one_zone() -> None:
    """The same text, first and second run, with a bound parameter, under alternating settings."""
    async with opened_sql() as database:
        connection = Connection(database)
        for sql in (
            "CREATE SCHEMA a",
            "CREATE SCHEMA b",
            "CREATE TABLE a.t (at timestamptz, n int)",
            "CREATE TABLE b.t (at timestamptz, n int, more int)",
            "INSERT INTO a.t VALUES ('2024-01-01 23:30+00', 1)",
            "INSERT INTO b.t VALUES ('2024-01-01 23:30+00', 2, 0)",
        ):
            await connection.run(sql)
        text = "SELECT n, at::date::text FROM t WHERE at::date >= '2024-01-01' AND n > 0"
        bound = "SELECT n, at::date::text FROM t WHERE at >= $1::timestamptz AND n > $2"
        wanted = {
            ("a", "UTC"): (1, "2024-01-01"),
            ("b", "UTC"): (2, "2024-01-01"),
            ("a", "Asia/Tokyo"): (1, "2024-01-02"),
            ("b", "Asia/Tokyo"): (2, "2024-01-02"),
        }
        for inside in (False, True, False):
            for (path, zone), row in [*wanted.items(), *reversed(wanted.items())]:
                if inside:
                    await connection.run("BEGIN")
                await connection.run(f"SET search_path TO {path}")
                await connection.run(f"SET TIME ZONE '{zone}'")
                assert await rows_of(connection, text) == [row]
                assert await rows_of(connection, text) == [row]
                early = "2024-01-01 23:00" if zone == "UTC" else "2024-01-02 08:00"
                assert await rows_of(connection, bound, [early, 0]) == [row]
                late = "2024-01-01 23:45" if zone == "UTC" else "2024-01-02 08:45"
                assert await rows_of(connection, bound, [late, 0]) == []
                if inside:
                    await connection.run("COMMIT")
        assert SESSION_ZONE.get() is None


async def test_a_list_of_statements_sets_for_those_behind_it() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE SCHEMA a")
        await database.execute("CREATE TABLE a.t AS SELECT 1 AS n")
        await database.execute("CREATE TABLE t AS SELECT 2 AS n")
        query = Statement("SELECT n FROM t")
        for _ in range(2):
            for first in ("SET search_path TO a", "SELECT set_config('search_path', 'a', true)"):
                done = await database.transaction([query, Statement(first), query, query])
                assert [each.rows for each in done.results if each.columns == ("n",)] == [
                    [(2,)],
                    [(1,)],
                    [(1,)],
                ]
            assert (await database.execute("SELECT n FROM t")).rows == [(2,)]


async def test_a_list_with_savepoints_rolls_its_settings_back() -> None:
    async with opened_sql() as database:
        texts = ["SET a.b = '1'", "SAVEPOINT s", "SET a.b = '2'", "ROLLBACK TO s", "SHOW a.b"]
        done = await database.transaction(list(map(Statement, texts)))
        assert done.results[-1].rows == [("1",)]
        with pytest.raises(QserverError):
            await database.execute("SHOW a.b")


async def test_a_commit_judges_what_was_read_in_the_zone_of_its_session() -> None:
    """A row that the scan's condition selects in Tokyo only is a conflict, in UTC it is none."""
    for zone, conflicts in (("Asia/Tokyo", True), ("UTC", False)):
        async with opened_sql() as database:
            await database.execute("CREATE TABLE m (id int PRIMARY KEY, at timestamptz)")
            await database.execute("CREATE TABLE seen (n int)")
            await database.execute("INSERT INTO m VALUES (1, '2024-01-01 10:00+00')")
            connection = Connection(database, {"TimeZone": zone})
            await connection.run("BEGIN")
            await connection.run(
                "INSERT INTO seen SELECT count(*) FROM m WHERE at::date = '2024-01-02'"
            )
            await database.execute("INSERT INTO m VALUES (2, '2024-01-01 20:00+00')")
            if conflicts:
                with pytest.raises(SerializationFailure):
                    await connection.run("COMMIT")
            else:
                await connection.run("COMMIT")


async def test_each_run_of_a_request_begins_with_the_same_settings() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a int)")
        session = Session({"a.n": "0"})
        count = "SELECT set_config('a.n', (current_setting('a.n')::int + 1)::text, false)"
        asked = [Statement(count), Statement("INSERT INTO t SELECT nextval('s')")]
        await database.execute("CREATE SEQUENCE s")
        for wanted in (1, 2, 3):
            await run(database.perform(asked, RunOptions(session=session)))
            assert session.settings.shown("a.n") == str(wanted)
        with pytest.raises(QserverError):
            failing = [Statement(count), Statement("SELECT 1 / 0")]
            await run(database.perform(failing, RunOptions(session=session)))
        assert session.settings.shown("a.n") == "3"
        await run(database.perform(asked, RunOptions(session=session, dry_run=True)))
        assert session.settings.shown("a.n") == "3"


async def test_a_generated_column_is_not_written_in_another_zone() -> None:
    async with opened_sql() as database:
        connection = Connection(database)
        await connection.run(
            "CREATE TABLE g (at timestamptz, day date GENERATED ALWAYS AS (at::date) STORED)"
        )
        await connection.run("CREATE TABLE p (at timestamptz, n int)")
        await connection.run("CREATE UNIQUE INDEX ON p (n) WHERE at IS NULL")
        await connection.run("SET TIME ZONE 'Asia/Tokyo'")
        assert await outcome(connection, "INSERT INTO g VALUES ('2024-01-01 23:00+00')") == "0A000"
        assert isinstance(await outcome(connection, "INSERT INTO p VALUES (now(), 1)"), Result)
        await connection.run("SET TIME ZONE 'UTC'")
        await connection.run("INSERT INTO g VALUES ('2024-01-01 23:00+00')")


async def test_statement_timeout_bounds_a_statement() -> None:
    async with opened_sql() as database:
        connection = Connection(database, {"statement_timeout": "1ms"})
        long = "SELECT count(*) FROM generate_series(1, 3000) a, generate_series(1, 3000) b"
        assert await outcome(connection, long) == "57014"
        await connection.run("BEGIN")
        assert await outcome(connection, long) == "57014"


async def test_the_settings_of_a_session_are_bounded() -> None:
    session = Session()
    session.set("a.b", ["x" * 60_000])
    with pytest.raises(ProgramLimitExceeded):
        session.set("a.c", ["x" * 60_000])
    assert session.settings.shown("a.c", missing_ok=True) is None


async def test_a_deferred_key_is_part_of_the_footprint_of_its_commit() -> None:
    """Others delete what a row refers to, after it was written and before the commit."""
    async with opened_sql() as database:
        await database.execute("CREATE TABLE p (id int PRIMARY KEY)")
        await database.execute("CREATE TABLE c (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
        await database.execute("INSERT INTO p VALUES (1)")
        connection = Connection(database)
        await connection.run("BEGIN")
        await connection.run("INSERT INTO c VALUES (1)")
        await database.execute("DELETE FROM p")
        assert await outcome(connection, "COMMIT") == "40001"
        assert (await database.execute("SELECT count(*) FROM c")).rows == [(0,)]


async def test_a_list_of_statements_is_checked_at_its_end() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE p (id int PRIMARY KEY)")
        await database.execute("CREATE TABLE c (p int REFERENCES p DEFERRABLE INITIALLY DEFERRED)")
        child, parent = Statement("INSERT INTO c VALUES (1)"), Statement("INSERT INTO p VALUES (1)")
        for statements in ([child], [child, child]):
            with pytest.raises(QserverError) as caught:
                await database.transaction(statements)
            assert caught.value.code == "23503"
        await database.transaction([child, parent])
        savepoint = [Statement("SAVEPOINT s"), Statement("INSERT INTO c VALUES (2)")]
        await database.transaction([*savepoint, Statement("ROLLBACK TO s"), child])
        with pytest.raises(QserverError):
            await database.transaction(savepoint)
        assert (await database.execute("SELECT p FROM c")).rows == [(1,), (1,)]
