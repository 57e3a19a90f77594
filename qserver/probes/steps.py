"""What a probe claims: a statement, and what must come of it.

Rows are written as PostgreSQL prints them, with ` | ` between the columns and NULL for NULL:

    gives("SELECT id, name FROM people ORDER BY id", "1 | Ada", "2 | NULL")
    fails("INSERT INTO people VALUES (1)", "23505")

Text rather than Python values, because the text shows scale, type and precision, which `==` does
not: 1.50 is not 1.5 and not 1. Rows are compared in order, so a probe that means it says ORDER BY.
The judging is a pure function; who runs the statement, and in which transaction, is told in `run`
and `open_transaction`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from qserver.errors import QserverError
from qserver.query.sql_database import Result
from qserver.sql.parameters import Given
from qserver.values.text_output import shown
from qserver.values.types import SqlType

SHOWN_CHARACTERS_MAX: Final = 400
"""A detail is for reading: what is longer is cut."""


class Step(msgspec.Struct, frozen=True):
    """What became of one claim."""

    sql: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class SqlStep:
    """A statement and what is expected: rows, a count of changed rows, or an error's code.

    What is None is not looked at, except that a statement without `code` must not fail.
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
    """Statements that are one transaction; with `code`, the last of them must fail with it."""

    steps: tuple[SqlStep, ...]


AnyStep = SqlStep | TransactionStep


def does(sql: str, parameters: Given = None) -> SqlStep:
    """It succeeds."""
    return SqlStep(sql, parameters)


def gives(
    sql: str, *rows: str, parameters: Given = None, types: tuple[str, ...] | None = None
) -> SqlStep:
    """Exactly these rows come, in this order; none, if none are named."""
    return SqlStep(sql, parameters, rows=rows, types=types)


def changes(sql: str, affected: int, parameters: Given = None) -> SqlStep:
    """It changes so many rows."""
    return SqlStep(sql, parameters, affected=affected)


def fails(
    sql: str,
    code: str,
    parameters: Given = None,
    *,
    timeout_ms: float | None = None,
    max_rows: int | None = None,
) -> SqlStep:
    """It is refused with this SQLSTATE."""
    return SqlStep(sql, parameters, code=code, timeout_ms=timeout_ms, max_rows=max_rows)


def together(*steps: SqlStep) -> TransactionStep:
    """All of them or none; only the last may be one that fails."""
    assert all(step.code is None for step in steps[:-1]), "a failure is the end of a transaction"
    return TransactionStep(steps)


def judge(step: SqlStep, outcome: Result | QserverError) -> Step:
    """Hold what came against what was claimed."""
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
    """Rows as probes write them."""
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
