"""pg_get_indexdef of the indexes that PostgreSQL's own catalogs have."""

from __future__ import annotations

from typing import Any

from qserver.query.catalog.data import recorded_by, relations
from qserver.query.catalog.search_path import SearchPath, full_name, own_schema
from qserver.values.identifiers import quote_identifier


def builtin_index(path: SearchPath, oid: int, column: int, pretty: bool) -> str | None:
    """Return the text of an index, or the name of one of its columns; None if there is none."""
    index = _row("pg_index", "indexrelid", oid)
    if index is None:
        return None
    names = _columns(index["indrelid"], index["indkey"])
    if column:
        return names[column - 1] if 0 < column <= len(names) else ""
    own, table = _row("pg_class", "oid", oid), _row("pg_class", "oid", index["indrelid"])
    assert own is not None and table is not None
    unique = "UNIQUE " if index["indisunique"] else ""
    schema, relation = own_schema(table["relnamespace"]), table["relname"]
    place = path.shown_relation(schema, relation) if pretty else full_name(schema, relation)
    listed = ", ".join(names)
    name = quote_identifier(own["relname"])
    return f"CREATE {unique}INDEX {name} ON {place} USING btree ({listed})"


def _row(table: str, column: str, value: int) -> dict[str, Any] | None:
    names = relations()["pg_catalog", table].names
    for row in recorded_by(table, column).get(value, ()):
        return dict(zip(names, row, strict=True))
    return None


def _columns(table: int, numbers: tuple[int, ...]) -> list[str]:
    names = relations()["pg_catalog", "pg_attribute"].names
    name, number = names.index("attname"), names.index("attnum")
    rows = recorded_by("pg_attribute", "attrelid").get(table, ())
    found = {row[number]: quote_identifier(row[name]) for row in rows}
    return [found[each] for each in numbers]
