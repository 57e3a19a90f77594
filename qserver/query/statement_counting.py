"""What is counted beside the runs of statements, and how all of it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from qserver.errors import SerializationFailure
from qserver.query.catalog.world import DATABASE, OWNER
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.statement_statistics import StatementNumbers

MS: Final = 1000.0


def count_retries(statements: Sequence[PreparedStatement], retries: int) -> None:
    """Count that all statements of a transaction ran again, so many times."""
    for each in statements:
        if each.plan is not None and each.plan.counter is not None:
            each.plan.counter.numbers.retries += retries


def count_conflict(statements: Sequence[PreparedStatement], error: SerializationFailure) -> None:
    """Count a conflict for the statement whose reads are no longer true, or else for all."""
    at = getattr(error.conflict, "statement", None)
    concerned = statements if at is None else statements[at : at + 1]
    for each in concerned:
        if each.plan is not None and each.plan.counter is not None:
            each.plan.counter.numbers.conflicts += 1


def statement_row(found: StatementNumbers, show_text: bool) -> tuple[Any, ...]:
    """Return a row of pg_stat_statements."""
    return (
        OWNER,
        DATABASE,
        True,
        found.number,
        found.text if show_text else None,
        found.plans,
        found.calls,
        found.seconds * MS,
        (found.least if found.calls else 0.0) * MS,
        found.most * MS,
        found.mean * MS,
        found.deviation * MS,
        found.rows,
        found.cpu_seconds * MS,
        found.retries,
        found.conflicts,
        found.bytes_most,
    )
