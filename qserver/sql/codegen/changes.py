"""INSERT, UPDATE, DELETE and MERGE, as statements or inside WITH."""

from __future__ import annotations

from qserver.sql import plan
from qserver.sql.codegen.change_printer import ChangePrinter
from qserver.sql.codegen.merges import print_merge
from qserver.sql.codegen.pipeline import Pipeline
from qserver.sql.plan import Change, Select
from qserver.sql.walk import everything
from qserver.values.sizes import is_sized


def produce_change(pipeline: Pipeline, statement: Change) -> None:
    """Print a change as a statement: it counts rows, and yields RETURNING in pages."""
    source = pipeline.source
    source.line("out, affected = [], 0")
    returning = statement.returning
    long = [] if returning is None else [is_sized(each.type) for each in returning.expressions]

    def give(row: str) -> None:
        source.line(f"out.append({row})")
        pipeline.count_changed(statement, "1")
        pipeline.hand_out("len(out) >= 256", [at for at, each in enumerate(long) if each])

    _print(ChangePrinter(pipeline, statement, give))
    if statement.returning is not None:
        with source.block("if out:"):
            source.line("yield out")
    source.line("return affected")
    source.line("yield")


def produce_common_change(pipeline: Pipeline, statement: Change, name: str) -> None:
    """Print a change inside WITH: its rows count too, and RETURNING goes into the list `name`."""
    source = pipeline.source
    source.line(f"{name} = []")

    def give(row: str) -> None:
        source.line(f"{name}.append({row})")
        pipeline.charge_memory(name, 1)

    _print(ChangePrinter(pipeline, statement, give))
    pipeline.count_changed(statement, f"len({name})")


def _print(printer: ChangePrinter) -> None:
    statement = printer.statement
    with printer.pipeline.changing(statement):
        if isinstance(statement, plan.Insert):
            printer.insert(statement)
        elif isinstance(statement, plan.Update):
            printer.update(statement)
        elif isinstance(statement, plan.Delete):
            printer.delete(statement)
        else:
            print_merge(printer, statement)


def changes_of(statement: Select | Change) -> list[Change]:
    """Return all changes of a statement, those inside WITH too."""
    return [each for each in everything(statement) if isinstance(each, Change)]


def changes_before_it_reads(statement: Select | Change) -> bool:
    """Tell whether the statement could see its own changes, by WITH or subqueries of RETURNING."""
    changes = changes_of(statement)
    returning = [each.returning for each in changes if each.returning is not None]
    return (
        len(changes) > 1
        or (bool(changes) and isinstance(statement, Select | plan.Merge))
        or any(isinstance(part, plan.Scan) for each in returning for part in everything(each))
    )
