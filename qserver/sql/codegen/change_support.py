"""Functions that generated INSERT, UPDATE and DELETE code calls."""

from __future__ import annotations

from typing import Any, NoReturn

from qserver.errors import (
    CardinalityViolation,
    CheckViolation,
    ProgramLimitExceeded,
    WithCheckOptionViolation,
)
from qserver.limits import ROW_BYTES_MAX
from qserver.sql.execution import Writer
from qserver.values.keys import Row
from qserver.values.schema import Index, Table


def arbiter_of(index: Index | None) -> Index | None:
    return index


def find_row_in_the_way(
    transaction: Writer, table: Table, row: Row, arbiters: tuple[Index | None, ...]
) -> Row | None:
    """Return the row that has the new row's key in an arbiter, or in any unique index."""
    wanted = arbiters or (None, *(index for index in table.indexes if index.unique))
    for index in wanted:
        if index is None:
            old = transaction.get_entry(table.id, table.key_of(row))
        else:
            key, _ = table.entries(index, row)
            primary_key = transaction.get_entry(index.id, key)
            old = None if primary_key is None else transaction.get_entry(table.id, primary_key)
        if old is not None:
            return old
    return None


def replace_row(transaction: Writer, table: Table, old: Row, new: Row) -> None:
    if table.key_of(old) == table.key_of(new):
        transaction.put(table, new)
    else:
        transaction.delete(table, table.key_of(old))
        transaction.insert(table, new)


def refuse_second_change() -> NoReturn:
    """Raise: the result must not depend on the order of the proposed rows."""
    raise CardinalityViolation(
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
        hint="Ensure that no rows proposed for insertion within the same command have"
        " duplicate constrained values.",
    )


def refuse_row(size: int) -> NoReturn:
    """Raise: a row is one piece in the log and in answers, so its size has a limit."""
    raise ProgramLimitExceeded(
        f"row is too big: size {size}, maximum size {ROW_BYTES_MAX}",
        hint="Spread its long values over several rows.",
    )


def fail_view(table: Table, view: str, row: tuple[Any, ...]) -> NoReturn:
    raise WithCheckOptionViolation(
        f'new row violates check option for view "{view}"',
        detail=f"Failing row contains ({table.describe(row)}).",
    )


def fail_check(table: Table, name: str, row: tuple[Any, ...]) -> NoReturn:
    raise CheckViolation(
        f'new row for relation "{table.name}" violates check constraint "{name}"',
        detail=f"Failing row contains ({table.describe(row)}).",
        table=table.name,
        constraint=name,
    )
