"""The claims of a probe: a statement, and its expected outcome.

Rows are written as PostgreSQL prints them, with ` | ` between the columns and NULL for NULL:

    gives("SELECT id, name FROM people ORDER BY id", "1 | Ada", "2 | NULL")
    fails("INSERT INTO people VALUES (1)", "23505")

Text shows scale, type and precision, which `==` on Python values does not: 1.50 is not 1.5 and not
1. Rows compare in order, so a probe with several rows says ORDER BY. `judge` is a pure function;
`run` and `open_transaction` run the statements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from qserver.errors import QserverError
from qserver.query.sql_database import Result
from qserver.sql import Given
from qserver.values.text_output import shown
from qserver.values.types import SqlType

SHOWN_CHARACTERS_MAX: Final = 400
"""A longer detail is cut, to stay readable."""


class Step(msgspec.Struct, frozen=True):
    """The outcome of one claim."""

    sql: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class SqlStep:
    """A statement and its expected rows, count of changed rows, or error code.

    None is not checked, except that a statement without `code` must not fail.
    """

    sql: str
    parameters: Given = None
    rows: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    affected: int | None = None
    code: str | None = None
    timeout_ms: float | None = None
    max_rows: int | None = None


@dataclass(frozen=True, slots=True)
class TransactionStep:
    """The statements of one transaction; only the last may have a `code`, and then must fail."""

    steps: tuple[SqlStep, ...]


AnyStep = SqlStep | TransactionStep


def does(sql: str, parameters: Given = None) -> SqlStep:
    """The statement succeeds."""
    return SqlStep(sql, parameters)


def gives(
    sql: str, *rows: str, parameters: Given = None, types: tuple[str, ...] | None = None
) -> SqlStep:
    """The statement gives exactly these rows, in this order; none if none are named."""
    return SqlStep(sql, parameters, rows=rows, types=types)


def changes(sql: str, affected: int, parameters: Given = None) -> SqlStep:
    """The statement changes this many rows."""
    return SqlStep(sql, parameters, affected=affected)


def fails(
    sql: str,
    code: str,
    parameters: Given = None,
    *,
    timeout_ms: float | None = None,
    max_rows: int | None = None,
) -> SqlStep:
    """The statement fails with this SQLSTATE."""
    return SqlStep(sql, parameters, code=code, timeout_ms=timeout_ms, max_rows=max_rows)


def together(*steps: SqlStep) -> TransactionStep:
    """Run the steps as one transaction; only the last may fail."""
    assert all(step.code is None for step in steps[:-1]), "a failure is the end of a transaction"
    return TransactionStep(steps)


def judge(step: SqlStep, outcome: Result | QserverError) -> Step:
    """Compare the outcome with the claim."""
    if isinstance(outcome, QserverError):
        found = f"error {outcome.code}: {outcome.message}"
        if step.code == outcome.code:
            return Step(step.sql, True, cut(found))
        return Step(step.sql, False, cut(f"expected {_expected(step)}, found {found}"))
    rows = text_rows(outcome.rows, outcome.types)
    found = _found(step, outcome, rows)
    fits = (
        step.code is None
        and step.rows in (None, tuple(rows))
        and step.affected in (None, outcome.affected_rows)
        and step.types in (None, tuple([str(each) for each in outcome.types]))
    )
    return Step(
        step.sql, fits, cut(found if fits else f"expected {_expected(step)}, found {found}")
    )


def text_rows(rows: Sequence[tuple[Any, ...]], types: Sequence[SqlType]) -> list[str]:
    """Rows in the notation of probes."""
    return [
        " | ".join(
            "NULL" if value is None else shown(value, sql_type)
            for value, sql_type in zip(row, types, strict=True)
        )
        for row in rows
    ]


def cut(text: str) -> str:
    if len(text) <= SHOWN_CHARACTERS_MAX:
        return text
    return f"{text[:SHOWN_CHARACTERS_MAX]} … ({len(text)} characters)"


def counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _expected(step: SqlStep) -> str:
    if step.code is not None:
        return f"error {step.code}"
    parts = []
    if step.rows is not None:
        parts.append(_listed(step.rows))
    if step.types is not None:
        parts.append(f"of type {', '.join(step.types)}")
    if step.affected is not None:
        parts.append(f"{counted(step.affected, 'row')} changed")
    return " ".join(parts) or "success"


def _found(step: SqlStep, outcome: Result, rows: Sequence[str]) -> str:
    parts = []
    if outcome.columns or step.rows is not None:
        parts.append(_listed(rows))
    if step.types is not None:
        parts.append(f"of type {', '.join(str(each) for each in outcome.types)}")
    if outcome.affected_rows or step.affected is not None:
        parts.append(f"{counted(outcome.affected_rows, 'row')} changed")
    return " ".join(parts) or "done"


def _listed(rows: Sequence[str]) -> str:
    return f"{counted(len(rows), 'row')} ({'; '.join(rows)})" if rows else "no rows"
