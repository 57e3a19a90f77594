"""Giving an operand the type that its place wants.

A cast of a slot becomes part of the slot, so that it is made once per execution and not once per
row; a cast of a constant is made now, if it succeeds; everything else gets a Cast around it.

    explicit     CAST(x AS t), x::t     any cast there is; too long is cut
    implicit     an operand             the resolver has seen that it may be
    assigned     INSERT, UPDATE         more than implicit; too long is an error
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any

from qserver.errors import (
    CannotCoerce,
    DatatypeMismatch,
    FeatureNotSupported,
    QserverError,
)
from qserver.sql.binder.binding import Binding
from qserver.sql.binder.literals import Literals
from qserver.sql.binder.operands import Operand, RowValue, Unknown, located
from qserver.sql.expressions import And, Apply, Case, Cast, Constant, Expression, IsNull, Slot
from qserver.sql.functions.costs import BYTES_SMALL
from qserver.sql.functions.datetime.moments import MomentReader, is_moment_type, is_moment_word
from qserver.sql.functions.registry import Function
from qserver.sql.functions.resolve import common_type
from qserver.values.casts import Cast as CastFunction
from qserver.values.casts import assignment_function, cast_function, unchanged
from qserver.values.records import Record
from qserver.values.types import BOOLEAN, TEXT, UNKNOWN, Kind, SqlType, record_of


def settled(binding: Binding, operand: Operand) -> Expression:
    """The operand as it is; what nothing gave a type is text, or what its value is."""
    if isinstance(operand, Unknown):
        (sql_type,) = suggested_types(binding, [operand]) or [TEXT]
        return _read(binding, operand, sql_type)
    if isinstance(operand, RowValue):
        return _record(binding, operand)
    return operand


def suggested_types(binding: Binding, operands: Sequence[Operand]) -> list[SqlType] | None:
    """Where nothing tells the type of any operand: those of the values given for parameters.

    None if something does tell, or if the values do not either.
    """
    types = []
    for operand in operands:
        if not isinstance(operand, Unknown):
            return None
        known = binding.suggestion(operand.name) if isinstance(operand.name, str) else None
        types.append(UNKNOWN if known is None else known)
    return types if any(each != UNKNOWN for each in types) else None


def implicit(binding: Binding, operand: Operand, target: SqlType, position: int = -1) -> Expression:
    """As an argument of that type. Length and precision do not matter to functions."""
    if isinstance(operand, Unknown):
        return _read(binding, operand, target)
    expression = settled(binding, operand)
    if expression.type == target or expression.type.bare == target:
        return expression
    return _cast(expression, target, cast_function(expression.type, target))


def with_blanks(expression: Expression) -> Expression:
    """A value of CHAR(n), or an array, kept without them, with the blanks that fill it up."""
    sized = expression.type.element or expression.type
    if sized.kind is not Kind.CHAR or sized.length is None:
        return expression
    return _cast(expression, expression.type.bare, _filler(sized.length))


@lru_cache(maxsize=256)
def _filler(length: int) -> CastFunction:
    def fill(value: Any) -> Any:
        if type(value) is tuple:
            return tuple([None if each is None else fill(each) for each in value])
        return value.ljust(length)

    return fill


def explicit(binding: Binding, operand: Operand, target: SqlType, position: int) -> Expression:
    """As CAST makes it."""
    if isinstance(operand, Unknown):
        return _read(binding, operand, target)
    expression = settled(binding, operand)
    if expression.type == target:
        return expression
    try:
        function = cast_function(expression.type, target)
    except QserverError as error:
        raise located(error, position) from None
    return _cast(expression, target, function)


def assigned(
    binding: Binding, operand: Operand, target: SqlType, column: str, position: int
) -> Expression:
    """As a value of a column."""
    if isinstance(operand, Unknown):
        return _read(binding, operand, target, assigning=True)
    if isinstance(operand, RowValue):
        raise _not_assignable(column, target, "record", position)
    if operand.type == target:
        return operand
    try:
        function = assignment_function(operand.type, target)
    except CannotCoerce:
        raise _not_assignable(column, target, str(operand.type.bare), position) from None
    return _cast(operand, target, function)


def _not_assignable(column: str, target: SqlType, given: str, position: int) -> DatatypeMismatch:
    return DatatypeMismatch(
        f'column "{column}" is of type {target.bare} but expression is of type {given}',
        hint="You will need to rewrite or cast the expression.",
        position=position + 1,
        column=column,
    )


def condition(binding: Binding, operand: Operand, place: str, position: int) -> Expression:
    """As a truth value, where only one will do."""
    if isinstance(operand, Unknown):
        return implicit(binding, operand, BOOLEAN)
    if operand.type.kind is not Kind.BOOLEAN:
        raise DatatypeMismatch(
            f"argument of {place} must be type boolean, not type {operand.type.bare}",
            position=position + 1,
        )
    assert not isinstance(operand, RowValue)
    return operand


def alike(
    binding: Binding,
    operands: Sequence[Operand],
    construct: str,
    positions: Sequence[int],
) -> tuple[tuple[Expression, ...], SqlType]:
    """Several operands as values of the one type that they have in common."""
    if all(isinstance(each, Unknown) for each in operands):
        target = type_of_values(binding, operands, construct)
    else:
        target = shared_type([each.type for each in operands], construct, positions)
    return (
        tuple(
            [
                implicit(binding, operand, target, position)
                for operand, position in zip(operands, positions, strict=True)
            ]
        ),
        target,
    )


def type_of_values(binding: Binding, operands: Sequence[Operand], construct: str) -> SqlType:
    """What operands without a type have in common by their values: text if that is nothing."""
    with suppress(QserverError):
        return common_type(suggested_types(binding, operands) or [TEXT], construct)
    return TEXT


def shared_type(types: Sequence[SqlType], construct: str, positions: Sequence[int]) -> SqlType:
    """The type in common, or an error at the first operand that has no part in it."""
    try:
        return common_type(types, construct)
    except QserverError as error:
        for count in range(2, len(types) + 1):
            try:
                common_type(types[:count], construct)
            except QserverError:
                raise located(error, positions[count - 1]) from None
        raise located(error, positions[0]) from None


# --- rows as values ------------------------------------------------------------------------------


def _record(binding: Binding, row: RowValue) -> Expression:
    """A row as one value. The row of a table that an outer join has not found is NULL."""
    items = tuple([settled(binding, item) for item in row.items])
    names = row.names or tuple([f"f{at + 1}" for at in range(len(items))])
    columns = tuple([(name, item.type) for name, item in zip(names, items, strict=True)])
    record = Apply(_row_function(columns), items, record_of(columns), nullable=False)
    if not row.may_be_missing or not items:
        return record
    missing = And(tuple([IsNull(item) for item in items])) if len(items) > 1 else IsNull(items[0])
    return Case(((missing, Constant(None, record.type)),), record, record.type)


@lru_cache(maxsize=1024)
def _row_function(columns: tuple[tuple[str, SqlType], ...]) -> Function:
    """ROW(…) for columns of these names and types; one object for the same."""
    types = tuple([sql_type for _, sql_type in columns])
    return Function("row", types, record_of(columns), _as_record, strict=False)


def _as_record(*items: Any) -> Record:
    return Record(items)


# --- casts ---------------------------------------------------------------------------------------


def _cast(expression: Expression, target: SqlType, function: CastFunction) -> Expression:
    if isinstance(expression, Slot):
        convert = _composed(expression.convert or unchanged, function)
        made = None if convert is unchanged else convert
        return replace(expression, type=target, convert=made)
    if isinstance(expression, Constant):
        if expression.value is None:
            return Constant(None, target)
        with suppress(QserverError):  # it is an error when somebody looks at the value
            return Constant(function(expression.value), target)
    return Cast(expression, function, target)


def _read(
    binding: Binding, operand: Unknown, target: SqlType, assigning: bool = False
) -> Expression:
    """A quoted literal, NULL or a parameter as a value of the type."""
    if operand.name is None:
        return Constant(None, target)
    if target.kind is Kind.RECORD or (target.element or target).kind is Kind.RECORD:
        raise FeatureNotSupported(
            "input of anonymous composite types is not implemented",
            position=operand.position + 1,
        )
    if isinstance(operand.name, str):
        slot = binding.infer(operand.name, target)
        cast = assignment_function if assigning else cast_function
        return _cast(slot, target, cast(slot.type, target))
    function = _assigning_reader(target) if assigning else _reader(target)
    if operand.text is not None:
        if isinstance(function, MomentReader) and is_moment_word(operand.text):
            return Apply(_moment(function, operand.text), (), target, nullable=False)
        written = target.bare if assigning else target
        try:
            constant = Constant(_reader(written)(operand.text), written)
        except QserverError as error:
            raise located(error, operand.position) from None
        if written == target:
            return constant
        return _cast(constant, target, assignment_function(written, target))
    convert = None if function is unchanged else function
    if convert is not None:
        binding.quoted.append((operand.name, operand.position, convert))
    return Slot(operand.name, target, convert, operand.nullable, reader=convert)


def unreadable(binding: Binding, literals: Literals) -> QserverError | None:
    """The error of the first quoted literal so far that its type cannot read.

    PostgreSQL reads a literal as soon as its place tells the type, so it comes before the errors of
    what is bound later. Nothing is pinned: a statement that fails has no plan.
    """
    for index, position, read in binding.quoted:
        text = literals.guess(index)
        if not isinstance(text, str) or is_moment_word(text) or len(text) > BYTES_SMALL:
            continue
        try:
            read(text)
        except QserverError as error:
            return located(error, position)
    return None


@lru_cache(maxsize=1024)
def _moment(reader: MomentReader, word: str) -> Function:
    """The word of a definition, which means another moment in each run."""
    return Function(
        "moment", (), reader.type, lambda context: reader.at(word, context), needs_context=True
    )


@lru_cache(maxsize=1024)
def _reader(target: SqlType) -> CastFunction:
    read = cast_function(TEXT, target)
    return MomentReader(read, target) if is_moment_type(target) else read


@lru_cache(maxsize=1024)
def _assigning_reader(target: SqlType) -> CastFunction:
    """First what the text says, then whether it fits: 'abcd' is too long for a CHAR(3) column."""
    bare = target.bare
    read = _reader(bare)
    return read if bare == target else _composed(read, assignment_function(bare, target))


@lru_cache(maxsize=4096)
def _composed(first: CastFunction, second: CastFunction) -> CastFunction:
    """One object for the same two, so that equal slots are equal."""
    if first is unchanged:
        return second
    if second is unchanged:
        return first
    if isinstance(first, MomentReader):
        return replace(first, then=(*first.then, second))
    return lambda value: second(first(value))
