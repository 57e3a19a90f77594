"""Prints plans as Python source: every operator is a loop around its consumer.

    for page in scan(…):            Scan
        for r0 in page:
            if r0[2] > slot0:       its condition
                for r1 in h0.get(r0[1], ()):        hash join
                    out.append((r0[0], r1[3]))      the consumer

An operator *produces* rows for a consumer, which prints the code for each row. A scan prints a loop
with the consumer inside; a filter prints an `if` around the consumer; a hash join prints a table,
then the loop of its left side with the look-up and the consumer inside. So a pipeline is one nest
of loops over plain tuples.

Python allows twenty nested blocks, so a deep pipeline is split: its rows go into a list, and a new
nest begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeAlias

from qserver.functions.context import STEPS_BETWEEN_PAUSES
from qserver.functions.costs import BYTES_SMALL, cost_of
from qserver.sql.codegen.charges import may_be_long, size_code
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.expressions import Printer
from qserver.sql.codegen.long_values import long_columns
from qserver.sql.codegen.materialize import pattern
from qserver.sql.codegen.runtime import pages_of
from qserver.sql.codegen.source import Source
from qserver.sql.codegen.weight import Weight
from qserver.sql.expressions import Expression
from qserver.sql.plan import Change, Plan, Scan
from qserver.sql.vectors.plans import JoinPlan
from qserver.sql.walk import output_sources
from qserver.values.sizes import size_of
from qserver.values.steps import at_once

Consumer: TypeAlias = Callable[[RowVariables], None]
"""Prints the code for each row."""

Producer: TypeAlias = "Callable[[Pipeline, Any, RowVariables, Consumer], None]"
"""Prints the loops of one kind of plan node, around its consumer."""

Producers: TypeAlias = Mapping[type[Plan], Producer]

ROWS_BETWEEN_CHECKS = 1024

PAGE_BYTES = 1024 * 1024
"""Bytes of long values that fill a page of results before it has all its rows."""

KEPT_BYTES_BETWEEN_CHECKS = 64 * 1024
"""Bytes of long values held between two charges."""

KEPT_VALUE_BYTES = 96
"""The overhead of a held value: the object, and its place in a list or set."""


Pages: TypeAlias = Callable[[str], str]
"""Returns the code of the pages that are left for row code, given the code of the chunks."""


class Pipeline:
    """Prints plans into one function. `may_yield`: the function is a generator that may yield.

    `hands_out`: a yield includes the rows so far, so that a streaming client does not wait for a
    full page.
    """

    is_measured = False
    """Whether each node has to be printed by itself; see `codegen.measured`."""

    def __init__(
        self, source: Source, printer: Printer, producers: Producers, may_yield: bool
    ) -> None:
        self.source = source
        self.printer = printer
        self.producers = producers
        self.may_yield = may_yield
        self.hands_out = False
        self.pages: dict[int, Pages] = {}
        """By the source of a scan: what takes its chunks first. See `codegen.vectors`."""
        self.mosts: dict[int, str] = {}
        """By the first source of a vector tree: the variable of how many first rows are wanted."""
        self.builds: dict[int, tuple[JoinPlan, str]] = {}
        """By the first source of a join's right side: how it is joined, and the variable of it."""

    def produce(self, node: Plan, rows: RowVariables, consume: Consumer) -> None:
        """Print the loops of the plan's rows, with the consumer inside."""
        self.producers[type(node)](self, node, rows, consume)

    def changing(self, statement: Change) -> AbstractContextManager[None]:
        """Print the code of a change inside. This and the next two: see `codegen.measured`."""
        return nullcontext()

    def count_changed(self, statement: Change, rows: str) -> None:
        """Print the count of rows that RETURNING has given, whose code is `rows`."""

    def look_at(self, node: Scan) -> None:
        """Print the count of a row that a scan looks at."""

    def inside_a_function(self) -> Pipeline:
        """Return a pipeline for a nested function, which cannot yield for the outer one."""
        self.source.functions += 1
        return Pipeline(self.source, self.printer, self.producers, may_yield=False)

    def yield_check(self) -> None:
        """Print a yield check: check the deadline, and yield if possible."""
        self.source.line("context.check()")
        if self.hands_out:
            self.source.line("yield out or None")
            self.source.line("out = []")
        elif self.may_yield:
            self.source.line("yield None")

    def charge_rows(self, rows_looked_at: str) -> None:
        """Print the charge for the rows of a loop, and a yield check when one is due.

        All loops of a statement count together. A loop that cannot yield checks the deadline and
        does not reset the count, so that the next outer loop that can yield does.
        """
        self.source.line(f"context.work += {rows_looked_at}")
        self.pause_if_due()

    def charge_call(self, name: str, steps: str) -> None:
        """Print the charge for one long value, which is refused if it would take too long."""
        self.source.line(f"context.charge({name!r}, {steps})")
        self.pause_if_due()

    @contextmanager
    def weighed(self, rows_looked_at: str) -> Iterator[Weight]:
        """`charge_rows`, weighted by the length of the code that is printed inside for each row."""
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
        """Return the characters printed so far, including functions of `apart`."""
        return self.source.length() + self.printer.apart.length

    def pause_if_due(self) -> None:
        """Print a yield check for work that was charged elsewhere, as a read of pages is."""
        with self.source.block(f"if context.work > {STEPS_BETWEEN_PAUSES}:"):
            reset = "context.work = context.made = 0" if self.may_yield else "context.made = 0"
            self.source.line(reset)
            self.yield_check()

    def hand_out(self, full: str, long: Sequence[int]) -> None:
        """Print the yield of a page of results that is full or has enough long values.

        `out_bytes` counts the bytes of long values, and restarts with each page.
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
        """Return the call of a runtime generator for its result; it yields if possible."""
        self.source.name(function.__name__, function)
        if self.may_yield:
            return f"(yield from {call})"
        self.source.name("at_once", at_once)
        return f"at_once({call})"

    @contextmanager
    def for_each(self, target: str, iterable: str) -> Iterator[None]:
        """Loop over some rows. A function call for one of them may make a yield check due."""
        before = self.source.functions
        with self.source.block(f"for {target} in {iterable}:"):
            yield
            if self.source.functions > before:
                self.pause_if_due()

    def loop(
        self,
        made: int,
        iterable: str,
        rows: RowVariables,
        consume: Consumer,
        width: int | None = None,
    ) -> None:
        name = self.source.fresh("r")
        with self.loop_by_pages(name, iterable):
            consume(rows.with_row(made, name, width))

    @contextmanager
    def loop_by_pages(self, target: str, iterable: str) -> Iterator[None]:
        """Loop over any number of rows, with yield checks."""
        self.source.name("pages_of", pages_of)
        page = self.source.fresh("page")
        head = self.source.place()
        with self.source.block(f"for {page} in pages_of({iterable}):"):
            with self.weighed(f"len({page})") as weight, self.for_each(target, page):
                yield
        if weight.value > 1:
            self.source.replace_end(head, "):", f", {weight.rows}):")

    def keep(self, node: Plan, rows: RowVariables, name: str = "") -> str:
        """Print the list of the plan's rows; return its name. `pattern` is the item."""
        name = name or self.source.fresh("rows")
        self.source.line(f"{name} = []")
        sources = output_sources(node)
        measure = self.measure(node, sources)

        def inside(inner: RowVariables) -> None:
            self.source.line(f"{name}.append({pattern(sources, inner)})")
            self.charge_memory(name, len(sources))
            measure(inner)

        self.produce(node, rows, inside)
        return name

    def measure(self, node: Plan, sources: tuple[int, ...], count: str = "") -> Consumer:
        """Print a counter for long values in held rows; return the consumer that counts those of a
        row.

        With `count`, use an existing counter.
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
        """Print the charge for held values, by their bytes."""
        self.source.name("size_of", size_of)
        self.source.line(f"{count} += {' + '.join(f'size_of({code})' for code in codes)}")
        with self.source.block(f"if {count} > {KEPT_BYTES_BETWEEN_CHECKS}:"):
            self.source.line(f"context.hold_bytes({count})")
            self.source.line(f"{count} = context.made = 0")

    def count_looks(
        self, looked_at: Iterable[tuple[Expression, str]], *, of_rows: bool = False
    ) -> None:
        """Print the charge for comparisons of long values, each in a variable.

        `of_rows`: several queries may produce the rows, so each value may be NULL.
        """
        for expression, name in looked_at:
            if not may_be_long(expression):
                continue
            self.source.name("size_of", size_of)
            there = f"{name} is not None and " if of_rows or expression.nullable else ""
            with self.source.block(f"if {there}{size_code(expression, name)} >= {BYTES_SMALL}:"):
                cost = cost_of("=", (expression.type,), None)
                self.charge_call("=", f"{self.source.known(cost, 'cost')}({name})")

    def charge_memory(self, name: str, width: int) -> None:
        """Print the memory charge for a growing list, every ROWS_BETWEEN_CHECKS rows."""
        with self.source.block(f"if not len({name}) % {ROWS_BETWEEN_CHECKS}:"):
            rows = ROWS_BETWEEN_CHECKS
            self.source.line(f"context.charge_memory({rows}, {4 * width}, {name})")
            self.yield_check()

    def count_kept(self, count: str, sizes: list[str], holder: str) -> None:
        """Print the charge for a value that an aggregate holds; `sizes` are codes of its bytes.

        `holder` is the list that it is in, or that has the list or set in it.
        """
        self.source.line(f"{count} += {' + '.join([str(KEPT_VALUE_BYTES), *sizes])}")
        with self.source.block(f"if {count} > {ROWS_BETWEEN_CHECKS * KEPT_VALUE_BYTES}:"):
            self.source.line(f"context.hold_bytes({count})")
            if holder:
                self.source.line(f"context.note_large({holder})")
            self.source.line(f"{count} = context.made = 0")
            self.yield_check()

    def replay(self, name: str, node: Plan, rows: RowVariables, consume: Consumer) -> None:
        """Loop over materialized rows."""
        self.loop_over(name, output_sources(node), rows, consume)

    def loop_over(
        self, iterable: str, sources: tuple[int, ...], rows: RowVariables, consume: Consumer
    ) -> None:
        target, inner = self.unpack(sources, rows)
        with self.loop_by_pages(target, iterable):
            consume(inner)

    def unpack(self, sources: tuple[int, ...], rows: RowVariables) -> tuple[str, RowVariables]:
        """Return a loop target that unpacks materialized rows, and the variables of the rows."""
        names = []
        for made in sources:
            names.append(self.source.fresh("r"))
            rows = rows.with_row(made, names[-1])
        if len(names) == 1:
            return names[0], rows
        return f"({', '.join(names)},)" if names else "_", rows
