"""The tools that change something; the server has them only with `--allow-writes`.

try_on_branch ──► a branch with the change ──► promote_branch: the same statements, if none of
                        │                      their tables has changed since
                        └──► discard_branch
change ──► version ──► undo, while that is the newest version
"""

from __future__ import annotations

from contextlib import suppress

from qserver.client import TransactionResult
from qserver.errors import InvalidRequest, QserverError
from qserver.limits import MCP_DIFF_ROWS_MAX, MCP_ROWS_DEFAULT, MCP_TIMEOUT_MS_MAX
from qserver.mcp import arguments
from qserver.mcp.access import Access, JsonObject, Tried
from qserver.mcp.reading import changes, results


async def try_on_branch(access: Access, asked: arguments.Change) -> JsonObject:
    parent = await access.name_of(asked.database)
    done = await access.transaction(asked, parent, max_rows=MCP_ROWS_DEFAULT, branch=True)
    assert done.database is not None, "a transaction on a branch names it"
    branch, began = done.database, (await access.record(done.database))["branch_version"]
    tried = Tried(tuple(asked.statements), parent, began, asked.max_affected)
    access.remember(branch, tried)
    page = await access.page("databases", branch, "diff", from_=began, limit=MCP_DIFF_ROWS_MAX)
    return {
        "branch": branch,
        "branch_of": parent,
        "affected_rows": done.affected_rows,
        **changes(page["changes"], page["next_cursor"] is not None),
        "results": results(done),
        "next": "Look at it with `query` and `database`, then promote_branch or discard_branch."
        " It is deleted after an hour.",
    }


async def promote_branch(access: Access, asked: arguments.Branch) -> JsonObject:
    """Run what was tried on the database itself; sent twice, it is applied once."""
    tried = access.tried.get(asked.branch)
    if tried is None:
        raise InvalidRequest(
            f'"{asked.branch}" is no branch that try_on_branch has made here',
            hint="Try the statements on a branch again, then promote that one.",
        )
    done = await access.client.transaction(
        list(tried.statements),
        database=tried.database,
        if_version=tried.version,
        max_rows=MCP_ROWS_DEFAULT,
        max_affected=tried.max_affected,
        timeout_ms=MCP_TIMEOUT_MS_MAX,
        idempotency_key=f"promote {asked.branch}",
    )
    with suppress(QserverError):  # it is done; the branch goes by itself within an hour
        await access.client.delete_database(asked.branch)
    access.tried.pop(asked.branch, None)
    return _changed(tried.database, done)


async def discard_branch(access: Access, asked: arguments.Branch) -> JsonObject:
    """Delete a branch; a database that is none is never deleted."""
    record = await access.record(asked.branch)
    if record.get("branch_of") is None:
        raise InvalidRequest(
            f'"{asked.branch}" is a database of its own and not a branch',
            hint="This tool deletes only branches.",
        )
    await access.client.delete_database(asked.branch)
    access.tried.pop(asked.branch, None)
    return {"discarded": asked.branch}


async def change(access: Access, asked: arguments.Change) -> JsonObject:
    database = await access.name_of(asked.database)
    done = await access.transaction(asked, database, max_rows=MCP_ROWS_DEFAULT)
    return _changed(database, done)


def _changed(database: str, done: TransactionResult) -> JsonObject:
    """What a change has done, and how it is taken back."""
    return {
        "database": database,
        "version": done.version,
        "affected_rows": done.affected_rows,
        "results": results(done),
        "next": f"undo with version {done.version} takes it back.",
    }


async def undo(access: Access, asked: arguments.Undo) -> JsonObject:
    """Make the database what it was before a version, if nothing has changed since that version.

    The server checks that in the commit itself; the error names the table and both versions.
    """
    database, before = await access.name_of(asked.database), asked.version - 1
    restored = await access.client.restore_database(database, before, if_version=asked.version)
    return {
        "database": database,
        "version": restored["version"],
        "undone": asked.version,
        "as_of": before,
    }
