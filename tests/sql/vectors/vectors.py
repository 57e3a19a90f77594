"""What the tests of vectors share: tiny pages, so that few rows make chunks, and the off switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import pytest

from qserver.durability import saved_columns
from qserver.durability.memory import MemoryLog
from qserver.errors import QserverError
from qserver.query.sql_database import Result, SqlDatabase
from qserver.sql.vectors import attempts, grouping, scans
from qserver.storage import btree, columns


@contextmanager
def tiny_chunks(batch_rows: int = 40) -> Iterator[None]:
    """Pages of six entries; a chunk has up to 36 rows, and every table is large."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in (("MAX", 6), ("BUILT", 5), ("MIN", 3)):
            patch.setattr(btree, f"PAGE_ENTRIES_{name}", size)
        patch.setattr(columns, "VECTOR_ROWS_MIN", 4)
        patch.setattr(saved_columns, "VECTOR_ROWS_MIN", 4)
        patch.setattr(scans, "BATCH_ROWS_MAX", batch_rows)
        patch.setattr(scans, "pays_at_once", lambda *_: True)
        patch.setattr(grouping, "ROWS_OF_GROUP_MIN", 1)
        # The package has the rule under the name of its module.
        rule = import_module("qserver.sql.optimizer.vectorization")
        patch.setattr(rule, "VECTOR_ROWS_MIN", 0)
        yield


class LogWithoutColumns(MemoryLog):
    """No column that was saved is found."""

    def load(self, numbers: Sequence[int]) -> dict[int, bytes]:
        return super().load([number for number in numbers if number > 0])


@contextmanager
def without_vectors(database: SqlDatabase) -> Iterator[None]:
    """Every chunk is refused: its rows are read one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database.database.page_cache.vectors, "bytes_max", 0)
        yield


@contextmanager
def counted_chunks() -> Iterator[Counter[str]]:
    """Count the chunks that are taken, and those that are refused."""
    counts: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("filtered", "aggregated", "first"):
            original = getattr(attempts.Attempts, name)

            def attempt(*given: Any, original: Any = original, name: str = name) -> Any:
                answer = original(*given)
                counts["refused" if answer is None else name] += 1
                return answer

            patch.setattr(attempts.Attempts, name, attempt)
        yield counts


async def answer(database: SqlDatabase, sql: str, parameters: Sequence[Any] | None = None) -> str:
    """Rows or error, told apart to the last digit and type."""
    try:
        result = await database.execute(sql, parameters)
    except QserverError as error:
        return f"error {error.code}: {error.message} {error.detail}"
    assert isinstance(result, Result)
    return repr(result.rows)


async def both(
    database: SqlDatabase, sql: str, parameters: Sequence[Any] | None = None
) -> tuple[str, str]:
    """The answer over vectors, and the one of row code."""
    over_vectors = await answer(database, sql, parameters)
    with without_vectors(database):
        return over_vectors, await answer(database, sql, parameters)
