"""MERGE: finds and joins all rows before it changes the first.

    rows = [(source, target or NULLs) …]
    for each:  if target:  if condition: UPDATE  elif …
               else:       if condition: INSERT  elif …

A second change of the same row is refused.
"""

from __future__ import annotations

from typing import NoReturn

from qserver.errors import CardinalityViolation
from qserver.sql import plan
from qserver.sql.codegen.change_printer import ChangePrinter
from qserver.sql.codegen.current_rows import RowVariables


def print_merge(printer: ChangePrinter, statement: plan.Merge) -> None:
    source = printer.source
    source.name("refuse_second_merge", refuse_second_merge)
    touched = source.fresh("touched")
    printer.written = source.fresh("n")
    source.line(f"{touched}, {printer.written} = set(), 0")
    kept = printer.pipeline.keep(statement.plan, RowVariables())

    def inside(rows: RowVariables) -> None:
        printer.pace_change()
        old = rows.row(statement.old_source)
        found = f"{old}[{statement.table.primary_key[0]}] is not None"
        for matched, head in ((True, f"if {found}:"), (False, "else:")):
            actions = [each for each in statement.actions if each.matched is matched]
            with source.block(head):
                _print_actions(printer, statement, actions, rows, touched)

    printer.pipeline.replay(kept, statement.plan, RowVariables(), inside)
    printer.report_rest()


def _print_actions(
    printer: ChangePrinter,
    statement: plan.Merge,
    actions: list[plan.MergeAction],
    rows: RowVariables,
    touched: str,
) -> None:
    for number, action in enumerate(actions):
        truth = "True"
        if action.condition is not None:
            truth = printer.printer.truth(action.condition, rows)
        with printer.source.block(f"{'elif' if number else 'if'} {truth}:"):
            _print_action(printer, statement, action, rows, touched)


def _print_action(
    printer: ChangePrinter,
    statement: plan.Merge,
    action: plan.MergeAction,
    rows: RowVariables,
    touched: str,
) -> None:
    line = printer.source.line
    if action.kind == "nothing":
        return
    key = printer.source.fresh("k")
    if action.matched:
        line(f"{key} = {printer.key(statement.table, rows.row(statement.old_source))}")
        with printer.source.block(f"if {key} in {touched}:"):
            line("refuse_second_merge()")
        line(f"{touched}.add({key})")
    if action.kind == "delete":
        line(f"transaction.delete({printer.table}, {key})")
    else:
        new = printer.source.fresh("r")
        line(f"{new} = {printer.printer.values(action.values, rows)}")
        inner = rows.with_row(statement.new_source, new)
        printer.check(action.values, action.checks, new, inner)
        old = statement.old_source if action.matched else None
        printer.count_written(action.values, statement.plan, new, old)
        if action.kind == "insert":
            line(f"transaction.insert({printer.table}, {new})")
        else:
            printer.replace(rows.row(statement.old_source), new)
    printer.done(rows)


def refuse_second_merge() -> NoReturn:
    raise CardinalityViolation(
        "MERGE command cannot affect row a second time",
        hint="Ensure that not more than one source row matches any one target row.",
    )
