"""Rows of a statement as they come, for results that nobody wants to hold as a whole.

A stream is an asynchronous iterator of pages. It holds the view that it reads, so it is one version
of the database from the first row to the last, however long the reader takes. It is a class and
not an asynchronous generator, so that nothing but `aclose` and the last page ends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import trio

from qserver.engine.plan_cache import Plan
from qserver.engine.request import NeedsNumbers, Request, RequestContext
from qserver.engine.system_tables import SystemReader
from qserver.sql.execution import Rows
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
    ) -> None:
        self.columns = columns
        self.types = types
        self.version = version
        self._pages: Iterator[Rows | None] = iter([page for page in pages if page])
        self._restart: tuple[Plan, Any, Request, View] | None = None
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
        transaction = Transaction(view)
        reader = SystemReader(transaction) if plan.system_tables else transaction
        self._pages = plan.compiled.run(reader, slots, RequestContext(request, transaction))
        self._skip = self._given

    def __aiter__(self) -> RowStream:
        return self

    async def __anext__(self) -> Rows:
        while True:
            await trio.lowlevel.checkpoint()
            try:
                page = next(self._pages)
            except StopIteration:
                raise StopAsyncIteration from None
            except NeedsNumbers as needs:
                await needs.supply()
                self._begin()  # the same rows come again, and are passed over
                continue
            if page:
                page, self._skip = page[self._skip :], max(0, self._skip - len(page))
            if page:
                self._given += len(page)
                return page

    async def aclose(self) -> None:
        """End the statement early."""
        self._pages = iter(())
        self._restart = None
        await trio.lowlevel.checkpoint()
