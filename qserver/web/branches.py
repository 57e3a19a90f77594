"""Runs a transaction on a new branch instead of the database that it names."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from qserver.control.plane import ControlPlane
from qserver.control.records import Grant
from qserver.engine.work import FOREVER, before, timed_out
from qserver.query.sql_database import RunOptions, Statement, TransactionResult


async def run_on_branch(
    plane: ControlPlane,
    grant: Grant,
    database: str,
    statements: Sequence[Statement],
    options: RunOptions,
) -> tuple[str, TransactionResult]:
    """Return the name of the branch and the outcome; a failed transaction leaves no branch.

    Making the branch counts toward the timeout. It begins with what is as fresh as the options say.
    """
    deadline = FOREVER
    if options.timeout_ms is not None:
        deadline = trio.current_time() + options.timeout_ms / 1000
    with await before(deadline, plane.database, grant, database) as opened:
        await opened.sql.wait_fresh(options.freshness, deadline)
    branch = await plane.records.create_for_transaction(grant, database)
    try:
        with await before(deadline, plane.database, grant, branch.id) as opened:
            left = deadline - trio.current_time()
            if left <= 0:
                raise timed_out()
            return branch.name, await opened.sql.transaction(
                statements,
                max_retries=options.max_retries,
                timeout_ms=None if deadline == FOREVER else left * 1000,
                max_rows=options.max_rows,
                cut_rows=options.cut_rows,
                allowed=options.allowed,
                max_affected=options.max_affected,
                if_version=options.if_version,
            )
    except BaseException:
        with trio.CancelScope(shield=True):
            await plane.records.delete(grant, branch.id)
        raise
