"""What lasts may not depend on what ends with a session."""

from __future__ import annotations

from collections.abc import Iterator

from qserver.errors import InvalidTableDefinition
from qserver.sql.ddl.names import described, shown_name
from qserver.values.relations import Definition, Sequence, View
from qserver.values.schema import Table
from qserver.values.temporary import is_temporary
from qserver.values.types import SqlType


def require_lasting(definition: Definition | None) -> None:
    """Refuse a permanent definition that depends on a temporary one."""
    for key in _uses(definition):
        if is_temporary(key):
            assert definition is not None
            raise InvalidTableDefinition(
                f'{described(definition)} would depend on temporary "{shown_name(key)}"',
                hint="Make both temporary, or neither.",
            )


def _uses(definition: Definition | None) -> Iterator[str]:
    match definition:
        case Table():
            yield from (column.sequence or "" for column in definition.columns)
            yield from (_enum(column.type) for column in definition.columns)
        case View():
            yield from definition.uses
            yield from (_enum(sql_type) for _, sql_type in definition.columns)
            yield from (sequence or "" for _, _, sequence in definition.defaults)
        case Sequence():
            yield "" if definition.owner is None else definition.owner[0]


def _enum(sql_type: SqlType) -> str:
    enum = (sql_type.element or sql_type).enum
    return "" if enum is None else enum.key
