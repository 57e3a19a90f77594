"""Binds the expressions of a table's definition: DEFAULT, CHECK, generated columns.

They are stored as text and bound again for each statement, over the row that the statement writes.
Their literals are part of the definition, so they become constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from qserver.errors import FeatureNotSupported, QserverError
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.calling import function
from qserver.sql.binder.expressions.coercion import assigned, condition, implicit, settled
from qserver.sql.binder.expressions.operands import Operand, Unknown
from qserver.sql.binder.expressions.parsed import parsed_expression
from qserver.sql.binder.names.relations import relation_of_table
from qserver.sql.binder.names.scope import Scope, leftmost, outermost
from qserver.sql.expressions import Column as BoundColumn
from qserver.sql.expressions import Constant, Expression, Slot
from qserver.sql.plan import CheckedExpression
from qserver.sql.walk import substituted
from qserver.sql.zone_dependence import depends_on_zone
from qserver.values.identifiers import stored_name
from qserver.values.schema import Column, Table
from qserver.values.temporary import TEMPORARY_ROW_IDS
from qserver.values.types import BIGINT, SqlType

ROW_ID_SLOT = "row_id"
"""The slot for the hidden key of a new row: the executor fills it for each row."""


TEMPORARY_ROW_ID_SLOT = "temporary_row_id"
"""Likewise, for a row of a temporary table."""


def row_id_slot(column: Column) -> Slot:
    is_temporary = column.sequence == TEMPORARY_ROW_IDS
    return Slot(TEMPORARY_ROW_ID_SLOT if is_temporary else ROW_ID_SLOT, BIGINT)


def default_of(binding: Binding, column: Column) -> Expression:
    """Return the value of a column that the statement does not set."""
    if column.hidden and column.generated is None:
        return row_id_slot(column)
    if column.sequence is not None:  # whatever the session means by the name in the default
        name = Unknown(0, -1, stored_name(column.sequence))
        number = function(binding, "nextval", [name], -1)
        return assigned(binding, number, column.type, column.name, -1)
    if column.default is None:
        return Constant(None, column.type)
    return _bind_text(binding, column.default, Clause.DEFAULT, _assigned_to(binding, column))


def checks_of(
    binding: Binding, table: Table, source: int, changed: frozenset[int] | None = None
) -> tuple[CheckedExpression, ...]:
    """Return the table's CHECKs over its new row.

    If only some columns changed, a CHECK that names none of them, and that the old row passed, is
    left out.
    """
    found: list[CheckedExpression] = []
    for check in table.checks:
        if changed is not None and check.columns and check.valid:
            positions = {table.positions[name] for name in check.columns}
            if changed.isdisjoint(positions):
                continue
        expression = _bind_text(
            binding,
            check.text,
            Clause.CHECK,
            lambda operand, at: condition(binding, operand, "CHECK", at),
            table,
            source,
        )
        found.append(CheckedExpression(check.name, expression))
    return tuple(found)


def generated_values(
    binding: Binding, table: Table, values: Sequence[Expression]
) -> tuple[Expression, ...]:
    """The values with those of generated columns computed from the others.

    What an index is over is a generated column behind them, and may name one of them.
    """
    result = list(values)
    source = binding.new_source()
    replacements: dict[tuple[int, int], Expression] = {
        (source, at): value for at, value in enumerate(values)
    }
    for at, column in enumerate(table.columns):
        if column.generated is not None:
            finish = _assigned_to(binding, column)
            clause = Clause.INDEX if column.hidden else Clause.GENERATED
            value = _bind_text(binding, column.generated, clause, finish, table, source)
            if not binding.catalog.in_utc and depends_on_zone(value):
                raise FeatureNotSupported(
                    f'column "{column.name}" is generated in UTC, and the time zone is another',
                    hint="SET TimeZone TO 'UTC' to change rows of this table.",
                    table=table.name,
                )
            result[at] = replacements[source, at] = substituted(value, replacements)
    return tuple(result)


def has_generated(table: Table) -> bool:
    return any(column.generated is not None for column in table.columns)


def old_values(table: Table, source: int) -> list[Expression]:
    return [
        BoundColumn(source, at, column.type, column.nullable, column.name)
        for at, column in enumerate(table.columns)
    ]


def defined_expression(binding: Binding, text: str, table: Table, source: int) -> Expression:
    """Bind the expression or predicate of an index, over the row `source`."""
    return _bind_text(
        binding, text, Clause.INDEX, lambda operand, at: settled(binding, operand), table, source
    )


def _assigned_to(binding: Binding, column: Column) -> Callable[[Operand, int], Expression]:
    return lambda operand, at: assigned(binding, operand, column.type, column.name, -1)


def _bind_text(
    binding: Binding,
    text: str,
    clause: Clause,
    finish: Callable[[Operand, int], Expression],
    table: Table | None = None,
    source: int = 0,
) -> Expression:
    """Bind a text; `finish` converts the result, given its position, to the type of its place."""
    node, literals = parsed_expression(text)
    scope: Scope = outermost(binding, literals)
    if table is not None:
        scope = scope.with_relations((relation_of_table(table.name, source, table),))
    try:
        with binding.in_definition():
            return finish(scope.bind_in(clause, node), leftmost(node))
    except QserverError as error:
        if error.position:
            error.definition = text, error.position
        error.position = None  # a position in the definition's text, not in the statement's
        raise


def shown_expression(
    binding: Binding, text: str, table: Table, wanted: SqlType | None
) -> Expression:
    """Bind an expression as it was written; a literal without a type has that of its place."""

    def finish(operand: Operand, at: int) -> Expression:
        if isinstance(operand, Unknown) and wanted is not None:
            return implicit(binding, operand, wanted.bare)
        return settled(binding, operand)

    return _bind_text(binding, text, Clause.CHECK, finish, table, binding.new_source())
