"""Stands in for `SqlDatabase.begin` until the engine has it; goes away then."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Literal

import msgspec

from qserver.engine.permissions import Allowed
from qserver.engine.sql_gateway import SqlDatabase, Statement, TransactionResult
from qserver.errors import QserverError
from qserver.limits import RETRIES_DEFAULT
from qserver.web.http1.application import PENDING, Pending

Outcome = TransactionResult | Exception | Coroutine[Any, Any, TransactionResult]


class Options(msgspec.Struct, frozen=True):
    max_retries: int
    timeout_ms: float
    max_rows: int | None
    cut_rows: int | None
    allowed: Allowed


def begin(
    sql: SqlDatabase,
    statements: Sequence[Statement],
    options: Options,
    done: Callable[[Outcome], None],
) -> TransactionResult | Literal[Pending.PENDING] | Coroutine[Any, Any, TransactionResult]:
    if options.cut_rows is None and options.max_retries == RETRIES_DEFAULT:
        try:
            outcome = _at_once(sql, statements, options, done)
        except (QserverError, ArithmeticError):
            outcome = None
        if outcome is not None:
            return outcome
    return _wait(sql, statements, options)


def _at_once(
    sql: SqlDatabase,
    statements: Sequence[Statement],
    options: Options,
    done: Callable[[Outcome], None],
) -> TransactionResult | Literal[Pending.PENDING] | None:
    if isinstance(statements, tuple):  # /v1/query
        found = sql.look(statements[0].sql, statements[0].parameters)
        if found is None:
            return None
        result = sql.read_found(found, options.allowed)
        if result is not None:
            return TransactionResult([result], result.version)
        statements = (found,)

    def settled(outcome: TransactionResult | Exception | None) -> None:
        done(_wait(sql, statements, options) if outcome is None else outcome)

    return PENDING if sql.write_nowait(statements, settled, options.allowed) else None


async def _wait(
    sql: SqlDatabase, statements: Sequence[Statement], options: Options
) -> TransactionResult:
    fields = msgspec.structs.asdict(options)
    if isinstance(statements, tuple):
        result = await sql.execute(statements[0].sql, statements[0].parameters, **fields)
        return TransactionResult([result], result.version, result.retries)
    return await sql.transaction(statements, **fields)
