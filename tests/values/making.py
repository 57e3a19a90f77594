"""Values, types and indexes from a few words, for tests that need some."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qserver.values.admission import admitter
from qserver.values.casts import cast_function
from qserver.values.enumeration import enumeration_of
from qserver.values.schema import Index, Table
from qserver.values.types import Kind, SqlType


def admit(sql_type: SqlType, value: Any) -> Any:
    """What a column of the type stores for a value, or an error."""
    return admitter(sql_type)(value)


def cast(value: Any, source: SqlType, target: SqlType) -> Any:
    """A value of one type as a value of another, or an error. NULL stays NULL."""
    function = cast_function(source, target)
    return None if value is None else function(value)


def enum_type(name: str, *labels: str) -> SqlType:
    """A new ENUM type from its labels in order."""
    return SqlType(Kind.ENUM, enum=enumeration_of(name, labels))


def define_index(
    id: int,
    name: str,
    table: Table,
    columns: Sequence[str],
    unique: bool = False,
    descending: Sequence[bool] = (),
) -> Index:
    """An index from names of the table's columns."""
    positions = tuple([table.positions[column] for column in columns])
    return Index(id, name, positions, unique, tuple(descending))
