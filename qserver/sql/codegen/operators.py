"""Plans as Python source: every operator is a loop around the one that takes its rows.

An operator is asked to *produce*, and is told what to print for each row: its consumer. A scan
prints a loop and the consumer inside it; a filter prints an `if` around the consumer; a hash join
prints the building of a table, then the loop of its left side with the look-up inside, then the
consumer. So a whole pipeline becomes one nest of loops over plain tuples, with nothing in between.

    for page in scan(…):            Scan
        for r0 in page:
            if r0[2] > slot0:       its condition
                for r1 in h0.get(r0[1], ()):        hash join
                    out.append((r0[0], r1[3]))      the consumer

Python allows twenty blocks inside each other, so a deep pipeline is cut: its rows are put into a
list, and a new nest begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from qserver.sql import plan
from qserver.sql.codegen.aggregates import produce_aggregate
from qserver.sql.codegen.charges import costly_rows, may_be_long, size_code
from qserver.sql.codegen.common_tables import produce_tables
from qserver.sql.codegen.current_rows import Rows
from qserver.sql.codegen.expressions import Printer
from qserver.sql.codegen.joins import produce_join
from qserver.sql.codegen.kept import pattern
from qserver.sql.codegen.long_values import columns_made, is_long, long_columns
from qserver.sql.codegen.runtime import (
    exception,
    intersection,
    pages_of,
    row_limit,
    row_offset,
    with_ties,
)
from qserver.sql.codegen.scans import produce_scan
from qserver.sql.codegen.sorted_rows import drained
from qserver.sql.codegen.sorting import print_sort
from qserver.sql.codegen.source import Source
from qserver.sql.codegen.value_lists import produce_values
from qserver.sql.codegen.weight import Weight
from qserver.sql.codegen.windows import produce_window
from qserver.sql.execution import STEPS_BETWEEN_PAUSES
from qserver.sql.expressions import Expression
from qserver.sql.functions.costs import BYTES_SMALL, cost_of
from qserver.sql.plan import Plan
from qserver.sql.walk import output_sources
from qserver.values.sizes import is_sized, size_of

Consumer: TypeAlias = Callable[[Rows], None]

ROWS_BETWEEN_CHECKS = 1024

PAGE_BYTES = 1024 * 1024
"""A page of results with so many bytes of long values leaves before it has all its rows."""

KEPT_BYTES_BETWEEN_CHECKS = 64 * 1024
"""Bytes of long values that are kept before they are counted."""

KEPT_VALUE_BYTES = 96
"""What a value that is kept costs beside its own length: the object, its place in a list or set."""


class Operators:
    """Prints plans into one function. `may_yield`: the function is a generator that may yield.

    `hands_out`: when it yields it hands out the rows that it has, so that whoever reads them as
    a stream does not wait for a page to be full.
    """

    def __init__(self, source: Source, printer: Printer, may_yield: bool) -> None:
        self.source = source
        self.printer = printer
        self.may_yield = may_yield
        self.hands_out = False

    def produce(self, node: Plan, rows: Rows, consume: Consumer) -> None:
        """Print what makes the plan's rows, and the consumer for each of them."""
        _PRODUCERS[type(node)](self, node, rows, consume)

    def inside_a_function(self) -> Operators:
        """For a function of its own, which cannot yield for the one around it."""
        self.source.functions += 1
        return Operators(self.source, self.printer, may_yield=False)

    def yield_check(self) -> None:
        """Print a place between pages: yield if that is possible, and look at the deadline."""
        self.source.line("context.check()")
        if self.hands_out:
            self.source.line("yield out or None")
            self.source.line("out = []")
        elif self.may_yield:
            self.source.line("yield None")

    def charge_rows(self, rows_looked_at: str) -> None:
        """Print the count of rows that are about to be looked at, and a pause when it is due.

        All loops of a statement count together. One that cannot yield looks at the deadline
        and leaves the count as it is, so that the next one around it that can will do so.
        """
        self.source.line(f"context.work += {rows_looked_at}")
        self._pause_if_due()

    @contextmanager
    def weighed(self, rows_looked_at: str) -> Iterator[Weight]:
        """The same, where what is done with each row is printed inside and may be long."""
        place, before = self.source.place(), self._length()
        weight = Weight()
        yield weight
        weight.add(self._length() - before)
        with self.source.set_aside(self.source.depth) as lines:
            self.charge_rows(
                rows_looked_at if weight.value == 1 else f"{weight.value} * {rows_looked_at}"
            )
        self.source.insert(place, lines)

    def _length(self) -> int:
        """Characters of what has been printed, beside this function too."""
        return self.source.length() + self.printer.apart.length

    def _pause_if_due(self) -> None:
        with self.source.block(f"if context.work > {STEPS_BETWEEN_PAUSES}:"):
            reset = "context.work = context.made = 0" if self.may_yield else "context.made = 0"
            self.source.line(reset)
            self.yield_check()

    def hand_out(self, full: str, long: Sequence[int]) -> None:
        """Print that a page of results leaves when it is full, or has enough long values.

        The counter of their bytes, `out_bytes`, begins anew with each page.
        """
        if long:
            self.source.name("size_of", size_of)
            self.source.line("if len(out) == 1: out_bytes = 0")
            sizes = " + ".join(f"size_of(out[-1][{at}])" for at in long)
            self.source.line(f"out_bytes += {sizes}")
            full = f"{full} or out_bytes > {PAGE_BYTES}"
        with self.source.block(f"if {full}:"):
            if long:
                self.source.line("context.made = 0")
            self.source.line("yield out")
            self.source.line("out = []")

    def steps(self, call: str, function: Callable[..., Any]) -> str:
        """A call of a generator of ours for its result; it yields where that is possible."""
        self.source.name(function.__name__, function)
        if self.may_yield:
            return f"(yield from {call})"
        self.source.name("drained", drained)
        return f"drained({call})"

    @contextmanager
    def for_each(self, target: str, iterable: str) -> Iterator[None]:
        """A loop over some rows. What a function did for one of them may make a pause due."""
        before = self.source.functions
        with self.source.block(f"for {target} in {iterable}:"):
            yield
            if self.source.functions > before:
                self._pause_if_due()

    # --- small ones ---

    def one_row(self, node: plan.OneRow, rows: Rows, consume: Consumer) -> None:
        consume(rows)

    def scan(self, node: plan.Scan, rows: Rows, consume: Consumer) -> None:
        produce_scan(self, node, rows, consume)

    def aggregate(self, node: plan.Aggregate, rows: Rows, consume: Consumer) -> None:
        produce_aggregate(self, node, rows, consume)

    def filter(self, node: plan.Filter, rows: Rows, consume: Consumer) -> None:
        def inside(inner: Rows) -> None:
            with self.source.block(f"if {self.printer.truth(node.condition, inner)}:"):
                consume(inner)

        self.produce(node.input, rows, inside)

    def project(self, node: plan.Project, rows: Rows, consume: Consumer) -> None:
        def inside(inner: Rows) -> None:
            name = self.source.fresh("r")
            self.source.line(f"{name} = {self.printer.values(node.expressions, inner)}")
            consume(inner.with_row(node.source, name, len(node.expressions)))

        self.produce(node.input, rows, inside)

    def values(self, node: plan.Values, rows: Rows, consume: Consumer) -> None:
        produce_values(self, node, rows, consume)

    def function_scan(self, node: plan.FunctionScan, rows: Rows, consume: Consumer) -> None:
        arguments = [self.printer.value(each, rows) for each in node.arguments]
        names = []
        for code in arguments:
            names.append(self.source.fresh("v"))
            self.source.line(f"{names[-1]} = {code}")
        made = self.source.fresh("v")
        call = f"{self.source.known(node.function.call, 'call')}({', '.join(names)})"
        if node.function.cost is not None or any(is_sized(each.type) for each in node.arguments):
            call = self.printer.costly(costly_rows(node.function), names)
        if node.function.strict and names:
            call = f"(() if {' or '.join(f'{name} is None' for name in names)} else {call})"
        self.source.line(f"{made} = {call}")
        if node.ordinality:
            name = self.source.fresh("n")
            made = f"((*v, {name}) for {name}, v in enumerate({made}, 1))"
        self.loop(node.source, made, rows, consume)

    def loop(
        self, made: int, iterable: str, rows: Rows, consume: Consumer, width: int | None = None
    ) -> None:
        """Rows of one source from a Python iterable."""
        name = self.source.fresh("r")
        with self.loop_by_pages(name, iterable):
            consume(rows.with_row(made, name, width))

    @contextmanager
    def loop_by_pages(self, target: str, iterable: str) -> Iterator[None]:
        """A loop over any number of rows that yields now and then."""
        self.source.name("pages_of", pages_of)
        page = self.source.fresh("page")
        head = self.source.place()
        with self.source.block(f"for {page} in pages_of({iterable}):"):
            with self.weighed(f"len({page})") as weight, self.for_each(target, page):
                yield
        if weight.value > 1:
            self.source.replace_end(head, "):", f", {weight.rows}):")

    # --- keeping rows ---

    def keep(self, node: Plan, rows: Rows) -> str:
        """Print the making of a list of the plan's rows; its name. See `pattern` for the items."""
        name = self.source.fresh("rows")
        self.source.line(f"{name} = []")
        sources = output_sources(node)
        measure = self.measure(node, sources)

        def inside(inner: Rows) -> None:
            self.source.line(f"{name}.append({pattern(sources, inner)})")
            self.charge_memory(name, len(sources))
            measure(inner)

        self.produce(node, rows, inside)
        return name

    def measure(self, node: Plan, sources: tuple[int, ...], count: str = "") -> Consumer:
        """Print a counter for long values in rows that are kept; what counts those of a row.

        With `count`, a counter that is there already.
        """
        columns = [(made, at) for made in sources for at in long_columns(node, made)]
        if not columns:
            return lambda _: None
        if not count:
            count = self.source.fresh("n")
            self.source.line(f"{count} = 0")
        return lambda inner: self.count_bytes(
            count, [f"{inner.row(made)}[{at}]" for made, at in columns]
        )

    def count_bytes(self, count: str, codes: list[str]) -> None:
        """Print the counting of values that are kept, by their bytes."""
        self.source.name("size_of", size_of)
        self.source.line(f"{count} += {' + '.join(f'size_of({code})' for code in codes)}")
        with self.source.block(f"if {count} > {KEPT_BYTES_BETWEEN_CHECKS}:"):
            self.source.line(f"context.hold_bytes({count})")
            self.source.line(f"{count} = context.made = 0")

    def count_looks(
        self, looked_at: Iterable[tuple[Expression, str]], *, of_rows: bool = False
    ) -> None:
        """Print that long values, each in a variable, are counted by what a comparison takes.

        `of_rows`: of rows that several queries may make, so each value may be NULL.
        """
        for expression, name in looked_at:
            if not may_be_long(expression):
                continue
            self.source.name("size_of", size_of)
            there = f"{name} is not None and " if of_rows or expression.nullable else ""
            with self.source.block(f"if {there}{size_code(expression, name)} >= {BYTES_SMALL}:"):
                cost = cost_of("=", (expression.type,), None)
                self.charge_rows(f"{self.source.known(cost, 'cost')}({name})")

    def charge_memory(self, name: str, width: int) -> None:
        """Count what a list holds, now and then, against the memory of the statement."""
        with self.source.block(f"if not len({name}) % {ROWS_BETWEEN_CHECKS}:"):
            self.source.line(f"context.charge_memory({ROWS_BETWEEN_CHECKS}, {4 * width})")
            self.yield_check()

    def count_kept(self, count: str, sizes: list[str]) -> None:
        """Print the same for a value that an aggregate keeps, whose size in bytes is `sizes`."""
        self.source.line(f"{count} += {' + '.join([str(KEPT_VALUE_BYTES), *sizes])}")
        with self.source.block(f"if {count} > {ROWS_BETWEEN_CHECKS * KEPT_VALUE_BYTES}:"):
            self.source.line(f"context.hold_bytes({count})")
            self.source.line(f"{count} = context.made = 0")
            self.yield_check()

    def replay(self, name: str, node: Plan, rows: Rows, consume: Consumer) -> None:
        """Loop over rows that were kept."""
        self.loop_over(name, output_sources(node), rows, consume)

    def loop_over(
        self, iterable: str, sources: tuple[int, ...], rows: Rows, consume: Consumer
    ) -> None:
        target, inner = self.unpack(sources, rows)
        with self.loop_by_pages(target, iterable):
            consume(inner)

    def unpack(self, sources: tuple[int, ...], rows: Rows) -> tuple[str, Rows]:
        """A loop target that takes kept rows apart, and where the rows are then."""
        names = []
        for made in sources:
            names.append(self.source.fresh("r"))
            rows = rows.with_row(made, names[-1])
        if len(names) == 1:
            return names[0], rows
        return f"({', '.join(names)},)" if names else "_", rows

    # --- order and number ---

    def sort(self, node: plan.Sort, rows: Rows, consume: Consumer) -> None:
        name = self.keep(node.input, rows)
        print_sort(self, name, node.keys, output_sources(node.input), rows)
        self.replay(name, node.input, rows, consume)

    def top_n(self, node: plan.TopN, rows: Rows, consume: Consumer) -> None:
        """Keep a few times as many rows as are wanted, and sort the surplus away when they are."""
        line = self.source.line
        limit, offset = self._bounds(node.limit, node.offset, rows)
        most, name = self.source.fresh("most"), self.source.fresh("rows")
        line(f"{most} = {limit} + {offset}")
        peak, size = self.source.fresh("n"), self.source.fresh("n")
        line(f"{name}, {peak}, {size} = [], {ROWS_BETWEEN_CHECKS}, 0")
        sources = output_sources(node.input)
        long = [(made, at) for made in sources for at in long_columns(node.input, made)]

        def inside(inner: Rows) -> None:
            line(f"{name}.append({pattern(sources, inner)})")
            with self.source.block(f"if len({name}) > {peak}:"):
                line(f"{peak} += {ROWS_BETWEEN_CHECKS}")
                line(f"context.charge_memory({ROWS_BETWEEN_CHECKS}, {4 * len(sources)})")
                self.yield_check()
            if long:
                self._hold_until_cut(size, [f"{inner.row(made)}[{at}]" for made, at in long])
            with self.source.block(f"if len({name}) > 4 * {most} + {ROWS_BETWEEN_CHECKS}:"):
                print_sort(self, name, node.keys, sources, rows)
                line(f"del {name}[{most}:]")
                if long:  # what is left is counted when the next surplus has gone
                    line(f"context.free_bytes({size})")
                    line(f"{size} = 0")

        self.produce(node.input, rows, inside)
        print_sort(self, name, node.keys, sources, rows)
        self.loop_over(f"{name}[{offset}:{most}]", sources, rows, consume)

    def _hold_until_cut(self, size: str, codes: list[str]) -> None:
        """Print the counting of long values that are kept for a while."""
        self.source.name("size_of", size_of)
        own = self.source.fresh("n")
        self.source.line(f"{own} = {' + '.join(f'size_of({code})' for code in codes)}")
        with self.source.block(f"if {own}:"):
            self.source.line(f"{size} += {own}")
            self.source.line(f"context.hold_bytes({own})")

    def limit(self, node: plan.Limit, rows: Rows, consume: Consumer) -> None:
        line = self.source.line
        if node.with_ties:
            self._limit_with_ties(node, rows, consume)
            return
        done = self.source.known(type("Done", (Exception,), {}), "Done")
        limit, offset = self._bounds(node.limit, node.offset, rows)
        seen, stop = self.source.fresh("n"), self.source.fresh("most")
        line(f"{seen} = 0")
        if node.limit is not None:
            line(f"{stop} = {limit} + {offset}")

        def inside(inner: Rows) -> None:
            line(f"{seen} += 1")
            if node.offset is None:
                consume(inner)
            else:
                with self.source.block(f"if {seen} > {offset}:"):
                    consume(inner)
            if node.limit is not None:
                with self.source.block(f"if {seen} >= {stop}:"):
                    line(f"raise {done}")

        with self.source.block("try:"):
            head = f"if {limit} > 0:" if node.limit is not None else "if True:"
            with self.source.block(head):
                self.produce(node.input, rows, inside)
        with self.source.block(f"except {done}:"):
            line("pass")

    def bounds_of_rows(self, node: plan.Limit, rows: Rows) -> tuple[str, str]:
        """Print which rows LIMIT and OFFSET leave: names for the first, and the one after them."""
        limit, offset = self._bounds(node.limit, node.offset, rows)
        if node.offset is None:
            return offset, limit
        stop = self.source.fresh("most")
        self.source.line(f"{stop} = {limit} + {offset}")
        return offset, stop

    def _limit_with_ties(self, node: plan.Limit, rows: Rows, consume: Consumer) -> None:
        self.source.name("with_ties", with_ties)
        limit, offset = self._bounds(node.limit, node.offset, rows)
        name = self.keep(node.input, rows)
        sources = output_sources(node.input)
        target, inner = self.unpack(sources, rows)
        with self.printer.without_yielding():
            key = self.printer.values(tuple(each.expression for each in node.with_ties), inner)
        kept = f"with_ties({name}, lambda {target}: {key}, {limit}, {offset})"
        if len(sources) > 1:
            names = target.strip("(),").split(", ")
            key = f"lambda t: (lambda {', '.join(names)}: {key})(*t)"
            kept = f"with_ties({name}, {key}, {limit}, {offset})"
        self.loop_over(kept, sources, rows, consume)

    def _bounds(
        self, limit: Expression | None, offset: Expression | None, rows: Rows
    ) -> tuple[str, str]:
        self.source.name("row_limit", row_limit)
        self.source.name("row_offset", row_offset)
        names = []
        for what, expression in (("row_limit", limit), ("row_offset", offset)):
            if expression is None:
                names.append("0")
                continue
            names.append(self.source.fresh("n"))
            value = self.printer.value(expression, rows)
            bound = value if value.isdecimal() else f"{what}({value})"
            self.source.line(f"{names[-1]} = {bound}")
        return names[0], names[1]

    # --- sets ---

    def distinct(self, node: plan.Distinct, rows: Rows, consume: Consumer) -> None:
        seen = self.source.fresh("seen")
        self.source.line(f"{seen} = set()")
        long = [at for at, each in enumerate(node.on) if is_long(each, node.input)]
        compared = list(enumerate(node.on))
        if not node.on:
            long = list(long_columns(node.input, node.source))
            compared = list(enumerate(columns_made(node.input, node.source)))
        count = self.source.fresh("n")
        self.source.line(f"{count} = 0")

        def inside(inner: Rows) -> None:
            key = self.printer.values(node.on, inner) if node.on else inner.row(node.source)
            name = self.source.fresh("k")
            self.source.line(f"{name} = {key}")
            looked_at = [(each, f"{name}[{at}]") for at, each in compared]
            self.count_looks(looked_at, of_rows=True)
            with self.source.block(f"if {name} not in {seen}:"):
                self.source.line(f"{seen}.add({name})")
                self.charge_memory(seen, 1)
                if long:
                    self.count_bytes(count, [f"{name}[{at}]" for at in long])
                consume(inner)

        self.produce(node.input, rows, inside)

    def set_operation(self, node: plan.SetOperation, rows: Rows, consume: Consumer) -> None:
        """Both sides in a generator of its own, so that the consumer is printed once."""
        made = self.source.fresh("both")
        hands_out, self.hands_out = self.hands_out, False
        with self.source.block(f"def {made}():"):
            if node.kind == "union":
                self._union(node, rows)
            else:
                self._intersect_or_except(node, rows)
            self.source.line("return")
            self.source.line("yield")
        self.hands_out = hands_out
        name = self.source.fresh("r")
        with self.for_each(name, f"{made}()"):
            if self.may_yield:
                with self.source.block(f"if {name} is None:"):
                    self.yield_check()
                    self.source.line("continue")
            consume(rows.with_row(node.source, name))

    def _union(self, node: plan.SetOperation, rows: Rows) -> None:
        count = self.source.fresh("n")
        if not node.every:
            self.source.line(f"seen, {count} = set(), 0")
        long = long_columns(node, node.source)

        compared = columns_made(node.left, node.left_source)

        def give(row: str) -> None:
            if node.every:
                self.source.line(f"yield {row}")
                return
            looked_at = [(each, f"{row}[{at}]") for at, each in enumerate(compared)]
            self.count_looks(looked_at, of_rows=True)
            with self.source.block(f"if {row} not in seen:"):
                self.source.line(f"seen.add({row})")
                self.charge_memory("seen", 1)
                if long:
                    self.count_bytes(count, [f"{row}[{at}]" for at in long])
                self.source.line(f"yield {row}")

        self.produce(node.left, rows, lambda inner: give(inner.row(node.left_source)))
        self.produce(node.right, rows, lambda inner: give(inner.row(node.right_source)))

    def _intersect_or_except(self, node: plan.SetOperation, rows: Rows) -> None:
        self.source.name("intersection", intersection)
        self.source.name("exception", exception)
        left = self.keep(node.left, rows)
        right = self.keep(node.right, rows)
        how = "intersection" if node.kind == "intersect" else "exception"
        steps = f"{how}(context, {left}, {right}, {node.every})"
        if self.may_yield:
            self.source.line(f"yield from {steps}")
        else:
            self.source.line(f"yield from (row for row in {steps} if row is not None)")

    # --- common tables ---

    def common_table_scan(self, node: plan.CommonTableScan, rows: Rows, consume: Consumer) -> None:
        self.loop(node.source, f"table{node.number}", rows, consume)

    def with_tables(self, node: plan.WithTables, rows: Rows, consume: Consumer) -> None:
        produce_tables(self, node, rows)
        self.produce(node.input, rows, consume)

    def join(self, node: plan.Join, rows: Rows, consume: Consumer) -> None:
        produce_join(self, node, rows, consume)

    def window(self, node: plan.Window, rows: Rows, consume: Consumer) -> None:
        produce_window(self, node, rows, consume)


_PRODUCERS: dict[type, Callable[[Operators, Any, Rows, Consumer], None]] = {
    plan.OneRow: Operators.one_row,
    plan.Scan: Operators.scan,
    plan.Values: Operators.values,
    plan.FunctionScan: Operators.function_scan,
    plan.Join: Operators.join,
    plan.Filter: Operators.filter,
    plan.Project: Operators.project,
    plan.Aggregate: Operators.aggregate,
    plan.Window: Operators.window,
    plan.Sort: Operators.sort,
    plan.TopN: Operators.top_n,
    plan.Limit: Operators.limit,
    plan.Distinct: Operators.distinct,
    plan.SetOperation: Operators.set_operation,
    plan.CommonTableScan: Operators.common_table_scan,
    plan.WithTables: Operators.with_tables,
}
