"""The recorded catalog of PostgreSQL 15; see `tests/query/catalog/__main__.py`, which records it.

Nothing is read before a statement asks for it.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

import msgspec

from qserver.values.object_names import NO_OBJECT, ObjectName

SYSTEM_SCHEMAS: Final = ("pg_catalog", "information_schema")


class RelationData(msgspec.Struct, frozen=True, dict=True):
    """A relation as PostgreSQL has it.

    A column has a name, the name of its type, whether it is NOT NULL, and its domain.
    """

    oid: int
    schema: str
    name: str
    columns: tuple[tuple[str, str, bool, str | None], ...]
    query: str | None = None
    key: tuple[str, ...] = ()
    indexes: tuple[tuple[tuple[str, ...], bool], ...] = ()
    recorded: int = 0
    """How many rows are PostgreSQL's own."""

    @cached_property
    def names(self) -> list[str]:
        return [column[0] for column in self.columns]


@cache
def relations() -> Mapping[tuple[str, str], RelationData]:
    """Return all relations, by schema and name."""
    text = _file("relations.json").read_bytes()
    listed = msgspec.json.decode(text, type=list[RelationData])
    return {(each.schema, each.name): each for each in listed}


@cache
def recorded_rows(name: str) -> tuple[tuple[Any, ...], ...]:
    """Return PostgreSQL's own rows of a table of pg_catalog."""
    relation = relations()["pg_catalog", name]
    if not relation.recorded:
        return ()
    rows: list[list[Any]] = _lines(gzip.decompress(_file(f"{name}.json.gz").read_bytes()))
    for at, (_, kind, *_) in enumerate(relation.columns):
        read = _READERS.get(kind)
        if read is not None:
            for row in rows:
                row[at] = read(row[at])
    return tuple(map(tuple, rows))


@cache
def recorded_by(name: str, column: str) -> Mapping[Any, tuple[tuple[Any, ...], ...]]:
    """Return the same rows by the value of a column."""
    at = relations()["pg_catalog", name].names.index(column)
    found: dict[Any, list[tuple[Any, ...]]] = {}
    for row in recorded_rows(name):
        found.setdefault(row[at], []).append(row)
    return {value: tuple(rows) for value, rows in found.items()}


@cache
def recorded_keywords() -> tuple[tuple[str, str], ...]:
    """Return PostgreSQL's keywords, each with its category and whether it can be a bare label."""
    lines = _lines(gzip.decompress(_file("keywords.json.gz").read_bytes()))
    return tuple((word, code) for word, code in lines)


_lines: Final = msgspec.json.Decoder(list).decode_lines


def _file(name: str) -> Any:
    return files(__package__).joinpath("data", name)


def _array(value: Any) -> Any:
    return None if value is None else tuple(value)


def _object(value: Any) -> ObjectName:
    return NO_OBJECT if value is None else ObjectName(*value)


_READERS: Final[Mapping[str, Any]] = {
    "regproc": _object,
    **dict.fromkeys(
        ("int2vector", "oidvector", "_int2", "_oid", "_text", "_char", "_name"), _array
    ),
    **dict.fromkeys(("_float4", "_bool", "_aclitem", "_float8"), _array),
}
