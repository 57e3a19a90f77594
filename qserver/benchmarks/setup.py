"""Sets up a database with some accounts for a bench, and deletes it at the end.

A key that may not make databases gets tables with unique names in its own database instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from qserver.benchmarks.target import Target
from qserver.benchmarks.wire import Address
from qserver.benchmarks.workloads import ACCOUNTS
from qserver.client import TrioClient
from qserver.errors import DatabaseUnavailable, Forbidden, NotFound
from qserver.workloads.operations import Tables

_CLEAN_UP_SECONDS: Final = 20.0
_CLEAN_UP_PAUSE_SECONDS: Final = 0.1


@asynccontextmanager
async def prepared(url: str, key: str, name: str) -> AsyncIterator[tuple[Target, Tables]]:
    """Set up, and clean up after the block, also after an error or Ctrl-C."""
    tables = Tables(name, ACCOUNTS)
    async with TrioClient(url, key) as client:
        try:
            client.database = name if await _make_database(client, name) else None
            for sql in tables.set_up():
                await client.query(sql)
            yield Target(Address.of(client.url), key, client.database), tables
        finally:
            with trio.move_on_after(_CLEAN_UP_SECONDS, shield=True):
                await _take_down(client, tables)


async def _make_database(client: TrioClient, name: str) -> bool:
    try:
        await client.create_database(name)
    except (Forbidden, NotFound):
        return False
    return True


async def _delete_database(client: TrioClient, name: str) -> None:
    """Delete the database; if Ctrl-C came while it was being made, wait until it is."""
    while True:
        try:
            await client.delete_database(name)
            return
        except DatabaseUnavailable:
            await trio.sleep(_CLEAN_UP_PAUSE_SECONDS)


async def _take_down(client: TrioClient, tables: Tables) -> None:
    """Remove the database or the tables: after Ctrl-C either may exist."""
    try:
        await _delete_database(client, tables.name)
    except (Forbidden, NotFound):
        client.database = None
        for table in (tables.accounts, tables.entries):
            await client.query(f"DROP TABLE IF EXISTS {table}")
