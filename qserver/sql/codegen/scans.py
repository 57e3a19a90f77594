"""Scans: how the rows of a table are found, and what counts as read.

    the whole key is known             one look-up                 reads one key
    several values of the key (IN)     a look-up each              reads those keys
    the rows of a query (IN)           the same if they are few, else as if nothing of it were known
    a prefix of the key, or bounds     a range of the tree         reads that range
    the same by an index               a range of the index, then a look-up for each entry
    nothing is known                   all pages                   reads everything that satisfies
                                                                   the condition
    nothing but a row of a query       the same, and look-ups in a hash table after the first runs
    around it

The condition is checked for each row on every path. It is also the predicate of a range scan: only
rows that satisfy it, before or after a concurrent change, can cause a conflict.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TypeAlias

from qserver.sql import plan
from qserver.sql.codegen.charges import is_costly
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.hashed_scans import RUNS_BY_ROWS, RUNS_OVER_VECTORS, HashedScan
from qserver.sql.codegen.nans import told_apart
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.codegen.runtime import leave_undecided
from qserver.sql.codegen.sought_rows import LOOKUP_STEPS, sought_pages
from qserver.sql.codegen.vectors import pages_of_filter
from qserver.sql.expressions import Expression, InQuery
from qserver.sql.join_conditions import scan_keys
from qserver.sql.vectors.plans import Matched
from qserver.sql.walk import conjunction, conjuncts, free_sources, has_subquery, is_volatile
from qserver.values.keys import NULL_KEY, TOP, Descending, canonical
from qserver.values.types import CAREFUL_KINDS, Kind

_COMPUTE = re.compile(r"\bcompute\b")

ENTRY_COSTS_ROWS = 8
"""The look-up of an index entry's row costs as much as this many rows of a scan."""

PageConsumer: TypeAlias = Callable[[str, str, str, RowVariables], None]
"""Prints the code for a page, given its name, that of a row, the condition and the rows."""


def produce_scan(
    pipeline: Pipeline, node: plan.Scan, rows: RowVariables, consume: Consumer
) -> None:
    _ScanPrinter(pipeline, node, rows, consume).print()


def is_read_by_pages(node: plan.Plan) -> bool:
    """Tell whether a plan is a scan whose pages are consumed whole."""
    if not isinstance(node, plan.Scan) or node.access.index is not None:
        return False
    if node.condition is not None and (has_subquery(node.condition) or is_costly(node.condition)):
        return False  # a comprehension cannot yield
    keys = node.access.range
    return len(keys.equal) + bool(keys.choices) < len(node.table.primary_key)


def produce_pages(
    pipeline: Pipeline, node: plan.Scan, rows: RowVariables, consume: PageConsumer
) -> None:
    """Print a scan whose consumer uses a comprehension over a page: `for r in page if …`."""

    def take(page: str, printer: _ScanPrinter) -> None:
        condition = printer.condition()
        if condition:
            condition = f" if {condition}"
        consume(page, printer.row, condition, printer.inner)

    _ScanPrinter(pipeline, node, rows, lambda _: None, take).print()


def can_be_first_rows(node: plan.Scan) -> bool:
    """Tell whether the first rows of a scan are the first entries of one range of the table."""
    return (
        node.access.partial
        and node.access.index is None
        and node.condition is None
        and not node.access.range.choices
        and node.table.has_tree
    )


def produce_first_rows(pipeline: Pipeline, node: plan.Scan, most: str, take: PageConsumer) -> None:
    """Print such a scan as one call; the consumer gets one page with all rows."""
    printer = _ScanPrinter(pipeline, node, RowVariables(), lambda _: None)
    _, low, high, checks = printer.bounds(node.table.primary_key, ())
    page = pipeline.source.fresh("page")
    with pipeline.source.block_if(checks):
        call = f"first_rows({node.table.id}, {low}, {high}, {node.access.backward}, {most})"
        pipeline.source.line(f"{page} = {call}")
        take(page, printer.row, "", printer.inner)


def predicate_of(pipeline: Pipeline, node: plan.Scan, rows: RowVariables) -> str:
    """Return the condition of a scan as a function of a row, or "None"."""
    return _ScanPrinter(pipeline, node, rows, lambda _: None).predicate()


def produce_count(
    pipeline: Pipeline, node: plan.Count, rows: RowVariables, consume: Consumer
) -> None:
    """Print the count of a range's entries, without a look at them."""
    scan, index, source = node.input, node.input.access.index, pipeline.source
    printer = _ScanPrinter(pipeline, scan, rows, lambda _: None)
    by = scan.table if index is None else index
    columns = scan.table.primary_key if index is None else index.columns
    number, row = source.fresh("n"), source.fresh("r")
    source.line(f"{number} = 0")
    _, low, high, checks = printer.bounds(columns, () if index is None else index.descending)
    with source.block_if(checks):
        source.line(f"{number} = count({by.id}, {low}, {high})")
    source.line(f"{row} = ({number}, 0)")
    consume(rows.with_row(node.source, row, 2))


class _ScanPrinter:
    def __init__(
        self,
        pipeline: Pipeline,
        node: plan.Scan,
        rows: RowVariables,
        consume: Consumer,
        take_page: Callable[[str, _ScanPrinter], None] | None = None,
    ) -> None:
        self.take_page = take_page
        self.known = ""
        """The variable that says whether the condition holds for all rows of the page."""
        pages = pipeline.pages.pop(node.source, None)
        if pages is None and node.vectors:
            pages = pages_of_filter(pipeline, node, rows)
        if pages is not None and node.condition is not None:
            self.known = pipeline.source.fresh("known")
        self.pages = pages
        self.pipeline = pipeline
        self.source = pipeline.source
        self.printer = pipeline.printer
        self.node = node
        self.rows = rows
        self.row = self.source.fresh("r")
        self.inner = rows.with_row(node.source, self.row, len(node.table.columns))
        self.consume = consume

    def print(self) -> None:
        access = self.node.access
        key_length = (
            len(self.node.table.primary_key) if access.index is None else len(access.index.columns)
        )
        equal = len(access.range.equal) + bool(access.range.choices)
        if access.range.query is not None:
            self._sought(access.range.query, exact=equal == key_length)
        elif access.index is None and equal == key_length:
            self._look_up()
        elif access.index is None:
            self._table_range()
        else:
            self._index_range(exact=equal == key_length)

    def _for(self, head: str | None) -> AbstractContextManager[None]:
        """Loop over the keys of IN or ANY, with yield checks: there may be a million."""
        return nullcontext() if head is None else self._paced(head, str(LOOKUP_STEPS))

    def _matches(self) -> None:
        """Print the condition and the consumer inside."""
        if self.pages is None:
            self.pipeline.look_at(self.node)
        condition = self.condition()
        with self.source.block_if([condition] if condition else []):
            self.consume(self.inner)

    def condition(self) -> str:
        """Return the code of the condition of a row, "" if there is none."""
        if self.node.condition is None:
            return ""
        code = self.printer.truth(self.node.condition, self.inner)
        return f"{self.known} or {code}" if self.known else code

    # --- by key ---

    def _look_up(self) -> None:
        table = self.node.table
        for_each, elements, checks = self._equal_elements(table.primary_key, ())
        key = f"({', '.join(elements)},)"
        with self._for(for_each), self.source.block_if(checks):
            self.source.line(f"{self.row} = get_entry({table.id}, {key})")
            self.pipeline.pause_if_due()
            with self.source.block(f"if {self.row} is not None:"):
                self._matches()

    def _equal_elements(
        self, positions: tuple[int, ...], descending: tuple[bool, ...]
    ) -> tuple[str | None, list[str], list[str]]:
        """Return the loop of IN or None, the leading key elements, and checks that none is NULL."""
        found = self.node.access.range
        elements: list[str] = []
        checks: list[str] = []
        for at, expression in enumerate(found.equal):
            down = bool(descending) and descending[at]
            elements.append(self._element(expression, positions[at], down, checks))
        for_each = None
        if found.choices:
            name = self.source.fresh("k")
            distinct = f"dict.fromkeys(({self.printer.items(found.choices, self.rows)},))"
            for_each = f"for {name} in {distinct}:"
            if any(each.nullable for each in found.choices):
                checks.append(f"{name} is not None")
            at = len(found.equal)
            down = bool(descending) and descending[at]
            elements.append(self._wrap(name, found.choices[0].type.kind, down))
        return for_each, elements, checks

    def _element(self, expression: Expression, position: int, down: bool, checks: list[str]) -> str:
        name = self.source.fresh("k")
        self.source.line(f"{name} = {self.printer.value(expression, self.rows)}")
        if expression.nullable:
            checks.append(f"{name} is not None")
        return self._wrap(name, expression.type.kind, down)

    def _wrap(self, code: str, kind: Kind, down: bool) -> str:
        if kind in CAREFUL_KINDS:
            self.source.name("canonical", canonical)
            code = f"canonical({code})"
        if down:
            self.source.name("Descending", Descending)
            code = f"Descending({code})"
        return code

    # --- by the rows of a query ---

    def _sought(self, query: InQuery, exact: bool) -> None:
        """Print the look-ups of a query's rows, or the scan instead if they are many."""
        index, table, keys = self.node.access.index, self.node.table, self.node.access.range
        by, columns = (table, table.primary_key) if index is None else (index, index.columns)
        descending = () if index is None else index.descending
        source, at = self.source, len(keys.equal)
        found, key, steps, page = map(source.fresh, ("found", "k", "steps", "page"))
        source.line(f"{found}, _, _ = {self.printer.values_found(query, self.rows)}")
        checks: list[str] = []
        equal = [
            self._element(each, columns[place], any(descending[place : place + 1]), checks)
            for place, each in enumerate(keys.equal)
        ]
        down = any(descending[at : at + 1])
        wanted = ", ".join([*equal, self._wrap(key, query.operands[0].type.kind, down)])
        source.name("sought_pages", sought_pages)
        source.name("TOP", TOP)
        with source.block_if(checks):
            if exact and (index is None or index.unique):
                one = source.fresh("r")
                pages = f"([{one}] for {one} in (get_entry({by.id}, ({wanted},)),) if {one})"
            else:
                pages = f"scan_values({by.id}, ({wanted},), ({wanted}, TOP))"
            find = self._of_entries(pages)
            if not equal:
                every = f"scan_values({table.id}, None, None, {self.predicate()})"
            else:
                prefix = ", ".join(equal)
                every = f"scan_values({by.id}, ({prefix},), ({prefix}, TOP))"
                every = self._of_entries(every)
            ways = f"{keys.few}, lambda {key}: {find}, lambda: {every}, {columns[at]}"
            head = f"for {steps}, {page} in sought_pages({found}, {ways}):"
            with self._paced(head, steps):
                if self.take_page is not None:
                    self.take_page(page, self)
                    return
                with self.pipeline.for_each(self.row, page):
                    self._matches()

    def _of_entries(self, pages: str) -> str:
        """Return the rows of an index's entries, page by page."""
        if self.node.access.index is None:
            return pages
        page, entry = self.source.fresh("p"), self.source.fresh("e")
        rows = f"get_entry({self.node.table.id}, {entry}) for {entry} in {page}"
        return f"([{rows}] for {page} in {pages})"

    # --- by range ---

    def bounds(
        self, positions: tuple[int, ...], descending: tuple[bool, ...]
    ) -> tuple[str | None, str, str, list[str]]:
        """Return the loop of IN or None, low and high, and checks that no bound is NULL."""
        self.source.name("TOP", TOP)
        self.source.name("NULL_KEY", NULL_KEY)
        for_each, elements, checks = self._equal_elements(positions, descending)
        found = self.node.access.range
        if found.low is None and found.high is None and not found.not_null:
            if not elements:
                return for_each, "None", "None", checks
            prefix = ", ".join(elements)
            return for_each, f"({prefix},)", f"({prefix}, TOP)", checks
        position = positions[len(elements)] if len(elements) < len(positions) else 0
        low = list(elements)
        high = [*elements, "NULL_KEY"] if self.node.table.columns[position].nullable else []
        if not high and elements:
            high = [*elements, "TOP"]
        if any(descending[len(elements) : len(elements) + 1]):  # NULLs first, and no bounds
            self.source.name("Descending", Descending)
            low, high = [*elements, "Descending(NULL_KEY)", "TOP"], [*elements, "TOP"]
        if found.low is not None:
            expression, included = found.low
            element = self._element(expression, position, False, checks)
            low = [*elements, element] if included else [*elements, element, "TOP"]
        if found.high is not None:
            expression, included = found.high
            element = self._element(expression, position, False, checks)
            high = [*elements, element, "TOP"] if included else [*elements, element]
        low_code = f"({', '.join(low)},)" if low else "None"
        high_code = f"({', '.join(high)},)" if high else "None"
        return for_each, low_code, high_code, checks

    def _table_range(self) -> None:
        access, table = self.node.access, self.node.table
        for_each, low, high, checks = self.bounds(table.primary_key, ())
        with self._for(for_each), self.source.block_if(checks):
            predicate = self.predicate()
            if access.partial or access.backward:
                pages = f"scan({table.id}, {low}, {high}, {predicate}, {self._order()})"
                self._pages(f"_, page in {pages}", "page")
            elif self.pages is not None:
                chunks = f"scan_chunks({table.id}, {low}, {high}, {predicate})"
                self._pages(f"page in {self.pages(self._hashed(chunks, low, high))}", "page")
            else:
                pages = f"scan_values({table.id}, {low}, {high}, {predicate})"
                self._pages(f"page in {self._hashed(pages, low, high)}", "page")

    def _hashed(self, pages: str, low: str, high: str) -> str:
        """Return the pages of a scan that may look up its rows: see `hashed_scans`."""
        if not self.node.hashed:
            return pages
        runs = RUNS_BY_ROWS if self.pages is None else RUNS_OVER_VECTORS
        own, others = zip(*scan_keys(self.node), strict=True)
        alone = conjunction(filter(self._is_alone, conjuncts(self.node.condition)))
        key = self._tuple(others, self.rows)
        row = self.source.fresh("r")
        inner = RowVariables({self.node.source: row})
        with self.printer.without_yielding():
            wanted = "True" if alone is None else self.printer.truth(alone, inner)
            own_key = self._tuple(own, inner)
        name = self.source.fresh("hashed")
        self.source.name("HashedScan", HashedScan)
        functions = f"lambda {row}: {wanted}, lambda {row}: {own_key}"
        line = f"    {name} = HashedScan(context, {runs}, {functions})"
        self.printer.constants.lines.append(line)
        rows = f"scan_values({self.node.table.id}, {low}, {high}, None)"
        return f"{name}.parts({key}, lambda: {pages}, lambda: {rows})"

    def _is_alone(self, condition: Expression) -> bool:
        """Tell whether a condition is cheap and names nothing but the row."""
        if has_subquery(condition) or is_volatile(condition) or is_costly(condition):
            return False
        return free_sources(condition) == {self.node.source}

    def _tuple(self, keys: tuple[Expression, ...], rows: RowVariables) -> str:
        codes = [told_apart(self.source, key.type, self.printer.value(key, rows)) for key in keys]
        return f"({', '.join(codes)},)"

    def _order(self) -> str:
        """Return the last arguments of `scan`: the direction, and the number of entries wanted."""
        access = self.node.access
        if access.wanted is None:
            return str(access.backward)
        return f"{access.backward}, {self.printer.value(access.wanted, self.rows)}"

    def _pages(self, what: str, page: str) -> None:
        name = self.source.fresh("page")
        with self._paced(f"for {what.replace('page in', f'{name} in', 1)}:", f"len({name})"):
            if self.known:
                self.source.name("Matched", Matched)
                self.source.line(f"{self.known} = type({name}) is Matched")
            if self.take_page is not None:
                self.take_page(name, self)
                return
            with self.pipeline.for_each(self.row, name):
                self._matches()

    @contextmanager
    def _paced(self, head: str, looked_at: str) -> Iterator[None]:
        """Loop over pages with yield checks; a small scan never yields."""
        with self.source.block(head), self.pipeline.weighed(looked_at):
            yield

    def _index_range(self, exact: bool) -> None:
        access = self.node.access
        index = access.index
        assert index is not None
        for_each, low, high, checks = self.bounds(index.columns, index.descending)
        entry = self.source.fresh("k")
        with self._for(for_each), self.source.block_if(checks):
            if exact and index.unique:
                self.source.line(f"{entry} = get_entry({index.id}, {low})")
                with self.source.block(f"if {entry} is not None:"):
                    self._entry(entry)
                return
            name = self.source.fresh("page")
            if access.partial or access.backward:
                pages = f"scan({index.id}, {low}, {high}, None, {self._order()})"
                head = f"for _, {name} in {pages}:"
            else:
                head = f"for {name} in scan_values({index.id}, {low}, {high}):"
            with self._paced(head, f"{ENTRY_COSTS_ROWS} * len({name})"):
                with self.pipeline.for_each(entry, name):
                    self._entry(entry)

    def _entry(self, entry: str) -> None:
        """Print the look-up of an index entry's row."""
        self.source.line(f"{self.row} = get_entry({self.node.table.id}, {entry})")
        self.pipeline.pause_if_due()
        self._matches()

    def predicate(self) -> str:
        """Return the condition as a function of a row, if it depends only on row and slots."""
        condition = self.node.condition
        if condition is None or has_subquery(condition) or is_volatile(condition):
            return "None"
        if free_sources(condition) - {self.node.source}:
            return "None"
        row = self.source.fresh("r")
        with self.printer.without_yielding():
            code = self.printer.truth(condition, RowVariables({self.node.source: row}))
        name = self.source.fresh("matches")
        self.source.name("leave_undecided", leave_undecided)
        given = f"{row}, compute=leave_undecided" if _COMPUTE.search(code) else row
        self.source.line(f"{name} = lambda {given}: {code}")
        return name
