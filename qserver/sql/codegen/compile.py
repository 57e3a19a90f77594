"""From a plan to a Python function.

    def run(transaction, slots, context):     a generator: pages of rows, or None to give way
        get_entry, scan = …                    what is used in loops, as local names
        slot0 = convert_0(slots[0])            values of this execution, converted once
        def query0(a0): …                      subqueries
        out = []
        …                                      the plan's loops
        yield out

The source is registered with `linecache`, so tracebacks and profilers show it, and kept for
EXPLAIN (CODE).
"""

from __future__ import annotations

import linecache
from itertools import count
from types import CodeType

from qserver.sql import plan
from qserver.sql.bound import Slot
from qserver.sql.codegen.changes import produce_change
from qserver.sql.codegen.expressions import Printer, Rows
from qserver.sql.codegen.operators import Operators
from qserver.sql.codegen.scans import is_read_by_pages, produce_pages
from qserver.sql.codegen.source import Source
from qserver.sql.codegen.subqueries import Subqueries
from qserver.sql.execution import Compiled
from qserver.sql.plan import Change, Select
from qserver.values.schema import Table

PAGE_ROWS = 256
"""Rows of a page of results, about; a page leaves as soon as a scan's page has filled it."""

_NUMBERS = count(1)


def compile_statement(statement: Select | Change, tables: tuple[Table, ...] = ()) -> Compiled:
    """The function of a bound statement whose plan the rules have seen."""
    compiler = _Compiler()
    with compiler.source.block("def run(transaction, slots, context):"):
        start = compiler.source.place()
        if isinstance(statement, Select):
            columns = statement.columns
            compiler.query(statement)
        else:
            columns = () if statement.returning is None else statement.returning.columns
            compiler.change(statement)
        compiler.source.insert(start, compiler.prelude())
    text = compiler.source.text()
    namespace = compiler.source.namespace
    exec(_code(text), namespace)
    return Compiled(columns, namespace["run"], not isinstance(statement, Select), text, tables)


def _code(text: str) -> CodeType:
    name = f"<statement {next(_NUMBERS)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    return compile(text, name, "exec")


class _Compiler:
    def __init__(self) -> None:
        self.source = Source()
        self.printer = Printer(self.source)
        self.subqueries = Subqueries(
            self.printer, lambda: Operators(self.source, self.printer, gives_way=False)
        )
        self.printer.subqueries = self.subqueries
        self.operators = Operators(self.source, self.printer, gives_way=True)

    def query(self, statement: Select) -> None:
        """Rows go out a page at a time."""
        line = self.source.line
        line("out = []")
        node = statement.plan
        if isinstance(node, plan.Project) and is_read_by_pages(node.input):
            self._query_by_pages(node)
            return

        def give(rows: Rows) -> None:
            line(f"out.append({rows.row(statement.source)})")
            with self.source.block(f"if len(out) >= {PAGE_ROWS}:"):
                line("yield out")
                line("out = []")

        self.operators.produce(statement.plan, Rows(), give)
        with self.source.block("if out:"):
            line("yield out")
        line("return 0")

    def _query_by_pages(self, node: plan.Project) -> None:
        """A mere scan: a comprehension per page is half as fast again as a loop."""
        line = self.source.line

        def give(clause: str, rows: Rows) -> None:
            line(f"out += [{self.printer.values(node.expressions, rows)} {clause}]")
            with self.source.block(f"if len(out) >= {PAGE_ROWS}:"):
                line("yield out")
                line("out = []")

        assert isinstance(node.input, plan.Scan)
        produce_pages(self.operators, node.input, Rows(), give)
        with self.source.block("if out:"):
            line("yield out")
        line("return 0")

    def change(self, statement: Change) -> None:
        produce_change(self.operators, statement)

    def prelude(self) -> list[str]:
        """What stands before the plan: local names, slots, sets of IN, subqueries."""
        with self.source.set_aside() as lines:
            self.source.line("get_entry = transaction.get_entry")
            self.source.line("scan = transaction.scan")
            self.source.line("scan_in_any_order = transaction.scan_in_any_order")
            for name, slot in self.printer.slots.items():
                self._slot(name, slot)
            for name, codes in self.printer.sets.items():
                self.source.line(f"{name}_all = {{{', '.join(codes)}}}")
                self.source.line(f"{name} = {name}_all - {{None}}")
        return lines + self.printer.functions + self.subqueries.functions

    def _slot(self, name: str, slot: Slot) -> None:
        value = f"slots[{slot.name!r}]"
        if slot.convert is None:
            self.source.line(f"{name} = {value}")
            return
        convert = self.source.known(slot.convert, "convert")
        if not slot.nullable:
            self.source.line(f"{name} = {convert}({value})")
        else:
            self.source.line(f"{name} = {value}")
            with self.source.block(f"if {name} is not None:"):
                self.source.line(f"{name} = {convert}({name})")
