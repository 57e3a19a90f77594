"""pg_stat_statements and its reset: what the server knows of the statements of a database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from qserver.functions.registry import Function, TableFunction
from qserver.values.types import BIGINT, BOOLEAN, DOUBLE, OID, TEXT, VOID

if TYPE_CHECKING:
    from qserver.functions.context import Context

COLUMNS: Final = (
    ("userid", OID),
    ("dbid", OID),
    ("toplevel", BOOLEAN),
    ("queryid", BIGINT),
    ("query", TEXT),
    ("plans", BIGINT),
    ("calls", BIGINT),
    ("total_exec_time", DOUBLE),
    ("min_exec_time", DOUBLE),
    ("max_exec_time", DOUBLE),
    ("mean_exec_time", DOUBLE),
    ("stddev_exec_time", DOUBLE),
    ("rows", BIGINT),
    ("cpu_time", DOUBLE),
    ("retries", BIGINT),
    ("conflicts", BIGINT),
    ("memory_bytes_max", BIGINT),
)
"""Those of the extension's release 1.10 that say something here, and four more. Times are in ms."""


def _rows(context: Context, show_text: bool) -> Iterable[tuple[Any, ...]]:
    found: Iterable[tuple[Any, ...]] = context.statement_rows(show_text)
    return found


def _reset(context: Context, *given: int) -> str:
    context.reset_statements(given[2] if given else 0)
    return ""


FUNCTIONS: Final = tuple(
    Function(
        "pg_stat_statements_reset", parameters, VOID, _reset, volatile=True, needs_context=True
    )
    for parameters in ((), (OID, OID, BIGINT))
)
TABLE_FUNCTIONS: Final = (
    TableFunction("pg_stat_statements", (BOOLEAN,), COLUMNS, _rows, needs_context=True),
)
