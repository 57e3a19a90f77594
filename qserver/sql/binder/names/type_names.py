"""Resolves type names: `NUMERIC(10,2)`, `timestamptz`, `int[]`, or a user-defined ENUM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qserver.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    QserverError,
    SqlSyntaxError,
    UndefinedObject,
)
from qserver.sql import ast
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.binder.expressions.operands import located
from qserver.values.type_names import TYPES_BY_NAME
from qserver.values.types import (
    DOUBLE,
    INTERVAL_FIELDS,
    REAL,
    SqlType,
    array_of,
    char,
    interval,
    numeric,
    varchar,
    with_second_digits,
)

FindType = Callable[[tuple[str, ...]], SqlType | None]

INTERNAL_NAMES: Final = {
    "int": "int4",
    "integer": "int4",
    "smallint": "int2",
    "bigint": "int8",
    "real": "float4",
    "float": "float8",
    "double precision": "float8",
    "decimal": "numeric",
    "dec": "numeric",
    "boolean": "bool",
    "char": "bpchar",
    "character": "bpchar",
    "nchar": "bpchar",
    "national char": "bpchar",
    "national character": "bpchar",
    "character varying": "varchar",
    "char varying": "varchar",
    "national char varying": "varchar",
    "national character varying": "varchar",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
    "time with time zone": "timetz",
}
"""PostgreSQL's internal names of types with other names in the grammar; columns are named so."""

_WITH_LENGTH: Final = {"varchar": varchar, "bpchar": char}
_WITH_DIGITS: Final = frozenset({"time", "timetz", "timestamp", "timestamptz", "interval"})


def internal_name(name: str) -> str:
    """Return PostgreSQL's internal name, such as int4 for integer; by default the name itself."""
    if name.startswith("interval "):
        return "interval"
    return INTERNAL_NAMES.get(name, name)


def is_built_in(name: str) -> bool:
    """Tell whether a name without a schema is that of a type that nobody can define."""
    internal = INTERNAL_NAMES.get(name, name)
    return name.startswith("interval ") or internal in TYPES_BY_NAME


def bind_type(node: ast.TypeName, literals: Literals, find_type: FindType) -> SqlType:
    """Resolve a type. Its arguments become part of the fingerprint: a plan is for one type."""
    arguments = tuple(
        [
            -literals.value(argument.index) if argument.negative else literals.value(argument.index)
            for argument in node.arguments
        ]
    )
    try:
        sql_type = _scalar(node, arguments, find_type)
    except QserverError as error:
        raise located(error, node.position) from None
    return array_of(sql_type) if node.array_dimensions else sql_type


def _scalar(node: ast.TypeName, arguments: tuple[object, ...], find_type: FindType) -> SqlType:
    """PostgreSQL's schema has its own names only; another schema has none of its types."""
    name, shown = node.name, ".".join(node.parts)
    if len(node.schemas) > 1:
        raise FeatureNotSupported(f"cross-database references are not implemented: {shown}")
    if node.schemas and node.schemas != ("pg_catalog",):
        found = find_type(node.parts)
        if found is None:
            raise UndefinedObject(f'type "{shown}" does not exist')
        return found
    word = "" if node.schemas or node.quoted else name
    internal = INTERNAL_NAMES.get(word, name)
    if not all(type(each) is int for each in arguments):
        raise SqlSyntaxError(f'invalid type modifier for type "{name}"')
    numbers = [int(str(each)) for each in arguments]
    if word == "float" and numbers:
        return _float(numbers[0])
    if word in ("char", "character") and not numbers:
        return char(1)
    if word.startswith("interval "):
        fields = word.removeprefix("interval ")
        if fields in INTERVAL_FIELDS:
            return interval(fields, *numbers)
    found = TYPES_BY_NAME.get(internal) or find_type(node.parts)
    if found is None:
        raise UndefinedObject(f'type "{shown}" does not exist')
    return _sized(found, internal, numbers) if numbers else found


def _sized(sql_type: SqlType, name: str, numbers: list[int]) -> SqlType:
    if name == "numeric":
        if len(numbers) > 2:
            raise InvalidParameterValue("invalid NUMERIC type modifier")
        return numeric(*numbers)
    if len(numbers) > 1:
        raise InvalidParameterValue("invalid type modifier")
    if name in _WITH_LENGTH:
        return _WITH_LENGTH[name](numbers[0])
    if name in _WITH_DIGITS:
        return with_second_digits(sql_type, numbers[0])
    raise SqlSyntaxError(f'type modifier is not allowed for type "{name}"')


def _float(bits: int) -> SqlType:
    if bits < 1:
        raise InvalidParameterValue("precision for type float must be at least 1 bit")
    if bits > 53:
        raise InvalidParameterValue("precision for type float must be less than 54 bits")
    return REAL if bits <= 24 else DOUBLE
