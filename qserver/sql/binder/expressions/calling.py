"""Applies resolved functions and operators to operands, with casts of the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from qserver.errors import FeatureNotSupported, QserverError, UndefinedSchema
from qserver.functions.resolve import (
    Resolved,
    resolve_function,
    resolve_operator,
    undefined_function,
)
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.expressions.coercion import implicit, settled, suggested_types, with_blanks
from qserver.sql.binder.expressions.operands import Operand, RowValue, located
from qserver.sql.expressions import Apply, Expression
from qserver.values.types import SqlType

T = TypeVar("T")


def operator(
    binding: Binding, symbol: str, left: Operand | None, right: Operand, position: int
) -> Expression:
    """`left symbol right`, or `symbol right`. The symbol may have a schema before it: `s.+`."""
    require_schema(binding, symbol, position)
    left, right = None if left is None else whole(binding, left), whole(binding, right)
    operands = (right,) if left is None else (left, right)

    def resolve(types: Sequence[SqlType]) -> Resolved:
        return resolve_operator(symbol, None if left is None else types[0], types[-1])

    return apply(binding, resolved_by(binding, resolve, operands, position), operands, position)


def function(binding: Binding, name: str, operands: Sequence[Operand], position: int) -> Expression:
    operands = [whole(binding, each) for each in operands]

    def resolve(types: Sequence[SqlType]) -> Resolved:
        return resolve_function(name, types)

    return apply(binding, resolved_by(binding, resolve, operands, position), operands, position)


def require_schema(binding: Binding, symbol: str, position: int) -> None:
    """Refuse an operator of a schema that does not exist."""
    schema, dot, _ = symbol.rpartition(".")
    if dot and not binding.catalog.has_schema(schema):
        raise UndefinedSchema(f'schema "{schema}" does not exist', position=position + 1)


def is_built_in(name: tuple[str, ...]) -> bool:
    """Tell whether a function is looked for. PostgreSQL's dumps call extensions' by public."""
    own = name[:-1] == ("information_schema",) and name[-1].startswith("_pg_")
    return own or name[:-1] in ((), ("pg_catalog",), ("public",))


def not_in_schema(
    binding: Binding, name: tuple[str, ...], operands: Sequence[Operand], position: int
) -> QserverError:
    """Return what is wrong with a function of a schema: there are none."""
    shown = ".".join(name)
    if len(name) > 2:
        return FeatureNotSupported(
            f"cross-database references are not implemented: {shown}", position=position + 1
        )
    if not binding.catalog.has_schema(name[0]):
        return UndefinedSchema(f'schema "{name[0]}" does not exist', position=position + 1)
    types = [whole(binding, each).type for each in operands]
    return located(undefined_function(shown, types), position)


def resolved_by(
    binding: Binding,
    resolve: Callable[[Sequence[SqlType]], T],
    operands: Sequence[Operand],
    position: int,
) -> T:
    """Resolve by the operands' types, or by their values' types if no operand has one."""
    suggested = suggested_types(binding, operands)
    if suggested is not None:
        with suppress(QserverError):  # then the operands are texts, as they would be without values
            return resolve(suggested)
    try:
        return resolve([each.type for each in operands])
    except QserverError as error:
        raise located(error, position) from None


def apply(
    binding: Binding, resolved: Resolved, operands: Sequence[Operand], position: int
) -> Expression:
    chosen = resolved.function
    if chosen.reads_catalog:
        binding.catalog.read_definitions()
    arguments = tuple(
        [
            implicit(binding, operand, parameter, position)
            for operand, parameter in zip(operands, resolved.parameters, strict=True)
        ]
    )
    if chosen.sees_blanks:
        arguments = tuple([with_blanks(each) for each in arguments])
    nullable = chosen.gives_null or any(each.nullable for each in arguments)
    return Apply(chosen, arguments, resolved.returns, nullable)


def whole(binding: Binding, operand: Operand) -> Operand:
    """Turn a row into a record, whose type has its columns."""
    return settled(binding, operand) if isinstance(operand, RowValue) else operand


def has_rows(*operands: Operand | None) -> bool:
    return any(isinstance(each, RowValue) for each in operands)
