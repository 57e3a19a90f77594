"""Errors of requests that ask for what a statement, or the database, does not do."""

from __future__ import annotations

from qserver.engine.freshness import Freshness
from qserver.errors import InvalidRequest, MethodNotAllowed, ReadOnlyTransaction
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.results import RunOptions
from qserver.storage.snapshot import Snapshot


def not_a_query() -> MethodNotAllowed:
    return MethodNotAllowed(
        "GET runs only queries: SELECT, VALUES and TABLE",
        hint="Send other statements with POST.",
        allowed=("POST",),
    )


def not_live() -> InvalidRequest:
    return InvalidRequest("only a query can be live", hint="Send a SELECT, VALUES or TABLE.")


def check_as_of(snapshot: Snapshot, freshness: Freshness) -> None:
    """Raise if the version that `as_of` names is older than the request wants."""
    if snapshot.version < freshness.min_version:
        raise InvalidRequest(
            f"as_of is version {snapshot.version}, and min_version is {freshness.min_version}",
            hint="Leave out one of them.",
        )


def cannot_write(statements: list[PreparedStatement], options: RunOptions) -> ReadOnlyTransaction:
    what = "this database can only be read here"
    if options.as_of is not None:
        what = "what was can only be read"
    error = ReadOnlyTransaction(f"the statement writes, and {what}", hint=hint_of(options))
    writes = (each.plan is None or each.plan.writes for each in statements)
    error.statement = list(writes).index(True)
    word = statements[error.statement].sql.split(maxsplit=1)[0].upper()
    if word in ("SAVEPOINT", "ROLLBACK", "RELEASE"):
        error.message = f"{word} is for statements that write, and what was can only be read"
    return error


def hint_of(options: RunOptions) -> str:
    """What to do about a statement that writes where nothing can be written."""
    if options.as_of is not None:
        return "Leave out as_of, or restore the database to that version."
    return "Send it to the server that writes this database."
