"""Column definitions: the type, and the constraints of the column alone.

    a SERIAL                        integer NOT NULL DEFAULT nextval('t_a_seq'), and the sequence
    a INT GENERATED … AS IDENTITY   the same, but users cannot change the default
    a INT GENERATED ALWAYS AS (…)   computed from the other columns whenever the row is written

PRIMARY KEY, UNIQUE, CHECK and REFERENCES of a column are passed on to the table.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Final

from qserver.errors import (
    InvalidObjectDefinition,
    InvalidParameterValue,
    InvalidTableDefinition,
    SqlSyntaxError,
)
from qserver.sql import ast
from qserver.sql.ddl.immutable import is_immutable
from qserver.sql.ddl.names import choose_relation_name, new_place, require_free
from qserver.sql.ddl.port import DdlPort
from qserver.sql.ddl.sequences import SequenceOptions, make_sequence
from qserver.sql.ddl.words import kept_collation
from qserver.sql.plan import OutputColumn
from qserver.values.identifiers import catalog_key, identifiers, qualified
from qserver.values.relations import Sequence
from qserver.values.schema import Column
from qserver.values.types import BIGINT, INTEGER, INTEGER_BITS, SMALLINT, TEXT, Kind, SqlType

SERIAL_TYPES: Final = {
    "serial": INTEGER,
    "serial4": INTEGER,
    "bigserial": BIGINT,
    "serial8": BIGINT,
    "smallserial": SMALLINT,
    "serial2": SMALLINT,
}
SYSTEM_COLUMNS: Final = frozenset({"ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"})


def type_of_output(name: str, column: OutputColumn) -> SqlType:
    """Return the type of a column that comes from a query; one without a type is text."""
    if column.type.kind is Kind.UNKNOWN:
        return TEXT
    if Kind.RECORD in (column.type.kind, column.type.element and column.type.element.kind):
        raise InvalidTableDefinition(f'column "{name}" has pseudo-type {column.type}', column=name)
    return column.type


@dataclass(frozen=True, slots=True)
class DefinedColumn:
    """A column, its constraints for the table, and the sequence that it needs."""

    column: Column
    constraints: tuple[ast.Constraint, ...] = ()
    sequence: Sequence | None = None


def define_column(
    work: DdlPort, schema: str, table: str, node: ast.ColumnDefinition
) -> DefinedColumn:
    """Define a column, without the constraints for the table."""
    if node.name in SYSTEM_COLUMNS:
        raise InvalidTableDefinition(
            f'column name "{node.name}" conflicts with a system column name', table=table
        )
    serial = None if node.type.schemas else SERIAL_TYPES.get(node.type.name)
    column = Column(node.name, serial or work.column_type(node.type))
    column = replace(column, collation=kept_collation(node.collation, column.type))
    sequence = None
    if serial is not None:
        sequence = sequence_for(work, schema, table, column.name, serial)
        column = replace(column, nullable=False, default=next_of(sequence), sequence=sequence.key)
    nullable: bool | None = None
    handed_on = []
    for constraint in node.constraints:
        match constraint.kind:
            case "not null" | "null":
                wanted = constraint.kind == "null"
                if nullable is not None and nullable != wanted:
                    raise _conflicting(node.name, table, constraint)
                nullable = wanted
                column = replace(column, nullable=wanted)
            case "default":
                if column.default is not None:
                    raise SqlSyntaxError(
                        f"multiple default values specified for {_place(node.name, table)}"
                    )
                column = with_default(work, column, constraint.expression, constraint.text)
            case "generated":
                if column.generated is not None:
                    raise SqlSyntaxError(
                        f"multiple generation clauses specified for {_place(node.name, table)}"
                    )
                column = replace(column, generated=work.stored(constraint.text))
            case "identity always" | "identity by default":
                if column.identity is not None:
                    raise SqlSyntaxError(
                        f"multiple identity specifications for {_place(node.name, table)}"
                    )
                sequence = sequence_for(
                    work, schema, table, column.name, column.type, constraint.options
                )
                identity = constraint.kind.removeprefix("identity ")
                column = replace(column, nullable=False, identity=identity, sequence=sequence.key)
            case _:
                handed_on.append(constraint)
    _check_values(column, table)
    if column.identity is not None and nullable:
        raise _conflicting(node.name, table, node)
    return DefinedColumn(column, tuple(handed_on), sequence)


def with_default(
    work: DdlPort, column: Column, expression: ast.Expression | None, text: str
) -> Column:
    """Return the column with a default; a default of nextval depends on its sequence."""
    sequence = None
    match expression:
        case ast.Call(name=(*_, "nextval"), arguments=(argument,)):
            if isinstance(argument, ast.Cast) and argument.type.name == "regclass":
                argument = argument.operand
            if isinstance(argument, ast.Literal):
                found = work.find(work.key(tuple(identifiers(str(work.value(argument))))))
                sequence = found.key if isinstance(found, Sequence) else None
    if _is_null(expression):
        return replace(column, default=None, sequence=None)  # as PostgreSQL: it would say nothing
    return replace(column, default=work.stored(text), sequence=sequence)


def _is_null(expression: ast.Expression | None) -> bool:
    if isinstance(expression, ast.Cast) and not expression.type.arguments:
        expression = expression.operand
    return isinstance(expression, ast.Constant) and expression.value is None


def _check_values(column: Column, table: str) -> None:
    """Refuse more than one of default, identity and generation expression."""
    places = {
        "default": column.default,
        "identity": column.identity,
        "generation expression": column.generated,
    }
    given = [name for name, value in places.items() if value is not None]
    if len(given) > 1:
        raise SqlSyntaxError(
            f"both {given[0]} and {given[1]} specified for {_place(column.name, table)}"
        )


def _place(column: str, table: str) -> str:
    return f'column "{column}" of table "{table}"'


def _conflicting(column: str, table: str, node: ast.Node) -> SqlSyntaxError:
    return SqlSyntaxError(
        f"conflicting NULL/NOT NULL declarations for {_place(column, table)}",
        position=node.position + 1,
    )


def require_counting_type(sql_type: SqlType) -> None:
    """Require a type that an identity column may have."""
    if sql_type.kind not in INTEGER_BITS:
        raise InvalidParameterValue("identity column type must be smallint, integer, or bigint")


def sequence_for(
    work: DdlPort,
    schema: str,
    table: str,
    column: str,
    sql_type: SqlType,
    options: SequenceOptions = (),
) -> Sequence:
    require_counting_type(sql_type)
    owner = catalog_key(schema, table), column
    named, options = _name_among(options)
    if named is None:
        name = choose_relation_name(work, schema, (table, column), "seq")
    else:
        schema, name = new_place(work, named)
        require_free(work, catalog_key(schema, name))
    made = make_sequence(work, schema, name, sql_type, options)
    sequence = replace(made, owner=owner)
    work.transaction.define(sequence.key, sequence)
    return sequence


def _name_among(options: SequenceOptions) -> tuple[tuple[str, ...] | None, SequenceOptions]:
    """The name that SEQUENCE NAME gives, and the other options."""
    names = [value.parts for word, value in options if word == "sequence name"]
    if len(names) > 1:
        raise SqlSyntaxError("conflicting or redundant options")
    others = [each for each in options if each[0] != "sequence name"]
    return (names[0] if names else None), others


def next_of(sequence: Sequence) -> str:
    """Return the text of a default that takes the next value of a sequence."""
    name = qualified(sequence.schema, sequence.name).replace("'", "''")
    return f"nextval('{name}'::regclass)"


def names_in(node: object) -> list[str]:
    """Return the column names in an expression, in order, each once."""
    found: dict[str, None] = {}
    _gather(node, found)
    return list(found)


def _gather(node: object, found: dict[str, None]) -> None:
    if isinstance(node, ast.Name):
        found[node.parts[-1]] = None
    elif isinstance(node, tuple):
        for part in node:
            _gather(part, found)
    elif is_dataclass(node):
        for field in fields(node):
            _gather(getattr(node, field.name), found)


def check_generated(columns: tuple[Column, ...], name: str, expression: object) -> None:
    """Refuse a generated column that depends on a generated column, or on the clock or chance."""
    generated = {column.name for column in columns if column.generated is not None}
    for other in names_in(expression):
        if other in generated:
            raise InvalidObjectDefinition(
                f'cannot use generated column "{other}" in column generation expression',
                detail="This would cause the generated column to depend on its own value."
                if other == name
                else "A generated column cannot reference another generated column.",
            )
    if not is_immutable(expression):
        raise InvalidObjectDefinition("generation expression is not immutable")
