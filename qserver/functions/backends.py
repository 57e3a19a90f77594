"""pg_sleep, pg_cancel_backend, txid_current: what a statement does or asks beside its data."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from qserver.functions.datetime.arithmetic import moment_plus
from qserver.functions.registry import Function
from qserver.values.interval import Interval
from qserver.values.notices import Notice
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTERVAL,
    TEXT,
    TIMESTAMPTZ,
    VOID,
    SqlType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from qserver.functions.context import Context

XID8: Final = TYPES_BY_NAME["xid8"]


def _sleep(context: Context, seconds: float) -> str:
    context.sleep(seconds)
    return ""  # PostgreSQL shows void so


def _sleep_for(context: Context, interval: Interval) -> str:
    return _sleep_until(context, moment_plus(context.now, interval))


def _sleep_until(context: Context, moment: datetime) -> str:
    return _sleep(context, (moment - context.now).total_seconds())


def _ending(what: str) -> Callable[..., bool]:
    def call(context: Context, number: int, *patience: int) -> bool:
        found: bool = getattr(context, what)(number)
        if not found:
            text = f"PID {number} is not a PostgreSQL server process"
            context.give_notice(Notice("WARNING", "01000", text))
        return found

    return call


def _number(context: Context) -> int:
    return context.transaction_number(draws=True) or 0


def _number_if_drawn(context: Context) -> int | None:
    return context.transaction_number(draws=False)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _doing(
    name: str,
    parameters: tuple[SqlType, ...],
    returns: SqlType,
    call: Callable[..., object],
    *,
    writes: bool = False,
) -> Function:
    """`writes`: it is for keys that may write, and not for what only reads."""
    return Function(
        name, parameters, returns, call, volatile=True, needs_context=True, writes=writes
    )


def _asking(name: str, returns: SqlType, call: Callable[..., object]) -> Function:
    return Function(name, (), returns, call, volatile=True, needs_context=True, gives_null=True)


FUNCTIONS: Final = (
    _doing("pg_sleep", (DOUBLE,), VOID, _sleep),
    _doing("pg_sleep_for", (INTERVAL,), VOID, _sleep_for),
    _doing("pg_sleep_until", (TIMESTAMPTZ,), VOID, _sleep_until),
    _doing("pg_cancel_backend", (INTEGER,), BOOLEAN, _ending("cancel_session"), writes=True),
    *(
        _doing("pg_terminate_backend", given, BOOLEAN, _ending("terminate_session"), writes=True)
        for given in ((INTEGER,), (INTEGER, BIGINT))
    ),
    _doing("txid_current", (), BIGINT, _number),
    _doing("pg_current_xact_id", (), XID8, lambda context: _text(_number(context))),
    _asking("txid_current_if_assigned", BIGINT, _number_if_drawn),
    _asking(
        "pg_current_xact_id_if_assigned", XID8, lambda context: _text(_number_if_drawn(context))
    ),
    _asking("current_query", TEXT, lambda context: context.statement_text),
)
