"""Enforces foreign keys at the end of each statement that could break one.

Unique keys that may wait (`unique_keys`) are checked with them.

The transaction's journal has the rows that the statement changed. As in PostgreSQL:

    referencing row    the row that it references must exist: one look-up by its key
    referenced row     is gone or has another key: NO ACTION and RESTRICT refuse if a row still
                       references it; CASCADE, SET NULL and SET DEFAULT run a DELETE or UPDATE on
                       the referencing rows, which is journaled in turn, until nothing is left

These are ordinary statements, compiled and kept like a user's, so they maintain CHECK, NOT NULL,
generated columns and indexes. All reads are part of the transaction's footprint: a new reference
made meanwhile is a conflict, and needs no lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

from qserver.errors import DataError, ForeignKeyViolation, UniqueViolation
from qserver.query.deferred_keys import DeferredKeys
from qserver.query.unique_keys import check_unique, require_unique
from qserver.sql import Rows, ast, referenced_index
from qserver.storage.transaction import Journal, Transaction
from qserver.values.casts import cast_function
from qserver.values.constraints import ForeignKey
from qserver.values.keys import Row, key_element
from qserver.values.schema import Table
from qserver.values.steps import Steps
from qserver.values.text_output import shown
from qserver.values.types import SqlType

CHANGES_AT_ONCE: Final = 100
"""Changes between two yields: each takes some ten microseconds for a foreign key."""


class Runner(Protocol):
    """Runs a statement that was put together here, with values for its parameters."""

    @property
    def transaction(self) -> Transaction: ...

    def run_with(
        self,
        name: tuple[str, ...],
        statement: ast.Statement,
        values: Sequence[tuple[SqlType, Any]],
    ) -> Generator[Rows | None, None, int]: ...


def enforce(runner: Runner, journal: Journal, deferred: DeferredKeys) -> Generator[None, None, int]:
    """Run the actions and checks that the changes of one statement require.

    Return how many rows the actions have changed. Checks that wait are left in `deferred`.
    """
    transaction = runner.transaction
    everything = yield from _paired(journal)
    first, done = len(everything), 0
    while done < len(everything):
        changes = everything[done:]
        done = len(everything)
        more: Journal = []
        transaction.journal = more
        try:
            actions = yield from _actions(transaction, changes)
            for action in (yield from _in_order(actions)):
                yield from _act(runner, *action)
        finally:
            transaction.journal = None
        everything += yield from _paired(more)
    for count, (table, old, new) in enumerate(everything, 1):
        if new is not None and table.foreign_keys:
            _require_referenced(transaction, table, old, new, deferred)
        if new is not None:
            require_unique(transaction, table, new, deferred)
        if old is not None and table.referenced_by:
            yield from _require_unreferenced(runner, table, old, new, deferred)
        if _has_to_wait(transaction, deferred, table, old, new):
            deferred.changes.append((table, old, new))
        if not count % CHANGES_AT_ONCE:
            yield
    return len(everything) - first


def check_deferred(
    runner: Runner, deferred: DeferredKeys, at_end: bool
) -> Generator[None, None, None]:
    """Check what has waited, by the rows that are there now: all of it, or what waits no more."""
    transaction, changes = runner.transaction, deferred.changes
    if at_end:
        deferred = DeferredKeys()
        deferred.set_all(False)
    for count, (table, old, new) in enumerate(changes, 1):
        now = transaction.find_definition(table.key)
        if isinstance(now, Table) and now.id == table.id:
            yield from _check_now(runner, deferred, table, now, old, new)
        if not count % CHANGES_AT_ONCE:
            yield


def _check_now(
    runner: Runner,
    deferred: DeferredKeys,
    table: Table,
    now: Table,
    old: Row | None,
    new: Row | None,
) -> Steps[None]:
    transaction = runner.transaction
    if now.columns != table.columns:  # rows have another shape: look at all of them
        for key in now.foreign_keys:
            if key.deferral and not deferred.waits(now.key, key):
                yield from check_foreign_key(transaction, now, key)
        yield from check_unique(transaction, now, deferred)
        return
    row = None if new is None else transaction.get(now, now.key_of(new))
    if row is not None:
        for key in now.foreign_keys:
            if key.deferral and not deferred.waits(now.key, key):
                _require_one(transaction, now, key, row)
        require_unique(transaction, now, row, deferred)
    if old is not None and now.referenced_by:
        yield from _require_unreferenced(runner, now, old, new, deferred, again=True)


def _has_to_wait(
    transaction: Transaction,
    deferred: DeferredKeys,
    table: Table,
    old: Row | None,
    new: Row | None,
) -> bool:
    if new is not None:
        for index in table.indexes:
            if deferred.waits(table.key, index) and (
                old is None or table.entries(index, old) != table.entries(index, new)
            ):
                return True
        for key in table.foreign_keys:
            if key.deferral and deferred.waits(table.key, key):
                at = _positions(table, key.columns)
                if old is None or [old[n] for n in at] != [new[n] for n in at]:
                    return True
                if table.key_of(old) != table.key_of(new):
                    return True
    if old is not None:
        for other, key, _ in _broken(transaction, table, old, new):
            if key.deferral and deferred.waits(other.key, key):
                return True
    return False


def _paired(journal: Journal) -> Generator[None, None, Journal]:
    """Join a row's deletion and insertion under another key into one change.

    An UPDATE deletes all rows that move before it inserts them again, in the same order.
    """
    gone: dict[int, deque[int]] = {}
    result: Journal = []
    for count, (table, old, new) in enumerate(journal, 1):
        waiting = gone.setdefault(table.id, deque())
        if old is None and new is not None and waiting:
            at = waiting.popleft()
            result[at] = (table, result[at][1], new)
        else:
            if new is None:
                waiting.append(len(result))
            result.append((table, old, new))
        if not count % CHANGES_AT_ONCE:
            yield
    return result


# --- the referencing side ------------------------------------------------------------------------


def check_foreign_key(
    transaction: Transaction, table: Table, key: ForeignKey
) -> Generator[None, None, int]:
    """Raise if a row of the table references a row that does not exist."""
    for rows in transaction.scan_values(table.id):
        for row in rows:
            _require_one(transaction, table, key, row)
        yield
    return 0


def _require_referenced(
    transaction: Transaction, table: Table, old: Row | None, new: Row, deferred: DeferredKeys
) -> None:
    if transaction.get(table, table.key_of(new)) != new:
        return  # a later change has taken it away again
    for key in table.foreign_keys:
        if key.deferral and deferred.waits(table.key, key):
            continue
        at = _positions(table, key.columns)
        if old is None or [old[n] for n in at] != [new[n] for n in at]:
            _require_one(transaction, table, key, new)


def _require_one(transaction: Transaction, table: Table, key: ForeignKey, row: Row) -> None:
    values = [row[at] for at in _positions(table, key.columns)]
    if None in values:
        if key.match == "full" and any(value is not None for value in values):
            raise _missing(
                table, key, "MATCH FULL does not allow mixing of null and nonnull key values."
            )
        return
    other = transaction.table(key.table)
    if not _is_there(transaction, table, other, key, values):
        names, shown_values = ", ".join(key.columns), _shown(table, key.columns, values)
        raise _missing(
            table,
            key,
            f'Key ({names})=({shown_values}) is not present in table "{other.name}".',
        )


def _missing(table: Table, key: ForeignKey, detail: str) -> ForeignKeyViolation:
    return ForeignKeyViolation(
        f'insert or update on table "{table.name}" violates foreign key constraint "{key.name}"',
        detail=detail,
        table=table.name,
        constraint=key.name,
    )


def _is_there(
    transaction: Transaction, table: Table, other: Table, key: ForeignKey, values: Sequence[Any]
) -> bool:
    by_position: dict[int, Any] = {}
    for column, referenced, value in zip(key.columns, key.referenced, values, strict=True):
        source, target = table.column(column).type.bare, other.column(referenced).type.bare
        converted = value
        if source != target:
            try:
                converted = cast_function(source, target)(value)
            except DataError:
                return False  # no key of that type can be equal to it
            if cast_function(target, source)(converted) != value:
                return False
        by_position[other.position(referenced)] = converted
    return _look_up(transaction, other, key.referenced, by_position)


def _look_up(
    transaction: Transaction, table: Table, columns: Sequence[str], values: dict[int, Any]
) -> bool:
    """Return whether a row has these values in columns that a key or a unique index guards."""
    guard = referenced_index(table, columns)
    assert guard is not None, "what is referenced is unique"
    if isinstance(guard, Table):
        found = tuple([key_element(values[at]) for at in table.primary_key])
        return transaction.get_entry(table.id, found) is not None
    descending = guard.descending or (False,) * len(guard.columns)
    found = tuple(
        [key_element(values[at], down) for at, down in zip(guard.columns, descending, strict=True)]
    )
    return transaction.get_entry(guard.id, found) is not None


# --- the referenced side -------------------------------------------------------------------------


Action: TypeAlias = tuple[Table, Row, Row | None, Table, ForeignKey]
"""A row before and after, and a foreign key of another table that may have referenced it."""


def _actions(transaction: Transaction, changes: Journal) -> Generator[None, None, list[Action]]:
    found: list[Action] = []
    for count, (table, old, new) in enumerate(changes, 1):
        if old is not None and table.referenced_by:
            broken = _broken(transaction, table, old, new)
            found += [(table, old, new, other, key) for other, key, _ in broken]
        if not count % CHANGES_AT_ONCE:
            yield
    return found


def _in_order(actions: list[Action]) -> Generator[None, None, list[Action]]:
    """Order cascading updates: a key that moves to the old place of another goes after it.

    Otherwise the second would take along the rows that reference the first. Keys that move in a
    circle have no such order; PostgreSQL, which moves one row after the other, refuses that.
    """
    moving = [
        number
        for number, (_, _, new, _, key) in enumerate(actions)
        if new is not None and key.on_update == "cascade"
    ]
    leaving: dict[tuple[Any, ...], int] = {}
    for count, number in enumerate(moving, 1):
        table, old, _, other, key = actions[number]
        leaving[_place(other, key, table, old)] = number
        if not count % CHANGES_AT_ONCE:
            yield
    following: dict[int, int] = {}
    for count, number in enumerate(moving, 1):
        table, _, new, other, key = actions[number]
        assert new is not None
        place = _place(other, key, table, new)
        if place in leaving:
            following[number] = leaving[place]
        if not count % CHANGES_AT_ONCE:
            yield
    if not following:
        return actions
    ordered: dict[int, Action] = {}
    for number, (table, _, new, _, key) in enumerate(actions):
        chain = {number: None}
        last = number
        while (before := following.get(last)) is not None and before not in ordered:
            if before in chain:
                assert new is not None
                raise _circle(table, key, new)
            chain[before] = None
            last = before
        ordered.update({each: actions[each] for each in reversed(chain) if each not in ordered})
    return list(ordered.values())


def _place(other: Table, key: ForeignKey, table: Table, row: Row) -> tuple[Any, ...]:
    """Return the values by which one foreign key references a row."""
    values = [key_element(row[at]) for at in _positions(table, key.referenced)]
    return (other.key, key.name, *values)


def _circle(table: Table, key: ForeignKey, row: Row) -> UniqueViolation:
    guard = referenced_index(table, key.referenced)
    assert guard is not None, "what is referenced is unique"
    name = guard.primary_key_name if isinstance(guard, Table) else guard.name
    columns = table.primary_key if isinstance(guard, Table) else guard.columns
    return UniqueViolation(
        f'duplicate key value violates unique constraint "{name}"',
        detail=f"Key {table.describe_key(columns, row)} already exists.",
        table=table.name,
        constraint=name,
    )


def _act(
    runner: Runner, table: Table, old: Row, new: Row | None, other: Table, key: ForeignKey
) -> Steps[None]:
    at = _positions(table, key.referenced)
    values = [(table.columns[n].type, old[n]) for n in at]
    action = key.on_delete if new is None else key.on_update
    if action in ("no action", "restrict"):
        if action == "restrict":
            yield from _refuse_if_referenced(runner, table, other, key, values)
        return
    name = ("foreign key", other.key, key.name, action, "delete" if new is None else "update")
    parameters = list(values)
    if action == "cascade" and new is None:
        statement: ast.Statement = ast.Delete(ast.TableRef(other.path), where=_refers(key))
    else:
        if action == "cascade" and new is not None:
            parameters += [
                (table.column(column).type, new[table.position(column)])
                for column in key.referenced
            ]
        columns = key.columns
        if new is None and key.on_delete_columns:
            columns = key.on_delete_columns
        statement = _update(other, key, action, columns)
    for _ in runner.run_with(name, statement, parameters):
        yield


def _update(other: Table, key: ForeignKey, action: str, columns: Sequence[str]) -> ast.Update:
    count = len(key.columns)
    value: dict[str, ast.Expression] = {
        "set null": ast.Constant(None),
        "set default": ast.Default(),
    }
    assignments = tuple(
        ast.Assignment((column,), value.get(action) or ast.Parameter(count + number))
        for number, column in enumerate(columns, 1)
    )
    return ast.Update(ast.TableRef(other.path), assignments, where=_refers(key))


def _require_unreferenced(
    runner: Runner,
    table: Table,
    old: Row,
    new: Row | None,
    deferred: DeferredKeys,
    again: bool = False,
) -> Steps[None]:
    """Refuse a row that is gone and still referenced; `again`: by keys that could wait."""
    for other, key, values in _broken(runner.transaction, table, old, new):
        if (again and not key.deferral) or (key.deferral and deferred.waits(other.key, key)):
            continue
        action = key.on_delete if new is None else key.on_update
        if action in ("no action", "set default"):
            by_position = dict(
                zip(_positions(table, key.referenced), [value for _, value in values], strict=True)
            )
            if not _look_up(runner.transaction, table, key.referenced, by_position):
                yield from _refuse_if_referenced(runner, table, other, key, values)


def _broken(
    transaction: Transaction, table: Table, old: Row, new: Row | None
) -> Iterator[tuple[Table, ForeignKey, list[tuple[SqlType, Any]]]]:
    """Yield the foreign keys that could reference the old row and not the new one, with its key."""
    for name in table.referenced_by:
        other = transaction.table(name)
        for key in other.foreign_keys:
            if key.table != table.key:
                continue
            at = _positions(table, key.referenced)
            values = [old[n] for n in at]
            if None in values or (new is not None and values == [new[n] for n in at]):
                continue
            yield other, key, [(table.columns[n].type, old[n]) for n in at]


def _refuse_if_referenced(
    runner: Runner,
    table: Table,
    other: Table,
    key: ForeignKey,
    values: list[tuple[SqlType, Any]],
) -> Steps[None]:
    select = ast.Select(
        (ast.Target(ast.Constant(True)),), (ast.TableRef(other.path),), _refers(key)
    )
    name = ("foreign key", other.key, key.name, "look")
    for page in runner.run_with(name, ast.Query(select), values):
        if page:
            names = ", ".join(key.referenced)
            texts = ", ".join(shown(value, sql_type) for sql_type, value in values)
            raise ForeignKeyViolation(
                f'update or delete on table "{table.name}" violates foreign key constraint'
                f' "{key.name}" on table "{other.name}"',
                detail=f'Key ({names})=({texts}) is still referenced from table "{other.name}".',
                table=other.name,
                constraint=key.name,
            )
        yield


def _refers(key: ForeignKey) -> ast.Expression:
    """Return `a = $1 AND b = $2`."""
    condition: ast.Expression | None = None
    for number, column in enumerate(key.columns, 1):
        equal = ast.Operator("=", ast.Name((column,)), ast.Parameter(number))
        condition = equal if condition is None else ast.Operator("and", condition, equal)
    assert condition is not None
    return condition


def _positions(table: Table, columns: Sequence[str]) -> list[int]:
    return [table.positions[column] for column in columns]


def _shown(table: Table, columns: Sequence[str], values: Sequence[Any]) -> str:
    return ", ".join(
        shown(value, table.column(column).type)
        for column, value in zip(columns, values, strict=True)
    )
