"""Rows in bulk: one transaction, bounded like any other."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from qserver.errors import (
    OutOfMemory,
    ProgramLimitExceeded,
    SerializationFailure,
    UniqueViolation,
)
from qserver.query.bulk import BulkInsert, RowBatch
from qserver.query.bulk_values import ELEMENTS_MAX, array_writer, bounded, column_of
from qserver.query.results import RunOptions
from qserver.values.types import DOUBLE, INTEGER, NUMERIC, array_of
from tests.sql.databases import opened_sql


async def test_more_than_a_transaction_may_hold_is_refused() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a INT PRIMARY KEY)")
        transaction = await database.open(bytes_most=500_000)
        insert = BulkInsert(database, transaction, "t", "error", RunOptions())
        with pytest.raises(OutOfMemory, match="more memory than one transaction") as caught:
            for start in range(0, 100_000, 500):
                await insert.add(RowBatch(("a",), [(start + at,) for at in range(500)], start + 1))
        assert 500 <= insert.affected_rows < 5000
        assert f"row {insert.affected_rows + 1}." in str(caught.value.detail)
        transaction.release()
        assert (await database.execute("SELECT count(*) FROM t")).rows == [(0,)]


async def test_a_key_that_another_takes_meanwhile_is_a_conflict() -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a INT PRIMARY KEY)")
        transaction = await database.open()
        insert = BulkInsert(database, transaction, "t", "error", RunOptions())
        await insert.add(RowBatch(("a",), [(at,) for at in range(10)], 1))
        await database.execute("INSERT INTO t VALUES (7)")
        with pytest.raises(SerializationFailure):
            await insert.commit()
        transaction.release()
        assert (await database.execute("SELECT a FROM t")).rows == [(7,)]


@pytest.mark.parametrize("bad", [0, 1, 499, 500, 998, 999])
async def test_the_bad_row_is_found_wherever_it_is(bad: int) -> None:
    async with opened_sql() as database:
        await database.execute("CREATE TABLE t (a INT PRIMARY KEY)")
        await database.execute("INSERT INTO t VALUES (-1)")
        transaction = await database.open()
        insert = BulkInsert(database, transaction, "t", "error", RunOptions())
        rows = [(-1 if at == bad else at,) for at in range(1000)]
        with pytest.raises(UniqueViolation) as caught:
            await insert.add(RowBatch(("a",), rows, 1001))
        assert caught.value.row == 1001 + bad
        transaction.release()


def test_lists_become_texts_of_arrays() -> None:
    write = array_writer(str)
    assert write([1, None, ['a"b\\', 2]]) == '{"1",NULL,{"a\\"b\\\\","2"}}'
    assert write("{1}") == "{1}"


def test_a_list_that_would_be_refused_is_not_written() -> None:
    def write(value: Any) -> str:
        written.append(value)
        return ""

    written: list[Any] = []
    writer = bounded(write, array_of(INTEGER))
    for value in ([1] * (ELEMENTS_MAX + 1), [[1] * (ELEMENTS_MAX // 2)] * 2):
        with pytest.raises(ProgramLimitExceeded):
            writer(value)
    assert written == []
    for short in ([1] * ELEMENTS_MAX, [[1, 2], [3, 4]], "{1,2}", 7):
        writer(short)
    assert len(written) == 4


def test_numeric_has_no_negative_zero() -> None:
    numbers = (Decimal("-0.0"), None, Decimal("-1.5"))
    assert list(map(str, column_of(numbers, NUMERIC, False)[1])) == ["0.0", "None", "-1.5"]
    assert list(map(str, column_of((Decimal("-0.0"), 7), NUMERIC, False)[1])) == ["0.0", "7"]
    assert str(column_of(numbers, DOUBLE, False)[1][0]) == "-0.0"
