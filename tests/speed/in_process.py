"""What programs that measure in their own process have in common: databases, rows, CPU time."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import islice
from random import Random
from typing import Any, Final

import duckdb

from qserver.durability.page_cache import PageCache
from qserver.durability.port import Log
from qserver.engine.world import OrdinaryWorld
from qserver.query.scratch import scratch_database
from qserver.query.sql_database import SqlDatabase
from qserver.web.service.machine import half_of_memory

ROWS_AT_ONCE: Final = 1000


def opened_in_process(log: Log | None = None) -> AbstractAsyncContextManager[SqlDatabase]:
    """Open a database, or a new one, with as much memory for pages as a server has."""
    world = OrdinaryWorld(time.time, Random(1), _fail)
    return scratch_database(world, cache=PageCache(half_of_memory()), log=log)


def _fail(text: str, error: Exception) -> None:
    raise SystemExit(f"{text}: {error!r}")


def opened_duckdb() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def insert_texts(table: str, rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Statements that insert these rows, some at a time."""
    waiting = iter(rows)
    while some := list(islice(waiting, ROWS_AT_ONCE)):
        values = ", ".join([f"({', '.join(map(_literal, row))})" for row in some])
        yield f"INSERT INTO {table} VALUES {values}"


def _literal(value: Any) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def cpu_ms(connection: sqlite3.Connection | duckdb.DuckDBPyConnection, sql: str) -> float:
    start = time.process_time()
    connection.execute(sql).fetchall()
    return 1000 * (time.process_time() - start)


async def cpu_ms_of(database: SqlDatabase, sql: str) -> float:
    start = time.process_time()
    await database.execute(sql)
    return 1000 * (time.process_time() - start)
