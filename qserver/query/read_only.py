"""Runs statements that have no plan, such as EXPLAIN and SHOW, where nothing can be written.

They run in a transaction that is never committed, and whose request may only read.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from qserver.engine.work import Step
from qserver.errors import ReadOnlyTransaction
from qserver.query.body import run_statements
from qserver.query.planning import Planner
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.refusals import cannot_write, hint_of
from qserver.query.request import Request
from qserver.query.results import RunOptions, TransactionResult
from qserver.query.transaction_control import NeedsSavepoints
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction


def run_read_only(
    planner: Planner,
    request: Request,
    statements: list[PreparedStatement],
    options: RunOptions,
    snapshot: Snapshot,
) -> Generator[Step, Any, TransactionResult]:
    """Return the results of statements; raise ReadOnlyTransaction if one of them writes."""
    if any(each.plan is not None and each.plan.writes for each in statements):
        raise cannot_write(statements, options)
    request.allowed = msgspec.structs.replace(request.allowed, read_only=True)
    steps = run_statements(planner, request, statements, options, Transaction(snapshot))
    answer: Any = None
    try:
        while True:
            step = steps.send(answer)
            answer = yield request.pause() if step is None else step
    except StopIteration as ended:
        return TransactionResult(ended.value, snapshot.version)
    except NeedsSavepoints:
        raise cannot_write(statements, options) from None
    except ReadOnlyTransaction as error:
        error.hint = error.hint or hint_of(options)
        raise
