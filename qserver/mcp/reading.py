"""The tools that change nothing. Statements run where the server refuses every write (25006)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qserver.client import Result, TransactionResult, requests
from qserver.errors import InvalidRequest, UndefinedTable
from qserver.limits import MCP_ANSWER_BYTES_MAX, MCP_DIFF_ROWS_MAX, MCP_ROWS_MAX
from qserver.mcp import arguments
from qserver.mcp.access import ONLY_READS, Access, JsonObject
from qserver.mcp.bounded import cut, fitting, table_of


async def list_databases(access: Access, asked: arguments.NoArguments) -> JsonObject:
    answer = await access.page("databases", limit=MCP_ROWS_MAX)
    shown = ("name", "tables", "rows", "version", "branch_of", "expires_at")
    records = [{name: each[name] for name in shown if name in each} for each in answer["databases"]]
    kept, are_all = fitting(records)
    return {"databases": kept, "truncated": not are_all or answer["next_cursor"] is not None}


async def describe_schema(access: Access, asked: arguments.DescribeSchema) -> JsonObject:
    """Definitions of tables; of more than fit, their names."""
    answer = await access.tables(asked.database)
    tables = {table["name"]: table for table in answer["tables"]}
    if asked.tables is not None:
        missing = [name for name in asked.tables if name not in tables]
        if missing:
            raise UndefinedTable(
                f'relation "{missing[0]}" does not exist',
                hint="Without `tables`, describe_schema lists all of them.",
            )
        tables = {name: tables[name] for name in asked.tables}
    kept, are_all = fitting(cut_columns(table) for table in tables.values())
    found = {"database": answer["database"], "version": answer["version"], "truncated": not are_all}
    if are_all:
        return {**found, "tables": kept}
    names, _ = fitting(tables)
    return {**found, "names": names, "note": "Too many for one answer: name some in `tables`."}


def cut_columns(table: JsonObject) -> JsonObject:
    """A definition with all of its columns, whose texts are cut."""
    columns = [cut(column) for column in table["columns"]]
    return {**{name: cut(each) for name, each in table.items()}, "columns": columns}


async def query(access: Access, asked: arguments.Query) -> JsonObject:
    result = await access.client.query(
        asked.sql,
        asked.params,
        database=asked.database or access.client.database,
        max_rows=asked.max_rows,
        timeout_ms=asked.timeout_ms,
        as_of=asked.as_of,
        settings=ONLY_READS,
    )
    return {**shown(result), "version": result.version}


async def explain(access: Access, asked: arguments.Explain) -> JsonObject:
    words = "EXPLAIN ANALYZE" if asked.analyze else "EXPLAIN"
    result = await access.client.query(
        f"{words} {asked.sql}",
        asked.params,
        database=asked.database or access.client.database,
        max_rows=MCP_ROWS_MAX,
        timeout_ms=asked.timeout_ms,
        settings=ONLY_READS,
    )
    plan, are_all = fitting(cut(line) for (line,) in result.rows)
    return {"plan": plan, "truncated": not are_all or result.truncated}


async def dry_run(access: Access, asked: arguments.Change) -> JsonObject:
    database = asked.database or access.client.database
    done = await access.transaction(asked, database, max_rows=MCP_DIFF_ROWS_MAX, dry_run=True)
    return {
        "applied": False,
        "affected_rows": done.affected_rows,
        "version": done.version,
        **changes(done.diff or (), done.diff_truncated),
        "results": results(done),
    }


async def list_versions(access: Access, asked: arguments.History) -> JsonObject:
    name = await access.name_of(asked.database)
    answer = await access.page("databases", name, "versions", limit=asked.limit)
    kept, are_all = fitting(map(cut, answer["versions"]))
    more = answer["next_cursor"] is not None
    return {"database": name, "versions": kept, "truncated": more or not are_all}


async def show_difference(access: Access, asked: arguments.Difference) -> JsonObject:
    if asked.since is None and asked.from_database is None:
        hint = "Name a version or a time, such as one of list_versions, or a from_database."
        raise InvalidRequest("show_difference: since is missing", hint=hint)
    name = await access.name_of(asked.database)
    given = requests.comparison(asked.since, asked.until, asked.tables, asked.from_database)
    if asked.count:
        given["count"] = "true"
    page = await access.page("databases", name, "diff", **given, limit=asked.limit)
    found = {"database": name, "from": page["from"], "to": page["to"]}
    if asked.from_database is not None:
        found["from_database"] = asked.from_database
    if asked.count:
        counts, are_all = fitting(page["counts"])
        return {**found, "counts": counts, "truncated": not are_all}
    return {**found, **changes(page["changes"], page["next_cursor"] is not None)}


def shown(result: Result) -> JsonObject:
    """A result as a table, or how many rows it has changed."""
    if not result.columns:
        return {"affected_rows": result.affected_rows}
    return table_of(result.columns, result.types, result.rows, result.truncated)


def changes(diff: Sequence[Any], more: bool) -> JsonObject:
    kept, are_all = fitting(map(cut, diff))
    return {"diff": kept, "diff_truncated": more or not are_all}


def results(done: TransactionResult) -> list[JsonObject]:
    """What each statement gave; together they are no larger than one answer."""
    found, left = [], MCP_ANSWER_BYTES_MAX
    for result in done.results:
        one = shown(result)
        if "rows" in one:
            one["rows"], fits = fitting(one["rows"], left)
            one["truncated"] = one["truncated"] or not fits
            left -= sum(map(len, map(str, one["rows"])))
        found.append(one)
    return found
