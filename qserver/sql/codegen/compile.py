"""Compiles a plan to a Python function.

    def run(transaction, slots, context):     a generator: pages of rows, or None to yield
        get_entry, scan = …                    methods used in loops, as local names
        slot0 = convert_0(slots[0])            values of this execution, converted once
        def query0(a0): …                      subqueries
        out = []
        …                                      the plan's loops
        yield out

The source is registered with `linecache`, for tracebacks and profilers, and is the answer of
EXPLAIN (CODE).
"""

from __future__ import annotations

import linecache
import re
from operator import itemgetter
from typing import Any
from weakref import finalize

from qserver.errors import QserverError
from qserver.limits import SOURCE_LENGTH_MAX
from qserver.sql import plan
from qserver.sql.codegen.changes import changes_before_it_reads, changes_of, produce_change
from qserver.sql.codegen.charges import is_costly
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.expressions import Printer
from qserver.sql.codegen.long_values import long_columns
from qserver.sql.codegen.measured import MeasuredPipeline, watch_vectors
from qserver.sql.codegen.operators import PRODUCERS
from qserver.sql.codegen.pipeline import Pipeline
from qserver.sql.codegen.row_limits import bounds_of_rows
from qserver.sql.codegen.runtime import made_slots
from qserver.sql.codegen.scans import (
    can_be_first_rows,
    is_read_by_pages,
    produce_first_rows,
    produce_pages,
)
from qserver.sql.codegen.source import Source, too_long
from qserver.sql.codegen.subqueries import Subqueries, may_yield
from qserver.sql.execution import Compiled
from qserver.sql.expressions import Slot, Slots
from qserver.sql.folding import is_cast_literal
from qserver.sql.measuring import Profile
from qserver.sql.plan import Change, OutputColumn, Select
from qserver.sql.step_budget import StepBudget
from qserver.sql.walk import has_subquery
from qserver.values.schema import Table
from qserver.values.sizes import is_sized

PAGE_ROWS = 256
"""The approximate rows of a page of results; a page is yielded after a scan's page fills it."""

ROWS_FIRST_MOST = 1024
"""The most first rows of a range that are read at once, without a yield."""

READER_CALLS = ("get_entry", "scan", "scan_values", "scan_chunks", "first_rows", "count")
"""Methods of the reader that compiled code calls."""

COUNTED_CALLS = ("costly", "compute", "weigh")
"""Methods of the context that compiled code calls; see `charges`."""

_NAMES = {name: re.compile(rf"\b{name}\b") for name in COUNTED_CALLS}
"""Finds calls, and names passed to functions of `apart`."""


def compile_statement(
    statement: Select | Change,
    tables: tuple[Table, ...] = (),
    budget: StepBudget | None = None,
    literals: tuple[Slot | Slots, ...] = (),
    profile: Profile | None = None,
) -> Compiled:
    """Compile a bound and optimized statement.

    `literals` are converted first, even if the plan no longer uses them. With a `profile`, the
    function measures one execution.
    """
    budget = budget or StepBudget.boundless()
    compiler = _printed(statement, budget, literals, profile, may_yield=True)
    if compiler.source.functions and not may_yield(compiler.source.text()):
        compiler = _printed(statement, budget, literals, profile, may_yield=False)
    text = compiler.source.text()
    if len(text) > SOURCE_LENGTH_MAX:
        raise too_long(len(text))
    namespace = compiler.source.namespace
    for apart in compiler.printer.apart.texts:
        budget.spend(len(apart) // 64)
        exec(compile(apart, "<apart>", "exec"), namespace)
    if profile is not None:
        watch_vectors(namespace, statement, profile)
    run, writes = _function(text, namespace), not isinstance(statement, Select)
    if isinstance(statement, Select):
        columns = statement.columns
        long = long_columns(statement.plan, statement.source)
    else:
        columns = () if statement.returning is None else statement.returning.columns
        long = _sized(columns)
    return Compiled(columns, run, writes, text, tables, long, literals)


def _sized(columns: tuple[OutputColumn, ...]) -> tuple[int, ...]:
    return tuple(at for at, each in enumerate(columns) if is_sized(each.type))


def _printed(
    statement: Select | Change,
    budget: StepBudget,
    literals: tuple[Slot | Slots, ...],
    profile: Profile | None,
    *,
    may_yield: bool,
) -> _Compiler:
    """Print the function; `may_yield`: expressions may yield, too."""
    compiler = _Compiler(changes_before_it_reads(statement), may_yield, budget, profile)
    with compiler.source.block("def run(transaction, slots, context):"):
        start = compiler.source.place()
        if isinstance(statement, Select):
            compiler.query(statement)
        else:
            compiler.change(statement)
        compiler.convert(literals)
        compiler.source.insert(start, compiler.prelude())
    return compiler


def _function(text: str, namespace: dict[str, Any]) -> Any:
    """Compile a text. `linecache` drops the text when the function is collected."""
    name = f"<statement {id(namespace)}>"  # no other one's while the function lives
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), namespace)
    run = namespace.pop("run")  # avoids a reference cycle between namespace and function
    finalize(run, linecache.cache.pop, name, None)
    return run


class _Compiler:
    def __init__(
        self, reads_before: bool, may_yield: bool, budget: StepBudget, profile: Profile | None
    ) -> None:
        self.profile = profile
        self.source = Source()
        self.source.reads_before = reads_before
        self.printer = Printer(self.source, budget)
        self.printer.may_yield = may_yield
        self.subqueries = Subqueries(
            self.printer,
            lambda: self._new_pipeline(may_yield),
            may_yield,
        )
        self.printer.subqueries = self.subqueries
        self.pipeline = self._new_pipeline(may_yield=True)

    def _new_pipeline(self, may_yield: bool) -> Pipeline:
        if self.profile is None:
            return Pipeline(self.source, self.printer, PRODUCERS, may_yield)
        measured = MeasuredPipeline(self.source, self.printer, PRODUCERS, may_yield)
        measured.profile = self.profile
        return measured

    def query(self, statement: Select) -> None:
        """Print a query, which yields its rows in pages, and counts those that its WITH changes."""
        line, changes = self.source.line, bool(changes_of(statement))
        line("out, affected = [], 0" if changes else "out = []")
        self.pipeline.hands_out = True
        node = statement.plan
        if (
            isinstance(node, plan.Project)
            and self.profile is None
            and self._is_plain_scan(node.input)
            and not any(map(has_subquery, node.expressions))  # a comprehension cannot yield
            and not any(map(is_costly, node.expressions))
        ):
            self._query_by_pages(node)
            return

        long = long_columns(statement.plan, statement.source)

        def give(rows: RowVariables) -> None:
            line(f"out.append({rows.row(statement.source)})")
            self.pipeline.hand_out(f"len(out) >= {PAGE_ROWS}", long)

        self.pipeline.produce(statement.plan, RowVariables(), give)
        with self.source.block("if out:"):
            line("yield out")
        line("return affected" if changes else "return 0")

    def _is_plain_scan(self, node: plan.Plan) -> bool:
        """Tell whether the node is a scan, or its first rows, whose pages are consumed whole."""
        if not isinstance(node, plan.Limit):
            return is_read_by_pages(node)
        scan = node.input
        return (
            is_read_by_pages(scan)
            and isinstance(scan, plan.Scan)
            and not scan.access.range.choices  # several loops to leave
            and not node.with_ties
            and node.limit is not None
        )

    def _query_by_pages(self, node: plan.Project) -> None:
        """Print a plain scan: a comprehension per page is half as fast again as a loop."""
        line, rows = self.source.line, RowVariables()
        cut: tuple[str, str, str] | None = None
        scan = node.input
        if isinstance(scan, plan.Limit):
            cut = (*bounds_of_rows(self.pipeline, scan, rows), self.source.fresh("seen"))
            scan = scan.input
        assert isinstance(scan, plan.Scan)

        def give(page: str, row: str, condition: str, inner: RowVariables) -> None:
            if cut is not None:
                self._cut_page(page, row, condition, *cut)
                condition = ""
            line(f"out += {self._made(node, page, row, condition, inner)}")
            if cut is not None:
                _, stop, seen = cut
                with self.source.block(f"if {seen} >= {stop}:"):
                    line("break")
            with self.source.block(f"if len(out) >= {4 * PAGE_ROWS}:"):
                line("yield out")
                line("out = []")

        if cut is None:
            produce_pages(self.pipeline, scan, rows, give)
        else:
            first, stop, seen = cut
            with self.source.block(f"if {stop} > {first}:"):
                if can_be_first_rows(scan):
                    with self.source.block(f"if {stop} <= {ROWS_FIRST_MOST}:"):
                        self._first_rows(node, scan, first, stop)
                line(f"{seen} = 0")
                produce_pages(self.pipeline, scan, rows, give)
        with self.source.block("if out:"):
            line("yield out")
        line("return 0")

    def _first_rows(self, node: plan.Project, scan: plan.Scan, first: str, stop: str) -> None:
        """Print the few first rows of a range: one page, without a loop."""

        def give(page: str, row: str, condition: str, inner: RowVariables) -> None:
            cut = page if first == "0" else f"{page}[{first}:]"
            self.source.line(f"out = {self._made(node, cut, row, condition, inner)}")
            with self.source.block("if out:"):
                self.source.line("yield out")

        produce_first_rows(self.pipeline, scan, stop, give)
        self.source.line("return 0")

    def _made(
        self, node: plan.Project, page: str, row: str, condition: str, inner: RowVariables
    ) -> str:
        """Return the code of a page's list of output rows; `itemgetter` handles plain columns."""
        made = self.printer.values(node.expressions, inner)
        if made == row and not condition:
            return page
        column = rf"{row}\[([0-9]+)\]"
        if condition or not re.fullmatch(rf"\({column}(, {column})+\)", made):
            return f"[{made} for {row} in {page}{condition}]"
        columns = itemgetter(*map(int, re.findall(column, made)))
        return f"list(map({self.source.known(columns, 'columns')}, {page}))"

    def _cut_page(
        self, page: str, row: str, condition: str, first: str, stop: str, seen: str
    ) -> None:
        """Print the cut of a page to the bounds; `seen` counts the rows before the page."""
        line = self.source.line
        if condition:
            line(f"{page} = [{row} for {row} in {page}{condition}]")
        start = "" if first == "0" else f"max({first} - {seen}, 0)"
        line(f"{seen}, {page} = {seen} + len({page}), {page}[{start}:{stop} - {seen}]")

    def change(self, statement: Change) -> None:
        produce_change(self.pipeline, statement)

    def convert(self, literals: tuple[Slot | Slots, ...]) -> None:
        """Print the conversion of literals that the plan no longer names."""
        named = {slot.name for slot in (*self.printer.slots.values(), *self.printer.made)}
        for literal in literals:
            if literal.name not in named:
                self.printer.value(literal, RowVariables())

    def prelude(self) -> list[str]:
        """Return the lines before the plan: local names, slots, sets of IN, subqueries."""
        functions = self.printer.functions + self.subqueries.functions
        printed = [self.source.text(), *functions]
        with self.source.set_aside() as lines:
            reader = "transaction"
            if self.source.reads_before:
                reader = "before"
                self.source.line("before = transaction.before()")
            for name in READER_CALLS:
                if any(f"{name}(" in line for line in printed):
                    self.source.line(f"{name} = {reader}.{name}")
            place = self.source.place()
            # Literals are read before anything is computed from one, as a cast of a text is.
            for name, slot in sorted(self.printer.slots.items(), key=_is_cast):
                self._slot(name, slot)
            printed.append(self.source.text())
            printed += self.printer.constants.lines
            calls = [name for name in COUNTED_CALLS if any(map(_NAMES[name].search, printed))]
            self.source.insert(place, [f"    {name} = context.{name}" for name in calls])
            if self.printer.made:
                maker = self.source.known(made_slots(tuple(self.printer.made)), "slots")
                self.source.line(f"made = {maker}(slots, context)")
        return lines + self.printer.constants.lines + functions

    def _slot(self, name: str, slot: Slot | Slots) -> None:
        if isinstance(slot, Slots):
            maker = self.source.known(made_slots((slot,)), "slots")
            self.source.line(f"{name} = {maker}(slots, context)")
            return
        value = f"slots[{slot.name!r}]"
        if slot.convert is None:
            self.source.line(f"{name} = {value}")
            return
        if slot.nullable:
            self.source.line(f"{name} = {value}")
            with self.source.block(f"if {name} is not None:"):
                self._converted(name, slot, name)
        else:
            self._converted(name, slot, value)

    def _converted(self, name: str, slot: Slot, value: str) -> None:
        """Print a conversion whose error has the literal's number, for the caller to locate."""
        assert slot.convert is not None
        if not isinstance(slot.name, int):
            self.source.line(f"{name} = {self.printer.converted(slot, value)}")
            return
        self.source.name("QserverError", QserverError)
        with self.source.block("try:"):
            self.source.line(f"{name} = {self.printer.converted(slot, value)}")
        with self.source.block("except QserverError as error:"):
            self.source.line(f"error.literal = {slot.name}")
            self.source.line("raise")


def _is_cast(named: tuple[str, Slot | Slots]) -> bool:
    return is_cast_literal(named[1])
