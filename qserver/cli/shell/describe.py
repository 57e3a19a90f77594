"""`\\d` and `\\l`: lists from `GET /tables` and `GET /v1/databases`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from qserver.cli.layouts import table
from qserver.errors import UndefinedTable

JsonObject = Mapping[str, Any]


def tables_listed(tables: Sequence[JsonObject]) -> str:
    if not tables:
        return "There are no tables.\n"
    rows = [(each["name"], len(each["columns"]), each["row_count"]) for each in tables]
    return table(("table", "columns", "rows"), ("text", "bigint", "bigint"), rows)


def table_described(tables: Sequence[JsonObject], name: str) -> str:
    """Columns, keys, indexes and foreign keys of one table, as psql groups them."""
    for each in tables:
        if each["name"] == name:
            return "".join(_described(each, tables))
    raise UndefinedTable(
        f'there is no table "{name}"', hint="\\d alone lists the tables of this database."
    )


def databases_listed(databases: Sequence[JsonObject]) -> str:
    columns = ("name", "state", "tables", "rows", "size_bytes")
    types = ("text", "text", "bigint", "bigint", "bigint")
    return table(columns, types, [tuple(each.get(name) for name in columns) for each in databases])


def _described(described: JsonObject, tables: Sequence[JsonObject]) -> Iterator[str]:
    yield f'Table "{described["name"]}"\n'
    rows = [
        (each["name"], each["type"], "" if each["nullable"] else "not null", each["default"] or "")
        for each in described["columns"]
    ]
    yield table(("column", "type", "nullable", "default"), ("text",) * 4, rows)
    if described["primary_key"]:
        yield f"Primary key: ({', '.join(described['primary_key'])})\n"
    yield from _section(
        "Indexes",
        [
            f"{each['name']} ({', '.join(each['columns'])}){' unique' if each['unique'] else ''}"
            for each in described["indexes"]
        ],
    )
    yield from _section("Foreign keys", [_reference(each) for each in described["foreign_keys"]])
    yield from _section(
        "Referenced by",
        [
            f"{other['name']}: {_reference(each)}"
            for other in tables
            for each in other["foreign_keys"]
            if each["references"] == described["name"]
        ],
    )


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield f"{title}:\n"
        yield from (f"    {line}\n" for line in lines)


def _reference(key: JsonObject) -> str:
    actions = "".join(
        f" {name.replace('_', ' ')} {key[name]}"
        for name in ("on_delete", "on_update")
        if str(key.get(name) or "no action").lower() != "no action"
    )
    return (
        f"{key['name']} ({', '.join(key['columns'])}) references "
        f"{key['references']} ({', '.join(key['referenced_columns'])}){actions}"
    )
