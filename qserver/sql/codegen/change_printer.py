"""Prints INSERT, UPDATE and DELETE: first the search for all changes, then the changes.

A statement sees the table as of its start, so it collects the rows to change before it writes the
first, except for an INSERT whose source does not read that table, and for a change of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from qserver.limits import ROW_BYTES_MAX
from qserver.sql import plan
from qserver.sql.codegen.change_support import (
    arbiter_of,
    fail_check,
    fail_view,
    find_row_in_the_way,
    refuse_row,
    refuse_second_change,
    replace_row,
)
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.long_values import values_given_once
from qserver.sql.codegen.materialize import pattern
from qserver.sql.codegen.pipeline import Pipeline
from qserver.sql.codegen.runtime import pages_of, refuse_null
from qserver.sql.codegen.value_lists import is_given, rows_given
from qserver.sql.expressions import Column, Expression
from qserver.sql.plan import Change
from qserver.sql.walk import everything, output_sources
from qserver.values.schema import Table
from qserver.values.sizes import is_sized, size_of
from qserver.values.types import TEXT_KINDS

CHANGE_COSTS_ROWS = 8
"""Writing a row costs as much as this many rows of a scan."""

WRITTEN_BYTES_BETWEEN_CHECKS = 1024 * 1024
"""Bytes of long values that are written between two charges."""

WRITTEN_BYTES_FEW = 4096
"""Bytes of long values that a statement may write without a charge."""

ROWS_INSERTED_AT_ONCE = 128
"""Rows that an INSERT collects before it writes them to the table."""

Give: TypeAlias = Callable[[str], None]
"""Prints the code that consumes a row of RETURNING, given the row's code."""


class ChangePrinter:
    def __init__(self, pipeline: Pipeline, statement: Change, give: Give) -> None:
        self.give = give
        self.pipeline = pipeline
        self.source = pipeline.source
        self.printer = pipeline.printer
        self.statement = statement
        self.table = self.source.known(statement.table, "table")
        self.written = ""
        """The variable that counts written bytes."""
        self.touched = ""
        """The variable with the set of keys that ON CONFLICT DO UPDATE has written."""
        self.fresh_rows = ""
        """The variable with the list of rows to insert, if there can be several."""

    # --- INSERT ---

    def insert(self, statement: plan.Insert) -> None:
        node = statement.plan
        if statement.on_conflict is not None and statement.on_conflict.values:
            self.touched = self.source.fresh("touched")
            self.source.line(f"{self.touched} = set()")
        if statement.on_conflict is None and not _has_one_row(node):
            self.fresh_rows = self.source.fresh("fresh")
            self.source.line(f"{self.fresh_rows} = []")
        self.written = self.source.fresh("n")
        self.source.line(f"{self.written} = 0")
        if _inserts_given_rows(statement) and not self.pipeline.is_measured:
            self._insert_given_rows(statement)
            return
        if any(_reads(each, statement.table) for each in everything(node)):
            kept = self.pipeline.keep(node, RowVariables())
            self.pipeline.replay(
                kept, node, RowVariables(), lambda rows: self._insert_row(statement, rows)
            )
        else:
            self.pipeline.produce(
                node, RowVariables(), lambda rows: self._insert_row(statement, rows)
            )
        if self.fresh_rows:
            self.source.line(f"transaction.insert_many({self.table}, {self.fresh_rows})")
        self.report_rest()

    def _insert_given_rows(self, statement: plan.Insert) -> None:
        """Print the insertion of literal rows as they are, a page at a time."""
        assert isinstance(statement.plan, plan.Values)
        line, page, row = self.source.line, self.source.fresh("page"), self.source.fresh("r")
        self.source.name("pages_of", pages_of)
        given = rows_given(self.pipeline, statement.plan)
        rows = f"pages_of({given}, {ROWS_INSERTED_AT_ONCE})"
        with self.source.block(f"for {page} in {rows}:"):
            self.pipeline.charge_rows(f"len({page})")
            doubtful = self._doubtful(statement.table, statement.values, row)
            if doubtful:
                line(f"{row} = next(({row} for {row} in {page} if {doubtful}), None)")
                with self.source.block(f"if {row} is not None:"):
                    line(f"refuse_null({self.table}, {row})")
            line(f"transaction.insert_many({self.table}, {page})")
            line(f"affected += len({page})")
            line(f"context.write_rows(len({page}), {len(statement.table.columns)})")
            with self.source.block(f"if len({page}) == {ROWS_INSERTED_AT_ONCE}:"):
                self.pipeline.yield_check()

    def _insert_row(self, statement: plan.Insert, rows: RowVariables) -> None:
        line = self.source.line
        new = self.source.fresh("r")
        line(f"{new} = {self._new_row(statement.values, rows)}")
        inner = rows.with_row(statement.new_source, new)
        self.check(statement.values, statement.checks, new, inner, views=False)
        self.count_written(statement.values, statement.plan, new)
        if statement.on_conflict is None:
            self._check_views(statement.checks, new, inner, inserts=True)
            self.done(inner)
            if self.fresh_rows:
                self._insert_with_others(new)
            else:
                line(f"transaction.insert({self.table}, {new})")
            return
        self._insert_or(statement, statement.on_conflict, new, inner)

    def count_written(
        self, values: tuple[Expression, ...], node: plan.Plan, new: str, old: int | None = None
    ) -> None:
        """Refuse a row that is too big, and count what the transaction keeps until it commits.

        A row is logged as a whole, also what stays as it was in the row `old`, and the columns of
        an index once more. What came with an INSERT is as long as a request at most, if it is there
        once.
        """
        sized = [at for at, each in enumerate(values) if is_sized(each.type)]
        given = values_given_once(values, node) if old is None else set()
        if given.issuperset(sized):
            return
        self.source.name("size_of", size_of)
        self.source.name("refuse_row", refuse_row)
        line, whole = self.source.line, self.source.fresh("n")
        sizes = {at: self._size(values[at], f"{new}[{at}]") for at in sized}
        line(f"{whole} = {' + '.join(sizes.values())}")
        with self.source.block(f"if {whole} > {ROW_BYTES_MAX}:"):
            line(f"refuse_row({whole})")
        in_indexes = [
            sizes[at] for each in self.statement.table.indexes for at in each.columns if at in sizes
        ]
        line(f"{self.written} += {' + '.join([whole, *in_indexes])}")
        with self.source.block(f"if {self.written} > {WRITTEN_BYTES_BETWEEN_CHECKS}:"):
            self._report_written()
            if self.fresh_rows:
                line(f"transaction.insert_many({self.table}, {self.fresh_rows})")
                line(f"{self.fresh_rows} = []")

    def _report_written(self) -> None:
        self.source.line(f"context.write_rows(0, 0, {self.written})")
        self.source.line(f"{self.written} = context.made = 0")

    def report_rest(self) -> None:
        """Count what the statement has written since the last time."""
        with self.source.block(f"if {self.written} > {WRITTEN_BYTES_FEW}:"):
            self._report_written()

    def _size(self, value: Expression, code: str) -> str:
        """Return the code of `size_of`, without the call for an ordinary text."""
        if value.type.kind not in TEXT_KINDS:
            return f"size_of({code})"
        name = self.source.fresh("v")
        size = f"len({name}) if ({name} := {code}).isascii() else size_of({name})"
        return f"(0 if {code} is None else {size})" if value.nullable else f"({size})"

    def _insert_with_others(self, new: str) -> None:
        """Collect rows: one insertion of many rows is much cheaper."""
        line = self.source.line
        line(f"{self.fresh_rows}.append({new})")
        with self.source.block(f"if len({self.fresh_rows}) >= {ROWS_INSERTED_AT_ONCE}:"):
            line(
                f"context.write_rows({ROWS_INSERTED_AT_ONCE}, {len(self.statement.table.columns)})"
            )
            line(f"transaction.insert_many({self.table}, {self.fresh_rows})")
            line(f"{self.fresh_rows} = []")
            self.pipeline.yield_check()

    def _insert_or(
        self, statement: plan.Insert, action: plan.ConflictAction, new: str, rows: RowVariables
    ) -> None:
        line = self.source.line
        self.source.name("find_row_in_the_way", find_row_in_the_way)
        arbiters = self.source.known(tuple(map(arbiter_of, action.arbiters)), "arbiters")
        old = self.source.fresh("r")
        self.pace_change()
        line(f"{old} = find_row_in_the_way(transaction, {self.table}, {new}, {arbiters})")
        with self.source.block(f"if {old} is None:"):
            self._check_views(statement.checks, new, rows, inserts=True)
            line(f"transaction.insert({self.table}, {new})")
            if action.values:
                line(f"{self.touched}.add({self.key(statement.table, new)})")
            self.done(rows)
        if not action.values:
            return
        self.source.name("refuse_second_change", refuse_second_change)
        with self.source.block("else:"):
            with self.source.block(f"if {self.key(statement.table, old)} in {self.touched}:"):
                line("refuse_second_change()")
            inner = rows.with_row(action.old_source, old)
            truth = "True"
            if action.condition is not None:
                truth = self.printer.truth(action.condition, inner)
            with self.source.block(f"if {truth}:"):
                updated = self.source.fresh("r")
                line(f"{updated} = {self._new_row(action.values, inner)}")
                deeper = inner.with_row(action.new_source, updated)
                deeper = deeper.with_row(statement.new_source, updated)
                self.check(action.values, action.checks, updated, deeper)
                self.count_written(action.values, statement.plan, updated, action.old_source)
                self.replace(old, updated)
                line(f"{self.touched}.add({self.key(statement.table, updated)})")
                self.done(deeper)

    def _new_row(self, values: tuple[Expression, ...], rows: RowVariables) -> str:
        return self.printer.values(values, rows)

    # --- UPDATE and DELETE ---

    def update(self, statement: plan.Update) -> None:
        self.written = self.source.fresh("n")
        self.source.line(f"{self.written} = 0")
        if self._finds_one_row(statement.plan):
            self._update_row(statement)
        else:
            self._update_rows(statement)

    def _update_row(self, statement: plan.Update) -> None:
        def inside(rows: RowVariables) -> None:
            old, (new, inner) = rows.row(statement.old_source), self._updated(statement, rows)
            self.pace_change()
            if _changes_key(statement):
                self.replace(old, new)
            else:
                self.source.line(f"transaction.put({self.table}, {new})")
            self.done(inner)

        self.pipeline.produce(statement.plan, RowVariables(), inside)
        self.report_rest()

    def _updated(self, statement: plan.Update, rows: RowVariables) -> tuple[str, RowVariables]:
        """Print the new row and its checks; return its variable, and all variables."""
        new = self.source.fresh("r")
        self.source.line(f"{new} = {self._new_row(statement.values, rows)}")
        inner = rows.with_row(statement.new_source, new)
        self.check(statement.values, statement.checks, new, inner)
        self.count_written(statement.values, statement.plan, new, statement.old_source)
        return new, inner

    def _update_rows(self, statement: plan.Update) -> None:
        line = self.source.line
        sources = output_sources(statement.plan)
        changes = self.source.fresh("changes")
        line(f"{changes} = {{}}")

        def inside(rows: RowVariables) -> None:
            old, key = rows.row(statement.old_source), self.source.fresh("k")
            line(f"{key} = {self.key(statement.table, old)}")
            with self.source.block(f"if {key} not in {changes}{self._untouched(key, old)}:"):
                new, _ = self._updated(statement, rows)
                others = pattern(sources, rows) if statement.returning is not None else "None"
                line(f"{changes}[{key}] = ({old}, {new}, {others})")
                self.pipeline.charge_memory(changes, 3 + len(statement.table.columns))

        self.pipeline.produce(statement.plan, RowVariables(), inside)
        self.report_rest()
        self._apply_updates(statement, changes, sources)

    def _apply_updates(
        self, statement: plan.Update, changes: str, sources: tuple[int, ...]
    ) -> None:
        line = self.source.line
        key_changes = _changes_key(statement)
        if key_changes:
            # RowVariables may move to keys that other rows of the statement are about to leave.
            with self._changes("old, new, _", f"{changes}.values()"):
                with self.source.block(
                    f"if {self.key(statement.table, 'old')} != {self.key(statement.table, 'new')}:"
                ):
                    line(f"transaction.delete({self.table}, {self.key(statement.table, 'old')})")
        if _changes_unique_key(statement):
            # The same for other unique keys: new values go in after all old ones are gone.
            with self.source.block(f"if len({changes}) > 1:"):
                with self._changes("key", changes):
                    line(f"transaction.delete({self.table}, key)")
        old, new, others = (self.source.fresh(prefix) for prefix in ("r", "r", "t"))
        with self._changes(f"{old}, {new}, {others}", f"{changes}.values()"):
            if key_changes:
                same = f"{self.key(statement.table, old)} == {self.key(statement.table, new)}"
                with self.source.block(f"if {same}:"):
                    line(f"transaction.put({self.table}, {new})")
                with self.source.block("else:"):
                    line(f"transaction.insert({self.table}, {new})")
            else:
                line(f"transaction.put({self.table}, {new})")
            rows = RowVariables()
            if statement.returning is not None:
                target, rows = self.pipeline.unpack(sources, rows)
                line(f"{target} = {others}")
            self.done(rows.with_row(statement.new_source, new))

    @contextmanager
    def _changes(self, target: str, changes: str) -> Iterator[None]:
        """Loop over changed rows: each costs as much as several rows of a scan."""
        with self.pipeline.loop_by_pages(target, f"iter({changes})"):
            self.pace_change()
            yield

    def pace_change(self) -> None:
        self.pipeline.charge_rows(str(CHANGE_COSTS_ROWS))

    def replace(self, old: str, new: str) -> None:
        self.source.name("replace_row", replace_row)
        self.source.line(f"replace_row(transaction, {self.table}, {old}, {new})")

    def delete(self, statement: plan.Delete) -> None:
        if self._finds_one_row(statement.plan):
            self.pipeline.produce(
                statement.plan, RowVariables(), lambda rows: self._delete_row(statement, rows)
            )
        else:
            self._delete_rows(statement)

    def _delete_row(self, statement: plan.Delete, rows: RowVariables) -> None:
        key = self.key(statement.table, rows.row(statement.old_source))
        self.pace_change()
        self.source.line(f"transaction.delete({self.table}, {key})")
        self.done(rows)

    def _delete_rows(self, statement: plan.Delete) -> None:
        line = self.source.line
        sources = output_sources(statement.plan)
        gone = self.source.fresh("gone")
        line(f"{gone} = {{}}")

        def inside(rows: RowVariables) -> None:
            old, key = rows.row(statement.old_source), self.source.fresh("k")
            item = pattern(sources, rows) if statement.returning is not None else "None"
            line(f"{key} = {self.key(statement.table, old)}")
            with self.source.block(f"if {key} not in {gone}{self._untouched(key, old)}:"):
                line(f"{gone}[{key}] = {item}")
                self.pipeline.charge_memory(gone, 2)

        self.pipeline.produce(statement.plan, RowVariables(), inside)
        key, item = self.source.fresh("k"), self.source.fresh("t")
        with self._changes(f"{key}, {item}", f"{gone}.items()"):
            line(f"transaction.delete({self.table}, {key})")
            rows = RowVariables()
            if statement.returning is not None:
                target, rows = self.pipeline.unpack(sources, rows)
                line(f"{target} = {item}")
            self.done(rows)

    def _finds_one_row(self, node: plan.Plan) -> bool:
        """Tell whether the rows to change are one at most, which nothing before it has changed."""
        return (
            isinstance(node, plan.Scan)
            and node.access.index is None
            and len(node.access.range.equal) == len(node.table.primary_key)
            and not self.source.reads_before
        )

    def _untouched(self, key: str, old: str) -> str:
        """Return the condition that no other change came first: a statement changes a row once."""
        if not self.source.reads_before:
            return ""
        return f" and transaction.get_entry({self.table}.id, {key}) == {old}"

    def key(self, table: Table, row: str) -> str:
        return f"{self.source.known(table.key_of, 'key_of')}({row})"

    # --- each row ---

    def check(
        self,
        values: tuple[Expression, ...],
        checks: tuple[plan.CheckedExpression, ...],
        new: str,
        rows: RowVariables,
        views: bool = True,
    ) -> None:
        """Print the NOT NULL checks of nullable values, the CHECKs, and those of views."""
        doubtful = self._doubtful(self.statement.table, values, new)
        if doubtful:
            with self.source.block(f"if {doubtful}:"):
                self._refuse(f"refuse_null({self.table}, {new})", self.fresh_rows)
        self.source.name("fail_check", fail_check)
        for check in checks:
            if not check.of_view:
                self._check(check, "fail_check", new, rows, self.fresh_rows)
        if views:
            self._check_views(checks, new, rows)

    def _check_views(
        self,
        checks: tuple[plan.CheckedExpression, ...],
        new: str,
        rows: RowVariables,
        inserts: bool = False,
    ) -> None:
        """Print the checks of views. They do not see a new row, but what refuses it comes first."""
        self.source.name("fail_view", fail_view)
        before = f"[*{self.fresh_rows or '()'}, {new}]" if inserts else ""
        for check in checks:
            if check.of_view:
                self._check(check, "fail_view", new, rows, before)

    def _check(
        self, check: plan.CheckedExpression, fail: str, new: str, rows: RowVariables, before: str
    ) -> None:
        with self.source.block(f"if {self.printer.falsity(check.expression, rows)}:"):
            name = self.source.known(check.name, "name")
            self._refuse(f"{fail}({self.table}, {name}, {new})", before)

    def _refuse(self, raising: str, before: str) -> None:
        """Print the error of a row, after the insertion of rows that may be refused first."""
        if before:
            self.source.line(f"transaction.insert_many({self.table}, {before})")
        self.source.line(raising)

    def _doubtful(self, table: Table, values: tuple[Expression, ...], new: str) -> str:
        """Return the condition that a row has NULL in a column that is NOT NULL; "" for never."""
        self.source.name("refuse_null", refuse_null)
        return " or ".join(
            f"{new}[{at}] is None"
            for at, (column, value) in enumerate(zip(table.columns, values, strict=True))
            if value.nullable and not column.nullable
        )

    def done(self, rows: RowVariables) -> None:
        """Print the count of an affected row, and its RETURNING."""
        self.source.line("affected += 1")
        if self.statement.returning is not None:
            self.give(self.printer.values(self.statement.returning.expressions, rows))


def _inserts_given_rows(statement: plan.Insert) -> bool:
    """Tell whether the rows are a list of literals just as it was given."""
    node = statement.plan
    return (
        isinstance(node, plan.Values)
        and is_given(node)
        and len(node.items[0]) == len(statement.values)
        and all(_is_column(each, node.source, at) for at, each in enumerate(statement.values))
        and not (statement.checks or statement.on_conflict or statement.returning)
    )


def _has_one_row(node: plan.Plan) -> bool:
    return isinstance(node, plan.Values) and len(node.items) == 1 and not node.repeated


def _reads(node: Any, table: Table) -> bool:
    return isinstance(node, plan.Scan) and node.table.id == table.id


def _changes_key(statement: plan.Update) -> bool:
    """Tell whether the primary key of a row may change."""
    return not statement.changed or any(
        at in statement.changed for at in statement.table.primary_key
    )


def _changes_unique_key(statement: plan.Update) -> bool:
    """Tell whether two rows of the statement may exchange values of a unique index."""
    return any(
        index.unique and (not statement.changed or not statement.changed.isdisjoint(index.columns))
        for index in statement.table.indexes
    )


def _is_column(value: Expression, source: int | None, position: int) -> bool:
    """Is it this column of the source, and nothing else?"""
    return isinstance(value, Column) and (value.source, value.position) == (source, position)
