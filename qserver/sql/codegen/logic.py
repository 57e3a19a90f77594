"""Prints the values of AND, OR, NOT and IN, of which NULL may come.

A condition that is true or false is printed once, as `truth` or as `falsity`. Its value is printed
so that each operand stands in it once, too: printed as both, conditions inside of conditions would
double with each level.

    a AND b     (False if (v0 := a) is not None and not v0
                 else False if (v1 := b) is not None and not v1
                 else None if v0 is None or v1 is None else True)
"""

from __future__ import annotations

from qserver.sql.codegen.apart import LINES_MOST
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.port import ExpressionPrinter
from qserver.sql.codegen.source import SIMPLE
from qserver.sql.expressions import (
    And,
    Apply,
    Column,
    Constant,
    Elements,
    Expression,
    Folded,
    InList,
    Not,
    Or,
    RunRefused,
    Slot,
    Slots,
)


def logic_value(printer: ExpressionPrinter, expression: Expression, rows: RowVariables) -> str:
    """Return the value of a condition that may be NULL."""
    match expression:
        case Not():
            kept, name = kept_value(printer, expression.operand, rows)
            return f"(None if {kept} is None else not {name})"
        case And() | Or() if len(expression.operands) <= LINES_MOST:
            return _chain(printer, expression, rows)
        case InList():
            before, kept_list, rows = operand_kept(printer, expression, rows)
            if all(map(is_fixed, expression.items)):
                code = _both(printer, kept_list, rows)
            else:
                code = logic_value(printer, as_comparisons(kept_list), rows)
            return f"({before}, {code})[1]" if before else code
    return _both(printer, expression, rows)


def _chain(printer: ExpressionPrinter, expression: And | Or, rows: RowVariables) -> str:
    """Return the value that an operand decides, or NULL for an operand that is NULL."""
    decides = isinstance(expression, Or)
    way = printer.truth if decides else printer.falsity
    choices, nulls = [], []
    for operand in expression.operands:
        if operand.nullable:
            kept, name = kept_value(printer, operand, rows)
            test = name if decides else f"not {name}"
            choices.append(f"{decides} if {kept} is not None and {test} else ")
            nulls.append(f"{name} is None")
        else:
            choices.append(f"{decides} if {way(operand, rows)} else ")
    unknown = f"None if {' or '.join(nulls)} else " if nulls else ""
    return f"({''.join(choices)}{unknown}{not decides})"


def kept_value(
    printer: ExpressionPrinter, expression: Expression, rows: RowVariables
) -> tuple[str, str]:
    """Return code that computes the value and keeps it, and the name to use it by."""
    code = printer.value(expression, rows)
    if SIMPLE.fullmatch(code):
        return code, code
    name = printer.source.fresh("o")
    return f"({name} := {code})", name


def operand_kept(
    printer: ExpressionPrinter, expression: InList, rows: RowVariables
) -> tuple[str, InList, RowVariables]:
    """Return code that keeps the operand, or "", and the condition on what is kept."""
    operand = expression.operand
    if isinstance(operand, Column):
        return "", expression, rows
    kept, name = kept_value(printer, operand, rows)
    if kept == name:
        return "", expression, rows
    column = Column(rows.unused_source(), 0, operand.type, operand.nullable, name)
    of_column = InList(column, expression.items, expression.equal, expression.negated)
    return kept, of_column, rows.with_column(column, name)


def as_comparisons(expression: InList) -> Expression:
    """Return the list as comparisons with each of its items."""
    equal, operand = expression.equal, expression.operand
    if any(isinstance(item, Slots) for item in expression.items):
        raise RunRefused
    equals: tuple[Expression, ...] = tuple(
        Apply(equal, (operand, item), expression.type, operand.nullable or item.nullable)
        for item in expression.items
    )
    either: Expression = Or(equals) if len(equals) > 1 else equals[0]
    return Not(either) if expression.negated else either


def is_fixed(expression: Expression) -> bool:
    """Is it the same for all rows of an execution?"""
    return isinstance(expression, Constant | Slot | Slots | Folded | Elements)


def _both(printer: ExpressionPrinter, expression: Expression, rows: RowVariables) -> str:
    true, false = printer.truth(expression, rows), printer.falsity(expression, rows)
    return f"(True if {true} else False if {false} else None)"
