"""Binds plain expressions: literals, NULL, parameters, casts, CASE, IS, arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from qserver.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    IndeterminateDatatype,
    ProgramLimitExceeded,
    SqlSyntaxError,
    UndefinedObject,
)
from qserver.functions.objects import names_objects
from qserver.limits import ARRAY_DIMENSIONS_MAX
from qserver.sql import ast
from qserver.sql.binder.expressions.calling import function, operator
from qserver.sql.binder.expressions.coercion import (
    alike,
    assigned,
    condition,
    explicit,
    read_object,
    settled,
    several,
)
from qserver.sql.binder.expressions.copies import again
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown
from qserver.sql.binder.expressions.row_functions import refuse_rows_within
from qserver.sql.binder.expressions.row_types import as_row, row_type
from qserver.sql.binder.expressions.rows import compare, disjunction, is_null
from qserver.sql.binder.names.names import find_relation, missing_relation, whole_row
from qserver.sql.binder.names.relations import Relation
from qserver.sql.binder.names.scope import Scope, leftmost
from qserver.sql.binder.names.type_names import bind_type
from qserver.sql.expressions import (
    Array,
    Case,
    Column,
    Constant,
    Expression,
    IsNull,
    IsTruth,
    RunRefused,
    Slot,
)
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    INTERNAL_CHAR,
    NUMERIC,
    TEXT,
    TEXT_KINDS,
    Kind,
    SqlType,
    array_of,
    is_vector,
)

LITERAL_TYPES = {
    "integer": INTEGER,
    "bigint": BIGINT,
    "numeric": NUMERIC,
    "boolean": BOOLEAN,
}
COLLATIONS = frozenset({"C", "POSIX", "default", "ucs_basic", "c", "posix"})


def bind_literal(scope: Scope, node: ast.Literal) -> Operand:
    """Return a slot, or a constant in the text of a definition."""
    literals = scope.literals
    if node.kind == "text":
        text = str(literals.value(node.index)) if literals.fixed else None
        return Unknown(node.index, node.position, text, node.nullable)
    if node.kind == "null":
        return Unknown(None, node.position)
    sql_type = LITERAL_TYPES.get(node.kind)
    if sql_type is None:
        raise FeatureNotSupported("bit strings are not supported", position=node.position + 1)
    if literals.fixed:
        return Constant(literals.value(node.index), sql_type)
    return Slot(node.index, sql_type, nullable=node.nullable)


def bind_constant(scope: Scope, node: ast.Constant) -> Operand:
    return Unknown(None, node.position) if node.value is None else Constant(node.value, BOOLEAN)


def bind_parameter(scope: Scope, node: ast.Parameter) -> Operand:
    operand = scope.binding.parameter(node.name, node.position)
    if isinstance(operand, Slot) and names_objects(operand.type):
        return read_object(scope.binding, operand)
    return operand


def refuse_run(scope: Scope, node: ast.Run) -> Operand:
    raise RunRefused


def bind_item(scope: Scope, node: ast.Expression) -> Operand:
    """Bind an item of a list. Of a run, the first stands for all, if they are alike."""
    if not isinstance(node, ast.Run):
        return scope.bind(node)
    name = node.first.name if isinstance(node.first, ast.Parameter) else None
    if isinstance(name, int) and not scope.binding.parameters_alike(range(name, name + node.count)):
        raise RunRefused
    first = scope.bind(node.first)
    if isinstance(first, Unknown) and first.text is None:
        return replace(first, count=node.count)
    if isinstance(first, Slot):
        return several(first, node.count)
    raise RunRefused


def bind_word(scope: Scope, node: ast.Word) -> Operand:
    return Constant(node.text, TEXT)


def bind_row(scope: Scope, node: ast.Row) -> Operand:
    items: list[Operand] = []
    for item in node.items:
        bound = scope.bind(item)
        if isinstance(item, ast.Star) and isinstance(bound, RowValue):
            items.extend(bound.items)
        else:
            items.append(bound)
    return RowValue(tuple(items), node.position)


def bind_star(scope: Scope, node: ast.Star) -> Operand:
    """Bind `t.*` inside an expression, t's row; a lone `*` is refused."""
    if not node.table:
        raise SqlSyntaxError(
            'row expansion via "*" is not supported here', position=node.position + 1
        )
    relation = find_relation(scope, node.table, node.position)
    if relation is None:
        raise missing_relation(scope, node.table, node.position)
    return whole_row(scope, relation, node.position)


def bind_named_argument(scope: Scope, node: ast.NamedArgument) -> Operand:
    raise FeatureNotSupported("arguments by name are not supported", position=node.position + 1)


def bind_default(scope: Scope, node: ast.Default) -> Operand:
    raise SqlSyntaxError("DEFAULT is not allowed in this context", position=node.position + 1)


def bind_key_column(scope: Scope, node: ast.KeyColumn) -> Operand:
    """Bind a column of the key of the only relation."""
    (relation,) = scope.relations
    assert isinstance(relation, Relation)
    assert relation.table is not None
    at = relation.table.primary_key[node.at]
    column = relation.table.columns[at]
    return Column(relation.source, at, column.type, False, column.name)


def bind_cast(scope: Scope, node: ast.Cast) -> Operand:
    try:
        target = bind_type(node.type, scope.literals, scope.binding.catalog.find_type)
    except UndefinedObject:
        row = row_type(scope, node.type)
        if row is None:
            raise
        if isinstance(node.operand, ast.ArrayItems) and row.element is not None:
            return _array_of_rows(scope, node.operand, row)
        return as_row(scope, scope.bind(node.operand), row, leftmost(node))
    operand = node.operand
    if isinstance(operand, ast.ArrayItems) and target.kind is Kind.ARRAY:
        return _array_of_type(scope, operand, target)
    is_text = isinstance(operand, ast.Literal) and operand.kind == "text"
    place = operand.position if is_text else node.position
    return explicit(scope.binding, scope.bind(operand), target, place)


def bind_collate(scope: Scope, node: ast.Collate) -> Operand:
    """Accept only collations by code point, the only order of text."""
    operand = scope.bind(node.operand)
    if node.collation.removeprefix("pg_catalog.") not in COLLATIONS:
        raise UndefinedObject(
            f'collation "{node.collation}" for encoding "UTF8" does not exist',
            position=node.position + 1,
        )
    expression = settled(scope.binding, operand)
    if expression.type.kind not in (*TEXT_KINDS, Kind.NAME):
        raise DatatypeMismatch(
            f"collations are not supported by type {expression.type.bare}",
            position=node.position + 1,
        )
    return expression


def bind_is(scope: Scope, node: ast.Is) -> Expression:
    binding, operand = scope.binding, scope.bind(node.operand)
    if node.what == "null":
        return is_null(binding, operand, node.negated)
    place = f"IS {'NOT ' if node.negated else ''}{node.what.upper()}"
    tested = condition(binding, operand, place, leftmost(node.operand))
    if node.what == "unknown":
        return IsNull(tested, node.negated)
    return IsTruth(tested, node.what == "true", node.negated)


def bind_case(scope: Scope, node: ast.Case) -> Expression:
    """Bind CASE; a simple CASE compares its operand in each condition."""
    binding, before = scope.binding, len(scope.level.row_functions)
    operand: Operand | None = None
    if node.operand is not None:
        operand = scope.bind(node.operand)
        if isinstance(operand, Unknown):
            operand = settled(binding, operand)
    conditions: list[Expression] = []
    results: list[Operand] = []
    for when, then in node.whens:
        bound = scope.bind(when)
        if operand is not None:
            bound = compare(binding, "=", operand, bound, leftmost(when))
            operand = again(binding, operand)
        conditions.append(condition(binding, bound, "CASE/WHEN", leftmost(when)))
        results.append(scope.bind(then))
    otherwise: Operand = Unknown(None, node.position)
    if node.otherwise is not None:
        otherwise = scope.bind(node.otherwise)
    refuse_rows_within(scope, before, "CASE")
    places = [leftmost(node.otherwise or node), *[leftmost(then) for _, then in node.whens]]
    (last, *firsts), target = alike(binding, [otherwise, *results], "CASE", places)
    return Case(tuple(zip(conditions, firsts, strict=True)), last, target)


# --- arrays --------------------------------------------------------------------------------------


def bind_array_items(scope: Scope, node: ast.ArrayItems) -> Expression:
    if not node.items:
        raise IndeterminateDatatype(
            "cannot determine type of empty array",
            hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
            position=node.position + 1,
        )
    operands = [bind_item(scope, item) for item in node.items]
    places = [leftmost(item) for item in node.items]
    items, element = alike(scope.binding, operands, "ARRAY", places)
    return Array(items, array_of(element))


def _array_of_type(scope: Scope, node: ast.ArrayItems, target: SqlType) -> Expression:
    """Bind ARRAY[…]::t[]: each item is cast, so empty arrays and unknown items have types."""
    assert target.element is not None
    items: list[Expression] = []
    for item in node.items:
        if isinstance(item, ast.ArrayItems):
            items.append(_array_of_type(scope, item, target))
        else:
            operand = bind_item(scope, item)
            wanted = target if operand.type.kind is Kind.ARRAY else target.element
            items.append(explicit(scope.binding, operand, wanted, leftmost(item)))
    return Array(tuple(items), target)


def _array_of_rows(scope: Scope, node: ast.ArrayItems, target: SqlType) -> Expression:
    """Bind ARRAY[…]::t[], where t is the row type of a relation."""
    assert target.element is not None
    items = [
        as_row(scope, bind_item(scope, item), target.element, leftmost(item)) for item in node.items
    ]
    return Array(tuple([settled(scope.binding, item) for item in items]), target)


def bind_subscript(scope: Scope, node: ast.Subscript) -> Expression:
    """Bind `a[i][j]` and `a[i:j]` as functions of the array and all of its subscripts.

    If one subscript is a slice, all are: `a[2][1:3]` is `a[1:2][1:3]`, as in PostgreSQL.
    """
    binding = scope.binding
    first, chain = subscripts(node)
    operand = settled(binding, scope.bind(first))
    if operand.type.kind is Kind.NAME and len(chain) == 1:
        return _letter(scope, operand, node)
    if operand.type.kind not in (Kind.ARRAY, Kind.JSONB):
        raise DatatypeMismatch(
            f"cannot subscript type {operand.type.bare} because it does not support subscripting",
            position=leftmost(first) + 1,
        )
    if operand.type.kind is Kind.JSONB:
        return _inside_json(scope, operand, chain)
    if not any(each.is_slice for each in chain):
        numbers = [array_bound(scope, each.low) for each in chain]
        if is_vector(operand.type):  # it counts from 0
            one = Constant(1, INTEGER)
            numbers = [operator(binding, "+", each, one, node.position) for each in numbers]
        return function(binding, "array_subscript", [operand, *numbers], node.position)
    bounds = array_bounds(scope, chain)
    part = function(binding, "array_slice", [operand, *bounds], node.position)
    given = [each.low for each in chain] + [each.high for each in chain]
    missing: list[Expression] = [
        IsNull(bound)
        for bound in [array_bound(scope, each) for each in given if each is not None]
        if bound.nullable
    ]
    if not missing:
        return part
    unknown = disjunction(missing)
    return Case(((unknown, Constant(None, part.type)),), part, part.type)


def _letter(scope: Scope, name: Expression, node: ast.Subscript) -> Expression:
    """Bind `name[i]`: PostgreSQL's names are arrays of 64 "char", and count from 0."""
    if node.is_slice:
        raise FeatureNotSupported("slices of fixed-length arrays not implemented")
    binding, at = scope.binding, node.position
    index = array_bound(scope, node.low)
    text = explicit(binding, name, TEXT, at)
    place = operator(binding, "+", index, Constant(1, INTEGER), at)
    letter = function(binding, "substr", [text, place, Constant(1, INTEGER)], at)
    outside = disjunction(
        [
            operator(binding, "<", index, Constant(0, INTEGER), at),
            operator(binding, ">=", index, Constant(_NAME_BYTES, INTEGER), at),
        ]
    )
    found = explicit(binding, letter, INTERNAL_CHAR, at)
    return Case(((outside, Constant(None, INTERNAL_CHAR)),), found, INTERNAL_CHAR)


_NAME_BYTES: Final = 64


def subscripts(node: ast.Subscript) -> tuple[ast.Expression, list[ast.Subscript]]:
    """Return the subscripted expression, and all subscripts in order."""
    chain = [node]
    first: ast.Expression = node.operand
    while isinstance(first, ast.Subscript) and not chain[-1].grouped:
        chain.append(first)
        first = first.operand
    chain.reverse()
    if len(chain) > ARRAY_DIMENSIONS_MAX:
        raise ProgramLimitExceeded(
            f"number of array dimensions ({len(chain)}) exceeds the maximum allowed "
            f"({ARRAY_DIMENSIONS_MAX})",
            position=leftmost(first) + 1,
        )
    return first, chain


def array_bounds(scope: Scope, chain: Sequence[ast.Subscript]) -> list[Expression]:
    bounds: list[Expression] = []
    for each in chain:
        if each.is_slice:
            bounds += [array_bound(scope, each.low), array_bound(scope, each.high)]
        else:
            bounds += [Constant(1, INTEGER), array_bound(scope, each.low)]
    return bounds


def array_bound(scope: Scope, node: ast.Expression | None) -> Expression:
    """Bind a subscript; an omitted one is NULL."""
    if node is None:
        return Constant(None, INTEGER)
    operand = scope.bind(node)
    try:
        return assigned(scope.binding, operand, INTEGER, "", leftmost(node))
    except DatatypeMismatch:
        raise DatatypeMismatch(
            "array subscript must have type integer", position=leftmost(node) + 1
        ) from None


def _inside_json(scope: Scope, operand: Expression, chain: list[ast.Subscript]) -> Expression:
    for each in chain:
        if each.is_slice or each.low is None:
            raise DatatypeMismatch(
                "jsonb subscript does not support slices", position=each.position + 1
            )
        key = scope.bind(each.low)
        operand = function(scope.binding, "array_subscript", [operand, key], each.position)
    return operand
