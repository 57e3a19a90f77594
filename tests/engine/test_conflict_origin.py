"""A conflict names the version and the request that changed what was read, however it came."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from qserver.engine import conflict_origin
from qserver.engine.conflict_origin import Writers
from qserver.engine.work import run
from qserver.errors import SerializationFailure
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import RunOptions, Statement
from qserver.query.sql_database import SqlDatabase
from qserver.storage.conflict import Conflict
from qserver.storage.snapshot import empty_snapshot
from qserver.storage.transaction import Transaction
from tests.sql.databases import opened_sql

OPTIONS = RunOptions()
READ = "SELECT v FROM a WHERE id = 7"


async def change(sql: SqlDatabase, text: str, name: str, version_of: dict[str, int]) -> None:
    done = await sql.transaction([Statement(text)], request_id=name)
    version_of[name] = done.version


async def opened_transaction(sql: SqlDatabase, *texts: str) -> OpenTransaction:
    transaction = await sql.open()
    await sql.inside(transaction, [Statement(text) for text in texts], OPTIONS)
    return transaction


async def conflict_of(sql: SqlDatabase, transaction: OpenTransaction) -> Conflict:
    with pytest.raises(SerializationFailure) as refused:
        await run(sql.committing(transaction, OPTIONS))
    assert isinstance(refused.value.conflict, Conflict)
    return refused.value.conflict


async def filled(sql: SqlDatabase, rows: int = 40) -> None:
    await sql.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT, w INT)")
    await sql.execute("CREATE INDEX by_w ON a (w)")
    await sql.execute(f"INSERT INTO a SELECT i, 0, i FROM generate_series(1, {rows}) AS i")


async def together(sql: SqlDatabase, texts: dict[str, str], version_of: dict[str, int]) -> None:
    """Run statements at the same time, so that some share a version."""
    async with trio.open_nursery() as nursery:
        for name, text in texts.items():
            nursery.start_soon(change, sql, text, name, version_of)


@pytest.mark.parametrize(
    ("read", "changed"),
    [
        ("SELECT v FROM a WHERE id = 7", "UPDATE a SET v = 1 WHERE id = 7"),
        ("SELECT sum(v) FROM a WHERE id BETWEEN 5 AND 9", "UPDATE a SET v = 1 WHERE id = 7"),
        ("SELECT count(*) FROM a WHERE id > 30", "INSERT INTO a VALUES (41, 0, 0)"),
        ("SELECT v FROM a WHERE id = 7", "DELETE FROM a WHERE id = 7"),
        ("SELECT id FROM a WHERE w = 7", "UPDATE a SET w = 70 WHERE id = 7"),
        ("SELECT id FROM a WHERE w = 70", "UPDATE a SET w = 70 WHERE id = 7"),
        ("SELECT v FROM a WHERE id = 7", "ALTER TABLE a ADD COLUMN x INT"),
    ],
)
async def test_one_among_many_that_commit_together_is_named(read: str, changed: str) -> None:
    async with opened_sql() as sql:
        await filled(sql)
        transaction = await opened_transaction(sql, read, "UPDATE a SET v = 5 WHERE id = 40")
        begun, version_of = transaction.version, dict[str, int]()
        others = {f"other {i}": f"UPDATE a SET v = 2 WHERE id = {i}" for i in (1, 2, 3, 20, 21)}
        await together(sql, {**others, "the one": changed}, version_of)
        later = {f"later {i}": f"UPDATE a SET v = 3 WHERE id = {i}" for i in (1, 2, 3, 20, 21)}
        await together(sql, later, version_of)
        conflict = await conflict_of(sql, transaction)
        assert (conflict.changed_by, conflict.version_found) == ("the one", version_of["the one"])
        assert conflict.version_read == begun


async def test_of_several_that_wrote_the_key_the_last_is_named() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        transaction = await opened_transaction(sql, READ, "DELETE FROM a WHERE id = 1")
        version_of: dict[str, int] = {}
        for number in range(3):
            add = f"UPDATE a SET v = v + {10**number} WHERE id = 7"
            await together(sql, {f"{number} {each}": add for each in "xyz"}, version_of)
        conflict = await conflict_of(sql, transaction)
        assert conflict.version_found == max(version_of.values())
        named = conflict.changed_by
        assert named is not None and version_of[named] == conflict.version_found
        (last,) = (await sql.execute("SELECT v FROM a WHERE id = 7")).rows
        assert last == (333,)


async def test_the_version_is_found_behind_many_that_changed_other_rows() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        transaction = await opened_transaction(sql, READ, "DELETE FROM a WHERE id = 1")
        version_of: dict[str, int] = {}
        await change(sql, "UPDATE a SET v = 1 WHERE id = 7", "the one", version_of)
        for number in range(2 * conflict_origin.VERSIONS_READ_AT_ONCE):
            await change(sql, f"UPDATE a SET v = {number} WHERE id = 2", "x", version_of)
        conflict = await conflict_of(sql, transaction)
        assert (conflict.changed_by, conflict.version_found) == ("the one", version_of["the one"])


async def test_too_far_back_the_last_change_of_the_table_is_named_and_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conflict_origin, "VERSIONS_SEARCHED_MAX", 5)
    async with opened_sql() as sql:
        await filled(sql)
        transaction = await opened_transaction(sql, READ, "DELETE FROM a WHERE id = 1")
        version_of: dict[str, int] = {}
        await change(sql, "UPDATE a SET v = 1 WHERE id = 7", "the one", version_of)
        for number in range(5):
            await change(sql, f"UPDATE a SET v = {number} WHERE id = 2", "x", version_of)
        await sql.execute("CREATE TABLE elsewhere (id INT)")
        conflict = await conflict_of(sql, transaction)
        assert (conflict.changed_by, conflict.version_found) == (None, version_of["x"])


async def test_if_version_names_who_changed_the_table() -> None:
    async with opened_sql() as sql:
        await filled(sql)
        await sql.execute("CREATE TABLE b (id INT PRIMARY KEY)")
        seen = (await sql.execute("SELECT 1")).version
        version_of: dict[str, int] = {}
        others = {f"b {i}": f"INSERT INTO b VALUES ({i})" for i in range(5)}
        texts = {**others, "the one": "UPDATE a SET v = 1 WHERE id = 7"}
        await together(sql, texts, version_of)
        await change(sql, "INSERT INTO b VALUES (99)", "later", version_of)
        for text in ("SELECT v FROM a WHERE id = 1", "UPDATE a SET v = 2 WHERE id = 1"):
            with pytest.raises(SerializationFailure) as refused:
                await sql.transaction([Statement(text)], if_version=seen)
            conflict: Any = refused.value.conflict
            assert conflict.version_found == version_of["the one"]
            assert conflict.changed_by == "the one"


async def test_at_random_who_is_named_wrote_the_key_and_nobody_wrote_it_later() -> None:
    chance, shared = Random(7), 0
    async with opened_sql() as sql:
        await filled(sql, 12)
        for number in range(40):
            key = chance.randint(1, 12)
            transaction = await opened_transaction(
                sql, f"SELECT v FROM a WHERE id = {key}", f"UPDATE a SET w = w + 1 WHERE id = {key}"
            )
            version_of: dict[str, int] = {}
            written: dict[str, int] = {}
            for _ in range(chance.randint(1, 3)):
                texts = {}
                for _ in range(chance.randint(1, 6)):
                    name, row = f"r{number}-{len(written)}", chance.randint(1, 12)
                    written[name] = row
                    texts[name] = f"UPDATE a SET v = v + 1 WHERE id = {row}"
                await together(sql, texts, version_of)
            writers = [name for name, row in written.items() if row == key]
            if not writers:
                await run_commit(sql, transaction)
                continue
            conflict = await conflict_of(sql, transaction)
            last = max(version_of[name] for name in writers)
            assert conflict.version_found == last
            assert conflict.changed_by in [each for each in writers if version_of[each] == last]
            shared += list(version_of.values()).count(last) > 1
    assert shared, "some versions have several requests"


async def run_commit(sql: SqlDatabase, transaction: OpenTransaction) -> None:
    await run(sql.committing(transaction, OPTIONS))


@given(st.lists(st.lists(st.integers(0, 9000), min_size=2, max_size=4), max_size=12))
def test_what_is_remembered_is_bounded_and_the_newest(versions: list[list[int]]) -> None:
    writers = Writers()
    sizes: dict[int, int] = {}
    for version, counts in enumerate(versions, 1):
        transactions = []
        for count in counts:
            transaction = Transaction(empty_snapshot(1))
            if count:
                transaction.writes[1] = dict.fromkeys([(each,) for each in range(count)], None)
            transactions.append(transaction)
        names = [f"{version}.{number}" for number in range(len(counts))]
        writers.note(version, transactions, names)
        sizes[version] = sum(counts) + len(counts)
    kept = [version for version in sizes if writers.find(version)]
    fits = [
        version
        for version in sizes
        if sum(size for each, size in sizes.items() if each >= version)
        <= conflict_origin.KEYS_REMEMBERED_MAX
    ]
    assert kept == fits
    for version in kept:
        found = [each.request_id for each in writers.find(version)]
        assert found == [f"{version}.{number}" for number in range(len(versions[version - 1]))]
