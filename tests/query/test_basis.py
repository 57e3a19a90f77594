"""A snapshot of the past is its own basis, however it was made."""

from __future__ import annotations

from contextlib import aclosing

from qserver.query.basis import Basis
from qserver.query.results import RunOptions, Statement
from tests.sql.databases import opened_sql

QUERY = Statement("SELECT v FROM a WHERE id = 1")


async def test_versions_that_a_reader_of_changes_has_made_have_different_bases() -> None:
    async with opened_sql() as sql:
        sql.database.keep_history(3600.0)
        await sql.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT)")
        begin = (await sql.execute("INSERT INTO a VALUES (1, 0)")).version
        for number in range(4):
            await sql.execute(f"UPDATE a SET v = {number + 1} WHERE id = 1")
        past = sql.database.catch_up
        for read in (1, 2):  # each leaves the version at which it stops in memory
            async with aclosing(past.after(begin)) as versions:
                for _ in range(read):
                    await anext(versions)
        bases: list[Basis | None] = []

        def keep(basis: Basis | None) -> bool:
            bases.append(basis)
            return False

        for version in range(begin, begin + 5):
            found = await sql.read(QUERY, RunOptions(as_of=version), keep)
            assert found is not None and found.results[0].rows == [(version - begin,)]
        assert None not in bases
        assert len(set(bases)) == len(bases)
        assert bases[0] == ((begin, (await sql.database.snapshot_at(begin)).time),)
