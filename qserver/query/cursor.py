"""A cursor: one running statement, and the only place that drives compiled code.

    step ─┬─ a page of rows
          ├─ None         it would yield here, so that others may run
          ├─ a Step       it waits for this; the next `step` is given the result
          └─ END          it has come to its end: `affected_rows` is known

A step is synchronous. Its caller decides what a pause means: an answer gathers pages (`gather`), a
stream hands each of them out, the coordinator refuses to wait. The cursor turns Python's exceptions
in compiled code into errors of ours, with the position in the text, and charges the rows that it
keeps as memory. It refuses a row too big to be answered before its transaction commits.
"""

from __future__ import annotations

from collections.abc import Generator
from decimal import Overflow
from enum import Enum
from typing import Any, Final

import msgspec

from qserver.errors import ProgramLimitExceeded, QserverError
from qserver.functions.context import Context, out_of_memory, row_bytes
from qserver.functions.numbers.numeric_math import overflow_error
from qserver.query.plan_cache import CachedPlan
from qserver.query.results import Result
from qserver.query.statement_statistics import StatementCounter
from qserver.sql import Rows, locate
from qserver.values.sizes import check_rows, size_of_rows
from qserver.values.types import SqlType

StatementSteps = Generator[Any, Any, int]
"""Yields pages of rows, None to let others run, or what it waits for; returns changed rows."""


class End(Enum):
    END = "end"


END: Final = End.END


class Heading(msgspec.Struct, frozen=True):
    """The columns of a statement that has no plan; see `CachedPlan` for the others."""

    columns: tuple[str, ...] = ()
    types: tuple[SqlType, ...] = ()
    long_columns: tuple[int, ...] = ()
    sized_columns: tuple[int, ...] = ()
    writes: bool = True
    counter: StatementCounter | None = None

    @property
    def row_bytes(self) -> int:
        return row_bytes(len(self.columns))


NO_ROWS: Final = Heading()


class Cursor(msgspec.Struct, eq=False):  # one for every statement, and a Struct is cheap to make
    steps: StatementSteps
    """From a plan's compiled function, or of the statement itself."""
    context: Context
    sql: str = ""
    heading: CachedPlan | Heading = NO_ROWS
    rows: Rows = []
    affected_rows: int = 0
    truncated: bool = False
    commits: bool = False
    """Whether it is part of a transaction: then its rows must be checked before the commit."""
    tag: str = ""
    """The words of its tag, where its text does not tell them."""
    waited: float = 0.0
    """Seconds in which it stood aside for others."""
    counts: bool = True
    """Whether its run is counted."""

    @property
    def plan(self) -> CachedPlan | None:
        return self.heading if isinstance(self.heading, CachedPlan) else None

    def step(self, sent: Any = None) -> Any:
        """Go on for one page at most; its rows are not kept."""
        return self.gather(sent, keep=False)

    def gather(
        self,
        sent: Any = None,
        max_rows: int | None = None,
        cut_rows: int | None = None,
        keep: bool = True,
        ahead: bool = False,
    ) -> Any:
        """Go on until it yields, waits or ends; collect its rows in `rows`.

        More than `max_rows` are an error; only the first `cut_rows` are kept. One page is short; a
        statement with more lets others run after each. `ahead`: go on for the first page, which is
        in `rows` then but not charged, and return what comes behind it: most end there.
        """
        heading = self.heading  # a local, so that the watchdog can tell which statement is running
        steps, context, writes = self.steps, self.context, heading.writes
        pages = context.pages
        if pages is not None:
            pages.worker = context
        try:
            # A statement that only reads changes nothing, and waits for nothing.
            page = steps.send(sent) if writes else next(steps, END)
            if ahead and type(page) is list:
                self.rows = page
                page = next(steps, END)
            while type(page) is list and keep:
                is_first = not self.rows
                self._keep(page)
                if max_rows is not None and len(self.rows) > max_rows:
                    raise _too_many(max_rows)
                if cut_rows is not None and len(self.rows) > cut_rows and not writes:
                    self.close()
                    page = END
                    break
                if not is_first:
                    return None
                page = next(steps) if writes else next(steps, END)
        except StopIteration as end:
            self.affected_rows = end.value
            page = END
        except (Overflow, MemoryError) as error:
            raise _reported(error, context) from None
        except QserverError as error:
            if self.sql:
                locate(error, self.sql)
            raise
        finally:
            if pages is not None:
                pages.worker = None
        if cut_rows is not None and page is END:
            self._cut(cut_rows)
        return page

    def _keep(self, page: Rows) -> None:
        """Keep a page, and charge it as memory."""
        heading = self.heading
        if self.rows:
            self.rows += page
        else:
            self.rows = page
        if heading.long_columns:
            size = size_of_rows(page, heading.row_bytes, heading.long_columns)
        else:
            size = heading.row_bytes * len(page)
        self.context.hold_bytes(size)
        if self.commits and heading.sized_columns:
            check_rows(page, heading.sized_columns)

    def result(self, version: int, began: float, ended: float) -> Result:
        """The result of the statement, which has come to its end."""
        heading, rows, changed = self.heading, self.rows, self.affected_rows
        seconds = ended - began if ended > began else 0.0  # the clock may be set back
        self.count(seconds, changed or len(rows))
        return Result(
            heading.columns,
            heading.types,
            rows,
            changed,
            version,
            0,
            self.truncated,
            self.context.held,
            seconds,
            self.tag,
        )

    def count(self, seconds: float, rows: int) -> None:
        """Count the run, which has come to its end; see `statement_statistics`."""
        counter = self.heading.counter
        if counter is not None and self.counts:
            samples = counter.samples
            samples.append((seconds, rows, self.context.held))
            if len(samples) > counter.room or self.waited:
                counter.settle(self, seconds, rows)

    def _cut(self, cut_rows: int) -> None:
        self.truncated = len(self.rows) > cut_rows
        del self.rows[cut_rows:]

    def close(self) -> None:
        self.steps.close()


def _reported(error: Overflow | MemoryError, context: Context) -> QserverError:
    if isinstance(error, MemoryError):
        return out_of_memory(context.memory_bytes_most)
    return overflow_error()


def _too_many(most: int) -> ProgramLimitExceeded:
    return ProgramLimitExceeded(
        f"the result has more than {most} rows", hint="Add a LIMIT, or have the rows streamed."
    )


def rows_at_once(rows: Rows) -> StatementSteps:
    """Yield the known rows of a statement as its only step."""
    if rows:
        yield rows
    return 0
