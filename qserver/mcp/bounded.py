"""Answers of a bounded size: a model pays for each byte that it reads, and remembers few.

    rows ──► texts cut, with their length said ──► as many rows as fit ──► "truncated": true

An answer is JSON. Nothing is left out silently: a text that was cut says how long it was, and rows
that were left out are said. So an answer never looks complete that is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from qserver.errors import QserverError
from qserver.limits import MCP_ANSWER_BYTES_MAX, MCP_ELEMENTS_MAX, MCP_TEXT_LENGTH_MAX

JsonObject = dict[str, Any]

encode = msgspec.json.encode


def cut(value: Any) -> Any:
    """The value with its long texts and long lists cut."""
    match value:
        case str() if len(value) > MCP_TEXT_LENGTH_MAX:
            return f"{value[:MCP_TEXT_LENGTH_MAX]}… ({len(value):,} characters)"
        case Mapping():
            return {name: cut(each) for name, each in value.items()}
        case list() | tuple() if len(value) > MCP_ELEMENTS_MAX:
            kept = [cut(each) for each in value[:MCP_ELEMENTS_MAX]]
            return [*kept, f"… ({len(value):,} elements)"]
        case list() | tuple():
            return [cut(each) for each in value]
        case _:
            return value


def fitting(items: Iterable[Any], bytes_most: int = MCP_ANSWER_BYTES_MAX) -> tuple[list[Any], bool]:
    """The first items that fit, and whether these are all."""
    kept: list[Any] = []
    for item in items:
        bytes_most -= len(encode(item)) + 1
        if bytes_most < 0:
            return kept, False
        kept.append(item)
    return kept, True


def table_of(
    columns: Sequence[str], types: Sequence[str], rows: Sequence[Sequence[Any]], more: bool
) -> JsonObject:
    """A result: names and types of columns, and rows as arrays."""
    kept, are_all = fitting(_row(row) for row in rows)
    found: JsonObject = {
        "columns": list(columns),
        "types": list(types),
        "rows": kept,
        "row_count": len(kept),
        "truncated": more or not are_all,
    }
    if not are_all:
        found["note"] = "Not all rows fit into an answer: ask for fewer columns or rows."
    elif more:
        found["note"] = "There are more rows: aggregate, filter, or ask for more with max_rows."
    return found


def _row(row: Sequence[Any]) -> list[Any]:
    """Lists in a row are cut as values; the row itself has all of its columns."""
    return [cut(value) for value in row]


def failure_of(error: QserverError) -> JsonObject:
    """What a model needs to do better: the error as the API has it, without what is empty."""
    fields = {
        "code": error.code,
        "name": error.name,
        "message": error.message,
        "detail": error.detail,
        "hint": error.hint,
        "position": error.position,
        "retryable": error.retryable or None,
        "conflict": vars(error).get("conflict"),
    }
    return {"error": {name: cut(value) for name, value in fields.items() if value is not None}}
