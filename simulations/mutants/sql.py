"""Planted bugs in SQL."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, Final

import trio

from qserver.query import foreign_keys, row_stream, statements
from qserver.query.cursor import Cursor
from qserver.query.plan_cache import CachedPlan
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.row_stream import RowStream
from qserver.query.sql_database import SqlDatabase
from qserver.query.statements import StatementRun
from qserver.sql.ddl import indexes
from qserver.sql.ddl.port import DdlPort
from qserver.sql.execution import Rows
from qserver.storage.catalog import Catalog
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import ScannedRange, Transaction
from simulations.mutants.mutant import Mutant


def _keep_plans_of_old_definitions(original: Any) -> Any:
    def holds_in(self: CachedPlan, catalog: Catalog) -> bool:
        return all(catalog.find(name) is not None for name in self.names)

    return holds_in


def _depend_on_no_definition(original: Any) -> Any:
    def run_plan(self: StatementRun, plan: CachedPlan, slots: Any) -> Any:
        kept = dict(self.transaction.names_seen)
        steps = original(self, plan, slots)
        self.transaction.names_seen = kept
        return steps

    return run_plan


def _forget_free_keys(original: Any) -> Any:
    def insert(self: Transaction, *arguments: Any) -> None:
        kept = {shard: dict(seen) for shard, seen in self.keys.items()}
        original(self, *arguments)
        self.keys = kept

    return insert


def _refer_without_footprint(original: Any) -> Any:
    def look_up(transaction: Transaction, *arguments: Any) -> Any:
        reader = transaction.before()
        reader.keys, reader.ranges = {}, []
        return original(reader, *arguments)

    return look_up


def _find_those_who_refer_without_footprint(original: Any) -> Any:
    def run_with(self: StatementRun, *arguments: Any) -> Generator[Any, None, int]:
        known = len(self.transaction.ranges)
        affected: int = yield from original(self, *arguments)
        del self.transaction.ranges[known:]
        return affected

    return run_with


def _scan_without_footprint(original: Any) -> Any:
    def scan(self: Transaction, *arguments: Any) -> Iterator[Any]:
        pages: Iterator[Any] = original(self, *arguments)
        self.ranges.pop()
        return pages

    return scan


def _forget_what_is_left_early(original: Any) -> Any:
    def scan(self: Transaction, scanned: ScannedRange, *options: Any) -> Iterator[Any]:
        try:
            yield from original(self, scanned, *options)
        except GeneratorExit:
            self.ranges.remove(scanned)
            raise

    return scan


def _index_without_footprint(original: Any) -> Any:
    def build_index(work: DdlPort, *arguments: Any) -> Generator[Any, None, int]:
        transaction: Any = work.transaction
        known = len(transaction.ranges)
        done: int = yield from original(work, *arguments)
        del transaction.ranges[known:]
        return done

    return build_index


def _check_without_footprint(original: Any) -> Any:
    def check(transaction: Transaction, *arguments: Any) -> Generator[None, None, int]:
        reader = transaction.before()
        reader.keys, reader.ranges = {}, []
        count: int = yield from original(reader, *arguments)
        return count

    return check


def _read_the_newest(original: Any) -> Any:
    def prepare(self: SqlDatabase, *arguments: Any) -> Generator[Any, Any, Any]:
        database: Any = self.database
        generation = database._generation
        if generation is None:
            return (yield from original(self, *arguments))
        steps = original(self, *arguments)
        database.snapshots.take = lambda *_, **__: generation.versions.newest
        try:
            next(steps)
        except StopIteration as end:
            return end.value
        finally:
            del database.snapshots.take
        steps.close()
        return (yield from original(self, *arguments))

    return prepare


def _read_what_moves(original: Any) -> Any:
    def open_reading(statement: PreparedStatement, snapshot: Snapshot, *rest: Any) -> Cursor:
        moving = Transaction(snapshot)
        cursor: Cursor = original(statement, moving, *rest)
        context: Any = cursor.context
        context.moving = moving
        return cursor

    return open_reading


def _stream_what_is_newer(original: Any) -> Any:
    async def stream(self: SqlDatabase, *arguments: Any, **options: Any) -> RowStream:
        made: Any = await original(self, *arguments, **options)
        step = made.step

        async def step_on() -> Rows | None:
            await trio.lowlevel.checkpoint()
            moving = made._cursor.context.moving
            moving.snapshot = self.database.snapshots.take() or moving.snapshot
            page: Rows | None = await step()
            return page

        made.step = step_on
        return made  # type: ignore[no-any-return]

    return stream


MUTANTS: Final = (
    Mutant(
        "keep_plans_of_old_definitions",
        "a plan is kept although a table that it was made from was redefined",
        ("sql_definitions",),
        ((CachedPlan, "holds_in", _keep_plans_of_old_definitions),),
    ),
    Mutant(
        "depend_on_no_definition",
        "a statement commits although a table that its plan was made from was redefined",
        ("sql_definitions",),
        ((statements.StatementRun, "run_plan", _depend_on_no_definition),),
    ),
    Mutant(
        "index_without_footprint",
        "CREATE INDEX does not mind rows that were inserted while it ran",
        ("sql_definitions",),
        ((indexes, "build_index", _index_without_footprint),),
    ),
    Mutant(
        "forget_free_keys",
        "that the keys of new rows are free holds for the snapshot that was read, and is not part"
        " of the footprint",
        ("sql_keys",),
        (
            (Transaction, "insert", _forget_free_keys),
            (Transaction, "insert_many", _forget_free_keys),
        ),
    ),
    Mutant(
        "refer_without_footprint",
        "that the row is there which another refers to is not part of the footprint",
        ("sql_references",),
        ((foreign_keys, "_look_up", _refer_without_footprint),),
    ),
    Mutant(
        "find_those_who_refer_without_footprint",
        "who deletes a row does not mind others that come to refer to it meanwhile",
        ("sql_references",),
        (
            (
                statements.StatementRun,
                "run_with",
                _find_those_who_refer_without_footprint,
            ),
        ),
    ),
    Mutant(
        "constrain_without_footprint",
        "ADD FOREIGN KEY does not mind rows that were inserted while it looked at the others",
        ("sql_constraints",),
        ((statements, "check_foreign_key", _check_without_footprint),),
    ),
    Mutant(
        "scan_values_without_footprint",
        "the footprint lacks the ranges that were scanned in no particular order",
        ("sql_predicates", "sql_keys"),
        ((Transaction, "scan_values", _scan_without_footprint),),
    ),
    Mutant(
        "scan_chunks_without_footprint",
        "the footprint lacks the tables that were scanned by whole pages",
        ("sql_trees",),
        ((Transaction, "scan_chunks", _scan_without_footprint),),
    ),
    Mutant(
        "forget_what_is_left_early",
        "a scan that is left before its end, as for LIMIT, is not part of the footprint",
        ("sql_queue",),
        ((Transaction, "_scan", _forget_what_is_left_early),),
    ),
    Mutant(
        "begin_from_the_newest",
        "what is answered without waiting comes from a snapshot that is not durable",
        ("sql_bank", "sql_keys"),
        ((SqlDatabase, "_prepare", _read_the_newest),),
    ),
    Mutant(
        "stream_what_is_newer",
        "each page of a stream comes from the snapshot that is durable then",
        ("sql_bank",),
        (
            (row_stream, "open_reading", _read_what_moves),
            (SqlDatabase, "stream", _stream_what_is_newer),
        ),
    ),
)
