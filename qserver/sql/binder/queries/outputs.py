"""The select list: its items, their names, and references to them from other clauses.

ORDER BY, GROUP BY and DISTINCT ON may refer to an item by its number, by its name, or by an equal
expression. As in PostgreSQL, ORDER BY prefers the name of an item to a column of FROM, GROUP BY the
other way round, and a name inside of a larger expression is always a column of FROM.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn, TypeGuard

from qserver.errors import (
    AmbiguousColumn,
    InvalidColumnReference,
    SqlSyntaxError,
    TooManyColumns,
)
from qserver.limits import TARGETS_MAX
from qserver.sql import ast
from qserver.sql.binder.clauses import Clause
from qserver.sql.binder.expressions.coercion import settled
from qserver.sql.binder.expressions.operands import Operand
from qserver.sql.binder.expressions.same import same
from qserver.sql.binder.names.column_names import column_name
from qserver.sql.binder.names.fields import fields_of
from qserver.sql.binder.names.names import find_in, find_relation, missing_relation, named
from qserver.sql.binder.names.relations import AnyRelation
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.names.star_texts import written_out
from qserver.sql.expressions import Expression


@dataclass(slots=True)
class Output:
    """An item of the list. Its operand gets a type on demand."""

    name: str
    operand: Operand
    position: int


def bind_targets(scope: Scope, targets: Sequence[ast.Target], clause: Clause) -> list[Output]:
    """Bind the items and expand stars."""
    level = scope.level
    outer, level.clause = level.clause, clause
    outputs: list[Output] = []
    for target in targets:
        node = target.expression
        if isinstance(node, ast.Star):
            outputs += _star(scope, node)
            continue
        if isinstance(node, ast.Field) and node.name == "*":
            outputs += [
                Output(name, operand, node.position) for name, operand in fields_of(scope, node)
            ]
            continue
        name = target.alias or column_name(node)
        operand = scope.bind(node)
        outputs.append(Output(name, operand, leftmost(node)))
    if len(outputs) > TARGETS_MAX:
        raise TooManyColumns(f"target lists can have at most {TARGETS_MAX} entries")
    level.clause = outer
    return outputs


def _star(scope: Scope, node: ast.Star) -> list[Output]:
    if node.table:
        relation = find_relation(scope, node.table, node.position)
        if relation is None:
            raise missing_relation(scope, node.table, node.position)
        relations = [relation]
    elif not scope.relations:
        raise SqlSyntaxError(
            "SELECT * with no tables specified is not valid", position=node.position + 1
        )
    else:
        relations = [relation for relation in scope.relations if relation.by_column]
    binding = scope.binding
    if binding.stars is not None and not binding.views_open:
        binding.stars[node.position] = written_out(scope, relations)
    outputs: list[Output] = []
    for relation in relations:
        outputs += _columns(scope, relation, node.position)
    return outputs


def _columns(scope: Scope, relation: AnyRelation, position: int) -> list[Output]:
    scope.binding.budget.spend(len(relation.names))
    return [
        Output(name, named(scope, relation.expression(at), position), position)
        for at, name in enumerate(relation.names)
    ]


# --- referring to items --------------------------------------------------------------------------


def find_output(
    scope: Scope, outputs: Sequence[Output], node: ast.Expression, clause: Clause
) -> int | Expression:
    """Return the number of the item that is referred to, or another expression."""
    word = clause.value
    if isinstance(node, ast.Name) and len(node.parts) == 1:
        name = node.parts[0]
        if clause is not Clause.GROUP_BY or find_in(scope, name, node.position) is None:
            at = _by_name(scope, outputs, name, word, node.position)
            if at is not None:
                return at
    elif isinstance(node, ast.Literal):
        return _by_number(scope, outputs, node, word)
    elif _is_negative_literal(node):
        _refuse_negative(scope, node, word)
    elif isinstance(node, ast.Constant):
        raise _not_a_number(word, node.position)
    expression = settled(scope.binding, scope.bind_in(clause, node))
    at = scope.level.alike_outputs.position(expression, [each.operand for each in outputs])
    return expression if at is None else at


def _by_name(
    scope: Scope, outputs: Sequence[Output], name: str, word: str, position: int
) -> int | None:
    found: int | None = None
    for at, output in enumerate(outputs):
        if output.name == name:
            if found is None:
                found = at
            elif not same(outputs[found].operand, output.operand, scope.literals):
                raise AmbiguousColumn(f'{word} "{name}" is ambiguous', position=position + 1)
    return found


def _by_number(scope: Scope, outputs: Sequence[Output], node: ast.Literal, word: str) -> int:
    if node.kind != "integer":
        raise _not_a_number(word, node.position)
    number = scope.literals.value(node.index)
    assert isinstance(number, int | Decimal)
    if not 1 <= number <= len(outputs):
        raise InvalidColumnReference(
            f"{word} position {number} is not in select list", position=node.position + 1
        )
    return int(number) - 1


def _is_negative_literal(node: ast.Expression) -> TypeGuard[ast.Operator]:
    return (
        isinstance(node, ast.Operator)
        and node.symbol == "-"
        and node.left is None
        and isinstance(node.right, ast.Literal)
    )


def _refuse_negative(scope: Scope, node: ast.Operator, word: str) -> NoReturn:
    """Refuse -1: a valid number, but of no item."""
    literal = node.right
    assert isinstance(literal, ast.Literal)
    if literal.kind != "integer":
        raise _not_a_number(word, node.position)
    raise InvalidColumnReference(
        f"{word} position -{scope.literals.value(literal.index)} is not in select list",
        position=node.position + 1,
    )


def _not_a_number(word: str, position: int) -> SqlSyntaxError:
    return SqlSyntaxError(f"non-integer constant in {word}", position=position + 1)


def typed(scope: Scope, output: Output) -> Expression:
    """Return the item as an expression; one of unknown type becomes text permanently."""
    expression = settled(scope.binding, output.operand)
    output.operand = expression
    return expression
