"""What planted bugs do to SQL; `mutants.py` says which there are, and plants them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import trio

from qserver.engine.plan_cache import Plan
from qserver.engine.request import RequestContext
from qserver.engine.row_stream import RowStream
from qserver.engine.sql_gateway import SqlDatabase
from qserver.engine.statements import StatementRun
from qserver.sql.definitions.port import Work
from qserver.sql.execution import Rows
from qserver.storage.catalog import Catalog
from qserver.storage.transaction import ScannedRange, Transaction


def keep_plans_of_old_definitions(original: Any) -> Any:
    def holds_in(self: Plan, catalog: Catalog) -> bool:
        return all(catalog.find(name) is not None for name in self.names)

    return holds_in


def depend_on_no_definition(original: Any) -> Any:
    def run_plan(self: StatementRun, plan: Plan, slots: Any) -> Any:
        kept = dict(self.transaction.names_seen)
        steps = original(self, plan, slots)
        self.transaction.names_seen = kept
        return steps

    return run_plan


def forget_free_keys(original: Any) -> Any:
    def insert_many(self: Transaction, *arguments: Any) -> None:
        kept = {shard: dict(seen) for shard, seen in self.keys.items()}
        original(self, *arguments)
        self.keys = kept

    return insert_many


def refer_without_footprint(original: Any) -> Any:
    def look_up(transaction: Transaction, *arguments: Any) -> Any:
        reader = transaction.before()
        reader.keys, reader.ranges = {}, []
        return original(reader, *arguments)

    return look_up


def find_those_who_refer_without_footprint(original: Any) -> Any:
    def run_with(self: StatementRun, *arguments: Any) -> Generator[Any, None, int]:
        known = len(self.transaction.ranges)
        affected: int = yield from original(self, *arguments)
        del self.transaction.ranges[known:]
        return affected

    return run_with


def scan_without_footprint(original: Any) -> Any:
    def scan(self: Transaction, *arguments: Any) -> Iterator[Any]:
        pages: Iterator[Any] = original(self, *arguments)
        self.ranges.pop()
        return pages

    return scan


def forget_what_is_left_early(original: Any) -> Any:
    def scan(self: Transaction, scanned: ScannedRange, *options: Any) -> Iterator[Any]:
        try:
            yield from original(self, scanned, *options)
        except GeneratorExit:
            self.ranges.remove(scanned)
            raise

    return scan


def index_without_footprint(original: Any) -> Any:
    def build_index(work: Work, *arguments: Any) -> Generator[Any, None, int]:
        transaction: Any = work.transaction
        known = len(transaction.ranges)
        done: int = yield from original(work, *arguments)
        del transaction.ranges[known:]
        return done

    return build_index


def check_without_footprint(original: Any) -> Any:
    def check(transaction: Transaction, *arguments: Any) -> Generator[None, None, int]:
        reader = transaction.before()
        reader.keys, reader.ranges = {}, []
        count: int = yield from original(reader, *arguments)
        return count

    return check


def read_the_newest(original: Any) -> Any:
    def read_nowait(self: SqlDatabase, *arguments: Any) -> Any:
        database: Any = self.database
        incarnation = database._incarnation
        if incarnation is None:
            return None
        database.durable_view = lambda: incarnation.published.newest
        try:
            return original(self, *arguments)
        finally:
            del database.durable_view

    return read_nowait


def stream_what_is_newer(original: Any) -> Any:
    async def stream(self: SqlDatabase, *arguments: Any, **options: Any) -> RowStream:
        made: Any = await original(self, *arguments, **options)
        plan, slots, request, view = made._restart
        moving = Transaction(view)
        made._pages = plan.compiled.run(moving, slots, RequestContext(request, moving))
        step = made.step

        async def step_on() -> Rows | None:
            await trio.lowlevel.checkpoint()
            moving.view = self.database.durable_view() or moving.view
            page: Rows | None = await step()
            return page

        made.step = step_on
        return made  # type: ignore[no-any-return]

    return stream


def reserve_serial_in_memory_only(original: Any) -> Any:
    def reserve(transaction: Transaction, *arguments: Any) -> list[int]:
        values: list[int] = original(transaction, *arguments)
        if values[0] > 1:
            transaction.writes.clear()  # only the first block ever reaches the log
        return values

    return reserve
