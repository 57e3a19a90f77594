"""Sets up a database with some accounts for a bench, and deletes it at the end.

A key that may not make databases gets tables with unique names in its own database instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from qserver.benchmarks.load.wire import Address
from qserver.benchmarks.load.workloads import ACCOUNTS, Target, tables_of
from qserver.client import TrioClient
from qserver.errors import DatabaseUnavailable, Forbidden, NotFound

_ROWS_AT_ONCE: Final = 1000
_CLEAN_UP_SECONDS: Final = 20.0
_CLEAN_UP_PAUSE_SECONDS: Final = 0.1


@asynccontextmanager
async def prepared(url: str, key: str, name: str) -> AsyncIterator[Target]:
    """Set up, yield the target, and clean up, also after an error or Ctrl-C."""
    async with TrioClient(url, key) as client:
        try:
            client.database = name if await _make_database(client, name) else None
            target = Target(Address.of(client.url), key, client.database, name)
            await _fill(client, target)
            yield target
        finally:
            with trio.move_on_after(_CLEAN_UP_SECONDS, shield=True):
                await _take_down(client, name)


async def _make_database(client: TrioClient, name: str) -> bool:
    try:
        await client.create_database(name)
    except (Forbidden, NotFound):
        return False
    return True


async def _fill(client: TrioClient, target: Target) -> None:
    await client.query(
        f"CREATE TABLE {target.accounts} "
        "(id integer PRIMARY KEY, owner text NOT NULL, balance integer NOT NULL)"
    )
    await client.query(f"CREATE TABLE {target.entries} (id integer PRIMARY KEY, note text)")
    for first in range(0, ACCOUNTS, _ROWS_AT_ONCE):
        numbers = range(first, min(first + _ROWS_AT_ONCE, ACCOUNTS))
        rows = ",".join(f"({number},'owner {number}',1000)" for number in numbers)
        await client.query(f"INSERT INTO {target.accounts} VALUES {rows}")


async def _delete_database(client: TrioClient, name: str) -> None:
    """Delete the database; if Ctrl-C came while it was being made, wait until it is."""
    while True:
        try:
            await client.delete_database(name)
            return
        except DatabaseUnavailable:
            await trio.sleep(_CLEAN_UP_PAUSE_SECONDS)


async def _take_down(client: TrioClient, name: str) -> None:
    """Remove the database or the tables: after Ctrl-C either may exist."""
    try:
        await _delete_database(client, name)
    except (Forbidden, NotFound):
        client.database = None
        for table in tables_of(name):
            await client.query(f"DROP TABLE IF EXISTS {table}")
