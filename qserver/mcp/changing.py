"""The tools that change something; the server has them only with `--allow-writes`.

try_on_branch ──► a branch with the change ──► promote_branch: the same statements, if none of
                        │                      their tables has changed since
                        └──► discard_branch
change ──► version ──► undo, while that is the newest version
"""

from __future__ import annotations

from contextlib import suppress

from qserver.client import requests
from qserver.errors import InvalidRequest, QserverError
from qserver.limits import MCP_DIFF_ROWS_MAX, MCP_ROWS_DEFAULT, MCP_TIMEOUT_MS_MAX
from qserver.mcp import arguments
from qserver.mcp.access import Access, JsonObject, Tried
from qserver.mcp.reading import changes, results


async def try_on_branch(access: Access, asked: arguments.Change) -> JsonObject:
    parent = await access.name_of(asked.database)
    done = await access.client.transaction(
        asked.statements,
        database=parent,
        branch=True,
        max_rows=MCP_ROWS_DEFAULT,
        max_affected=asked.max_affected,
        timeout_ms=asked.timeout_ms,
    )
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
    return {
        "database": tried.database,
        "version": done.version,
        "affected_rows": done.affected_rows,
        "results": results(done),
        "next": f"undo with version {done.version} takes it back.",
    }


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
    done = await access.client.transaction(
        asked.statements,
        database=database,
        max_rows=MCP_ROWS_DEFAULT,
        max_affected=asked.max_affected,
        timeout_ms=asked.timeout_ms,
    )
    return {
        "database": database,
        "version": done.version,
        "affected_rows": done.affected_rows,
        "results": results(done),
        "next": f"undo with version {done.version} takes it back.",
    }


async def undo(access: Access, asked: arguments.Undo) -> JsonObject:
    """Restore the version before; what others have committed since must not be lost with it.

    Between the look and the restore somebody may commit: the answer then lists what was undone
    besides, and each of it can be restored.
    """
    database = await access.name_of(asked.database)
    path = ("databases", database, "versions")
    newest, *older = (await access.page(*path, limit=2))["versions"]
    if newest["version"] != asked.version or not older:
        raise InvalidRequest(
            f"version {asked.version} is not the newest one of {database}, which is"
            f" {newest['version']}",
            hint="To undo it would undo what came later, too. See list_versions and"
            " show_difference, and make a change that takes back what you mean.",
        )
    restored = await access.client.call(
        requests.record("POST", *path[:2], "restore", as_of=older[0]["version"])
    )
    since = (await access.page(*path, limit=MCP_ROWS_DEFAULT))["versions"]
    besides = [
        each["version"] for each in since if asked.version < each["version"] < restored["version"]
    ]
    return {
        "database": database,
        "version": restored["version"],
        "undone": asked.version,
        "as_of": older[0]["version"],
        "undone_besides": besides,
    }
