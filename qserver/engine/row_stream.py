"""Rows of a statement as they come, for results that nobody wants to hold as a whole.

A stream is an asynchronous iterator of pages. It holds the view that it reads, so it is one version
of the database from the first row to the last, however long the reader takes. It is a class and
not an asynchronous generator, so that nothing but `aclose` and the last page ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Overflow
from typing import Any

import trio

from qserver.engine.drawing import NeedsNumbers
from qserver.engine.giving_way import give_way
from qserver.engine.plan_cache import Plan
from qserver.engine.request import FOREVER, Request, RequestContext
from qserver.engine.system_tables import SystemReader
from qserver.engine.work import before
from qserver.limits import STATEMENT_MEMORY_BYTES_MAX
from qserver.sql.execution import Rows, out_of_memory
from qserver.sql.functions.numeric_math import overflow_error
from qserver.storage.transaction import Transaction
from qserver.storage.view import View
from qserver.values.types import SqlType


class RowStream:
    """`async for page in stream`: lists of rows, none of them empty."""

    def __init__(
        self,
        columns: tuple[str, ...],
        types: tuple[SqlType, ...],
        version: int,
        pages: Sequence[Rows],
        *,
        affected_rows: int = 0,
    ) -> None:
        self.columns = columns
        self.types = types
        self.version = version
        self.affected_rows = affected_rows
        self._pages: Iterator[Rows | None] = iter([page for page in pages if page])
        self._restart: tuple[Plan, Any, Request, View] | None = None
        self._context: RequestContext | None = None
        self.ended = False
        self._given = 0
        self._skip = 0

    @staticmethod
    def reading(plan: Plan, slots: Any, request: Request, view: View) -> RowStream:
        """The rows of a plan that only reads, on a view."""
        stream = RowStream(plan.columns, plan.types, view.version, ())
        stream._restart = (plan, slots, request, view)
        stream._begin()
        return stream

    def _begin(self) -> None:
        assert self._restart is not None
        plan, slots, request, view = self._restart
        reader = SystemReader(Transaction(view)) if plan.system_tables else view
        self._release()
        self._context = RequestContext(request, view)
        self._pages = plan.compiled.run(reader, slots, self._context)
        self._skip = self._given

    def __aiter__(self) -> RowStream:
        return self

    async def __anext__(self) -> Rows:
        while not self.ended:
            page = await self.step()
            if page is not None:
                return page
        raise StopAsyncIteration

    async def step(self) -> Rows | None:
        """Go on for one page at most; None if there is none to hand out yet, or no more."""
        deadline = FOREVER if self._restart is None else self._restart[2].deadline
        await before(deadline, give_way())
        try:
            page = next(self._pages)
        except StopIteration:
            self._end()
            self._release()
            return None
        except MemoryError:
            raise out_of_memory(STATEMENT_MEMORY_BYTES_MAX) from None
        except NeedsNumbers as needs:
            assert self._restart is not None
            await self._restart[2].supply(needs)
            self._begin()  # the same rows come again, and are passed over
            return None
        except Overflow:
            raise overflow_error() from None
        if page and self._skip:
            page, self._skip = page[self._skip :], max(0, self._skip - len(page))
        if not page:
            return None
        self._given += len(page)
        return page

    def _end(self) -> None:
        self.ended = True
        if self._restart is not None:
            self._restart[2].give_back_unused()
        self._restart = None

    def reader_was_away(self, seconds: float) -> None:
        """Time that the reader took for what it was given is not the statement's."""
        if self._restart is not None:
            self._restart[2].deadline += seconds

    def _release(self) -> None:
        if self._context is not None:
            self._context.release()

    async def aclose(self) -> None:
        """End the statement early."""
        self._pages = iter(())
        self._end()
        self._release()
        await trio.lowlevel.checkpoint()
