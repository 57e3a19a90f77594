"""Planted bugs in statements that change rows and definitions."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import msgspec

from qserver.engine import coordinator
from qserver.engine.coordinator import Coordinator
from qserver.engine.messages import Answer, Append, Commit, Committed
from qserver.query import foreign_keys, plan_cache, statements
from qserver.query.cursor import Cursor
from qserver.query.plan_cache import CachedPlan
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.statements import StatementRun
from qserver.sql.codegen import change_printer
from qserver.storage import transaction
from qserver.storage.catalog import Catalog
from qserver.storage.page import Value
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.values.schema import Table
from simulations.mutants.mutant import Mutant


class _Committed:
    """A transaction of which a reader sees only what is committed."""

    def __init__(self, transaction: Any) -> None:
        self._transaction = transaction

    def get_entry(self, tree: int, *key: Any) -> Any:
        own: Transaction = self._transaction
        kept = own.writes
        own.writes = {}
        try:
            return own.get_entry(tree, *key)
        finally:
            own.writes = kept


def _arbiter_among_committed(original: Any) -> Any:
    def find(transaction: Any, table: Table, row: Any, arbiters: Any) -> Any:
        if arbiters and arbiters[0] is not None:
            return original(_Committed(transaction), table, row, arbiters)
        return original(transaction, table, row, arbiters)

    return find


def _row_as_it_was(original: Any) -> Any:
    def find(transaction: Any, table: Table, row: Any, arbiters: Any) -> Any:
        found = original(transaction, table, row, arbiters)
        if found is not None and transaction.earlier:
            was = transaction.snapshot.get_entry(table.id, table.key_of(found))
            found = found if was is None else was
        return found

    return find


def _row_under_the_old_key(original: Any) -> Any:
    def replace_row(own: Transaction, table: Table, old: Any, new: Any) -> None:
        original(own, table, old, new)
        if table.key_of(old) != table.key_of(new):
            own.put_entry(table.id, table.key_of(old), old)

    return replace_row


def _look_up_before_the_transaction(original: Any) -> Any:
    def look_up(own: Transaction, *arguments: Any) -> Any:
        reader = Transaction(own.snapshot, own.earlier)
        reader.keys, reader.ranges = own.keys, own.ranges
        return original(reader, *arguments)

    return look_up


def _rename_without_footprint(original: Any) -> Any:
    def act(
        runner: Any, table: Table, old: Any, new: Any, *which: Any
    ) -> Generator[None, None, None]:
        known = len(runner.transaction.ranges)
        yield from original(runner, table, old, new, *which)
        if new is not None:
            del runner.transaction.ranges[known:]

    return act


def _follow_in_any_order(original: Any) -> Any:
    def in_order(actions: list[Any]) -> Generator[None, None, list[Any]]:
        yield from ()
        return actions

    return in_order


def _keep_entries_of_null(original: Any) -> Any:
    def change_indexes(
        self: Transaction, table: Table, old: Value | None, new: Value | None
    ) -> None:
        original(self, table, old, new)
        for index in table.indexes:
            if old is None or new is None or index.unique:
                continue
            if new[index.columns[0]] is None and old[index.columns[0]] is not None:
                self.put_entry(index.id, *table.entries(index, old))

    return change_indexes


def _define_where_it_is_run_again(original: Any) -> Any:
    def run_work(self: Coordinator, commit: Commit, work: Transaction) -> Answer:
        answer: Answer = original(self, commit, work)
        if work.changes_catalog and work.writes:
            retried = commit.transaction is not None
            return Committed(work.snapshot.version + 1, retried, [])
        return answer

    return run_work


def _log_rows_without_definitions(original: Any) -> Any:
    def next_round(self: Coordinator, *arguments: Any) -> tuple[Snapshot, Append]:
        snapshot, append = original(self, *arguments)
        if append.writes and append.catalog_changes and append.dropped:
            fewer = dict(list(append.catalog_changes.items())[1:])
            append = msgspec.structs.replace(append, catalog_changes=fewer)
        return snapshot, append

    return next_round


def _hold_by_number(original: Any) -> Any:
    def holds_in(self: CachedPlan, catalog: Catalog) -> bool:
        for name, definition in self.names.items():
            found = catalog.find(name)
            if found is None or getattr(found, "id", found) != getattr(definition, "id", None):
                return bool(original(self, catalog))
        return True

    return holds_in


def _use_what_was_found(original: Any) -> Any:
    def start(self: StatementRun, statement: PreparedStatement, *prepared: Any) -> Cursor:
        plan = statement.plan
        if plan is not None:
            catalog = self.transaction.catalog
            if all(catalog.find(name) is not None for name in plan.names):
                plan.catalog = catalog
        cursor: Cursor = original(self, statement, *prepared)
        return cursor

    return start


MUTANTS: Final = (
    Mutant(
        "look_for_the_arbiter_among_committed_rows",
        "ON CONFLICT by a unique index does not see rows of its own transaction",
        ("sql_upserts",),
        ((change_printer, "find_row_in_the_way", _arbiter_among_committed),),
    ),
    Mutant(
        "count_on_the_row_as_it_was",
        "ON CONFLICT DO UPDATE begins with the row as it was before the round, where another of the"
        " round has changed it",
        ("sql_upserts", "sql_keys"),
        ((change_printer, "find_row_in_the_way", _row_as_it_was),),
    ),
    Mutant(
        "leave_a_row_under_its_old_key",
        "an upsert that gives a row another key leaves the row under the old one, too",
        ("sql_upserts",),
        ((change_printer, "replace_row", _row_under_the_old_key),),
    ),
    Mutant(
        "look_up_before_the_transaction",
        "whether the row is there that another refers to is asked of the snapshot, without the"
        " writes of the transaction",
        ("sql_moves",),
        ((foreign_keys, "_look_up", _look_up_before_the_transaction),),
    ),
    Mutant(
        "rename_without_footprint",
        "who changes a key does not mind others that come to refer to it meanwhile",
        ("sql_moves",),
        ((foreign_keys, "_act", _rename_without_footprint),),
    ),
    Mutant(
        "follow_keys_in_any_order",
        "where a key moves to where another one was, those who refer to it follow the other",
        ("sql_moves",),
        ((foreign_keys, "_in_order", _follow_in_any_order),),
    ),
    Mutant(
        "keep_the_entry_of_what_is_set_null",
        "the index entry of a row stays when its column is set to NULL",
        ("sql_moves",),
        ((transaction.Transaction, "_change_indexes", _keep_entries_of_null),),
    ),
    Mutant(
        "define_where_it_is_run_again",
        "work that changes definitions and rows is run at the coordinator, which installs the rows"
        " alone",
        ("definitions", "sql_migrations"),
        ((coordinator.Coordinator, "run_work", _define_where_it_is_run_again),),
    ),
    Mutant(
        "log_rows_without_definitions",
        "of a transaction that drops trees and writes rows, the first definition is not logged",
        ("sql_migrations",),
        ((coordinator.Coordinator, "next_round", _log_rows_without_definitions),),
    ),
    Mutant(
        "hold_a_plan_by_the_number",
        "a plan is kept while the tables that it was made from have the same numbers",
        ("sql_migrations", "sql_definitions"),
        ((plan_cache.CachedPlan, "holds_in", _hold_by_number),),
    ),
    Mutant(
        "use_the_plan_that_was_found",
        "a request runs the plan that was found when it came, whatever was redefined since",
        ("sql_migrations",),
        ((statements.StatementRun, "start", _use_what_was_found),),
    ),
)
