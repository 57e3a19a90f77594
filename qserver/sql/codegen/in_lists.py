"""Prints IN with a list: a set that is made once, or comparisons where an item needs the row."""

from __future__ import annotations

from qserver.sql.codegen.constants import Constants
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.logic import as_comparisons, is_fixed, operand_kept
from qserver.sql.codegen.port import ExpressionPrinter
from qserver.sql.codegen.source import SIMPLE
from qserver.sql.expressions import Elements, Expression, InList
from qserver.values.keys import canonical
from qserver.values.types import CAREFUL_KINDS


def in_list(
    printer: ExpressionPrinter,
    constants: Constants,
    expression: InList,
    rows: RowVariables,
    truth: bool,
) -> str:
    """Print whether the condition is true, or is false; NULL is neither."""
    if not all(is_fixed(each) and constants.is_ready(each) for each in expression.items):
        return _in_expressions(printer, expression, rows, truth)
    found_wanted = truth != expression.negated
    careful = expression.operand.type.kind in CAREFUL_KINDS
    name = _set_of(printer, constants, expression.items, rows, careful)
    code = printer.value(expression.operand, rows)
    if careful:
        code = f"canonical({code})"
    if found_wanted:
        return f"({code} in {name})"  # the set has no NULL
    checks = [f"None not in {name}_all"] if _may_hold_null(expression.items) else []
    if expression.operand.nullable:
        if not SIMPLE.fullmatch(code):
            kept = printer.source.fresh("v")
            code, first = kept, f"({kept} := {code}) is not None"
        else:
            first = f"{code} is not None"
        checks.insert(0, first)
    outside = " and ".join([*checks, f"{code} not in {name}"])
    if isinstance(expression.items[0], Elements):  # an empty array decides even for NULL
        outside = f"not {name}_all or {outside}"
    return f"({outside})"


def _set_of(
    printer: ExpressionPrinter,
    constants: Constants,
    items: tuple[Expression, ...],
    rows: RowVariables,
    careful: bool,
) -> str:
    code = printer.items(items, rows)
    if careful:  # Python's == and hash differ from SQL's
        printer.source.name("canonical", canonical)
        code = f"*map(canonical, ({code},))"
    return constants.set_of(code)


def _in_expressions(
    printer: ExpressionPrinter, expression: InList, rows: RowVariables, truth: bool
) -> str:
    before, expression, rows = operand_kept(printer, expression, rows)
    whole = as_comparisons(expression)
    code = printer.truth(whole, rows) if truth else printer.falsity(whole, rows)
    return f"({before}, {code})[1]" if before else code


def _may_hold_null(items: tuple[Expression, ...]) -> bool:
    return any(item.nullable for item in items)
