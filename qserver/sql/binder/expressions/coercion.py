"""Converts operands to the type that their context requires.

    explicit     CAST(x AS t), x::t     any cast; truncates to the length
    implicit     an operand             the resolver has checked that the cast is allowed
    assigned     INSERT, UPDATE         more casts than implicit; too long is an error

The cast of a slot becomes part of the slot, so that it runs once per execution and not once per
row; the cast of a constant runs now, if it succeeds; everything else gets a Cast around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from qserver.errors import (
    CannotCoerce,
    DatatypeMismatch,
    FeatureNotSupported,
    QserverError,
)
from qserver.functions.costs import BYTES_SMALL
from qserver.functions.datetime.moments import MomentReader, is_moment_type, is_moment_word
from qserver.functions.objects import names_objects, naming_function
from qserver.functions.registry import Function
from qserver.functions.resolve import common_type
from qserver.sql.binder.binding import Binding, RowsNeedMarks
from qserver.sql.binder.expressions.literals import Literals
from qserver.sql.binder.expressions.operands import Operand, RowValue, Unknown, located
from qserver.sql.expressions import (
    And,
    Apply,
    Case,
    Cast,
    Constant,
    Expression,
    IsNull,
    RunRefused,
    Slot,
    Slots,
)
from qserver.sql.walk import everything
from qserver.values.casts import Cast as CastFunction
from qserver.values.casts import assignment_function, cast_function, unchanged
from qserver.values.records import Record
from qserver.values.types import (
    BOOLEAN,
    INTEGER_KINDS,
    NUMBER_KINDS,
    TEXT,
    UNKNOWN,
    Kind,
    SqlType,
    record_of,
)


def settled(binding: Binding, operand: Operand) -> Expression:
    """Return the operand as an expression; one without a type is text, or has its value's type."""
    if isinstance(operand, Unknown):
        (sql_type,) = suggested_types(binding, [operand]) or [TEXT]
        return _read(binding, operand, sql_type)
    if isinstance(operand, RowValue):
        return _record(binding, operand)
    return operand


def suggested_types(binding: Binding, operands: Sequence[Operand]) -> list[SqlType] | None:
    """Return the types of the given parameter values, if no operand has a type.

    None if an operand has a type, or if the values do not determine one.
    """
    types = []
    for operand in operands:
        if not isinstance(operand, Unknown):
            return None
        if operand.count > 1 and isinstance(operand.name, str):
            raise RunRefused  # each of them may have another type
        known = binding.suggestion(operand.name) if isinstance(operand.name, str) else None
        types.append(UNKNOWN if known is None else known)
    return types if any(each != UNKNOWN for each in types) else None


def implicit(binding: Binding, operand: Operand, target: SqlType, position: int = -1) -> Expression:
    """Cast to an argument's type. Functions ignore length and precision."""
    if isinstance(operand, Unknown):
        return _read(binding, operand, target)
    expression = settled(binding, operand)
    if expression.type == target or expression.type.bare == target:
        return expression
    if names_objects(target):
        return _object_names(binding, expression, target)
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
    """Cast as CAST does."""
    if isinstance(operand, Unknown):
        return _read(binding, operand, target)
    expression = settled(binding, operand)
    if expression.type == target:
        return expression
    try:
        if names_objects(target):
            return _object_names(binding, expression, target)
        _refuse_order_of_versions(expression, target)
        function = cast_function(expression.type, target)
    except QserverError as error:
        raise located(error, position) from None
    return _cast(expression, target, function)


def _refuse_order_of_versions(expression: Expression, target: SqlType) -> None:
    """Refuse `xmin::text::bigint`, by which programs ask for all rows that have changed since."""
    if target.kind not in NUMBER_KINDS or not isinstance(expression, Cast):
        return
    for each in everything(expression.operand):
        if isinstance(each, Apply) and each.function.name == "xmin" and each.arguments:
            raise FeatureNotSupported(
                "the numbers of xmin have no order here",
                hint="Compare xmin alone, or follow the changes of the table.",
            )


def assigned(
    binding: Binding, operand: Operand, target: SqlType, column: str, position: int
) -> Expression:
    """Cast to a column's type."""
    if isinstance(operand, Unknown):
        return _read(binding, operand, target, assigning=True)
    if isinstance(operand, RowValue):
        raise _not_assignable(column, target, "record", position)
    if operand.type == target:
        return operand
    try:
        if names_objects(target):
            return _object_names(binding, operand, target)
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
    """Cast several operands to their common type."""
    if all(isinstance(each, Unknown) for each in operands):
        target = type_of_values(binding, operands, construct)
    else:
        target = shared_type([each.type for each in operands], construct, positions)
        if target.kind is Kind.CHAR:
            target = _with_blanks_of(operands, target)
    return (
        tuple(
            [
                implicit(binding, operand, target, position)
                for operand, position in zip(operands, positions, strict=True)
            ]
        ),
        target,
    )


def _with_blanks_of(operands: Sequence[Operand], target: SqlType) -> SqlType:
    """Return CHAR(n) if all operands but NULL have that n: its values keep their blanks."""
    types = [
        each.type for each in operands if not (isinstance(each, Unknown) and each.name is None)
    ]
    return types[0] if all(each == types[0] for each in types) else target


def type_of_values(binding: Binding, operands: Sequence[Operand], construct: str) -> SqlType:
    """Return the common type of the values of operands without types; text if there is none."""
    with suppress(QserverError):
        return common_type(suggested_types(binding, operands) or [TEXT], construct)
    return TEXT


def shared_type(types: Sequence[SqlType], construct: str, positions: Sequence[int]) -> SqlType:
    """Return the common type, or raise an error at the first operand that does not fit."""
    try:
        return common_type(types, construct)
    except QserverError as error:
        for count in range(2, len(types) + 1):
            try:
                common_type(types[:count], construct)
            except QserverError:
                raise located(error, positions[count - 1]) from None
        raise located(error, positions[0]) from None


# --- records -------------------------------------------------------------------------------------


def _record(binding: Binding, row: RowValue) -> Expression:
    """Turn a row into one value. The row of a table is NULL if an outer join has no match."""
    items = tuple([settled(binding, item) for item in row.items])
    columns = row.type.columns or replace(row, items=items).type.columns
    record = Apply(_row_function(columns), items, record_of(columns, row.oid), nullable=False)
    if not row.may_be_missing or not items:
        return record
    if row.present is None and row.relation is not None and not binding.marks_rows:
        raise RowsNeedMarks
    if row.present is not None:
        missing: Expression = IsNull(row.present)
    elif len(items) > 1:
        missing = And(tuple([IsNull(item) for item in items]))
    else:
        missing = IsNull(items[0])
    return Case(((missing, Constant(None, record.type)),), record, record.type)


@lru_cache(maxsize=1024)
def _row_function(columns: tuple[tuple[str, SqlType], ...]) -> Function:
    """Return the function ROW(…) for these columns; cached, so that equal rows are equal."""
    types = tuple([TEXT if each.kind is Kind.UNKNOWN else each for _, each in columns])
    return Function("row", types, record_of(columns), _as_record, strict=False)


def _as_record(*items: Any) -> Record:
    return Record(items)


def _object_names(binding: Binding, expression: Expression, target: SqlType) -> Expression:
    """Cast to regclass or its kin, or to an array of them: a call that reads the catalog."""
    if isinstance(expression, Constant) and expression.value is None:
        return Constant(None, target)
    binding.catalog.read_definitions()
    function = naming_function(expression.type.bare, target)
    return Apply(function, (expression,), target, expression.nullable)


def read_object(binding: Binding, slot: Slot) -> Expression:
    """Return a parameter of such a type: it is given as a text."""
    return _object_names(binding, replace(slot, type=TEXT), slot.type)


# --- casts ---------------------------------------------------------------------------------------


def _cast(expression: Expression, target: SqlType, function: CastFunction) -> Expression:
    is_run = isinstance(expression, Slots) and isinstance(expression.name, int)
    if is_run and function is not unchanged:
        _require_safe(expression.type, target)
    if isinstance(expression, Slot | Slots):
        convert = _composed(expression.convert or unchanged, function)
        made = None if convert is unchanged else convert
        return replace(expression, type=target, convert=made)
    if isinstance(expression, Constant):
        if expression.value is None:
            return Constant(None, target)
        with suppress(QserverError):  # an error only if the value is used
            return Constant(function(expression.value), target)
    return Cast(expression, function, target)


def _require_safe(source: SqlType, target: SqlType) -> None:
    """Refuse a run of literals whose cast may fail: that may be an error of rows alone."""
    if source.kind not in INTEGER_KINDS or target.kind not in _SAFE_KINDS:
        raise RunRefused


_SAFE_KINDS = frozenset({Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE, Kind.TEXT})


def several(slot: Slot, count: int) -> Slot | Slots:
    """Return the slot, or the run that begins with it."""
    if count == 1:
        return slot
    return Slots(slot.name, count, slot.type, slot.convert, slot.nullable, slot.reader)


def _read(
    binding: Binding, operand: Unknown, target: SqlType, assigning: bool = False
) -> Expression:
    """Read a quoted literal, NULL or a parameter as a value of the type."""
    if operand.name is None:
        return Constant(None, target)
    if target.kind is Kind.RECORD and not target.oid:
        raise FeatureNotSupported(_NO_RECORDS, position=operand.position + 1)
    if names_objects(target):
        return _object_names(binding, _read(binding, operand, TEXT), target)
    count = operand.count
    if isinstance(operand.name, str):
        slot = several(binding.infer(operand.name, target, count), count)
        cast = assignment_function if assigning else cast_function
        return _cast(slot, target, cast(slot.type, target))
    function = _assigning_reader(target) if assigning else _reader(target)
    if operand.text is not None:
        if isinstance(function, MomentReader) and is_moment_word(operand.text):
            return Apply(_moment(function, operand.text), (), target, nullable=False)
        written = target.bare if assigning else target
        try:
            constant = Constant(_reader(written)(operand.text), written, quoted=True)
        except QserverError as error:
            raise located(error, operand.position) from None
        if written == target:
            return constant
        return _cast(constant, target, assignment_function(written, target))
    convert = None if function is unchanged else function
    if convert is not None and not operand.nullable:  # it is of one row, and has one text
        binding.quoted.append((operand.name, operand.position, convert))
    return several(Slot(operand.name, target, convert, operand.nullable, reader=convert), count)


def unreadable(binding: Binding, literals: Literals) -> QserverError | None:
    """Return the error of the first quoted literal so far that its type cannot read.

    PostgreSQL reads a literal as soon as its type is known, so this error precedes those of later
    parts. The literal does not become part of the fingerprint: a failed statement has no plan.
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
    """Return a function for a word such as 'now' in a definition: each run has another time."""
    return Function(
        "moment", (), reader.type, lambda context: reader.at(word, context), needs_context=True
    )


def _no_rows(text: str) -> tuple[()]:
    """Read an array of rows, of which only the one without any can be read."""
    if text.strip() != "{}":
        raise FeatureNotSupported(_NO_RECORDS)
    return ()


_NO_RECORDS: Final = "input of anonymous composite types is not implemented"


@lru_cache(maxsize=1024)
def _reader(target: SqlType) -> CastFunction:
    element = target.element
    if element is not None and element.kind is Kind.RECORD and not element.oid:
        return _no_rows
    read = cast_function(TEXT, target)
    return MomentReader(read, target) if is_moment_type(target) else read


@lru_cache(maxsize=1024)
def _assigning_reader(target: SqlType) -> CastFunction:
    """Return a reader that parses the text, then checks the length: 'abcd' is no CHAR(3)."""
    bare = target.bare
    read = _reader(bare)
    return read if bare == target else _composed(read, assignment_function(bare, target))


@lru_cache(maxsize=4096)
def _composed(first: CastFunction, second: CastFunction) -> CastFunction:
    """Compose two casts; cached, so that equal slots are equal."""
    if first is unchanged:
        return second
    if second is unchanged:
        return first
    if isinstance(first, MomentReader):
        return replace(first, then=(*first.then, second))
    return lambda value: second(first(value))
