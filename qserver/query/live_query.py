"""A live query: its result at one version, then every change of it.

    first ─► rows at a version ─► armed ─► a commit matters ─► changes ─► armed ─► …

Its reads are a footprint, against which `Watches` tests commits. A linear query (see `sql.live`)
then runs only on the changed rows of its footprint, as they were and as they are. Any other query
runs again, and the two results are compared as multisets of encoded rows. A client that applies the
changes to a multiset has exactly the result at the version reached.

Only durable snapshots are read. While the client is slow, versions are merged: the next changes
lead from the last result to the newest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import TypeAlias

import trio
from msgspec.structs import replace

from qserver.engine.work import before as before_deadline
from qserver.engine.yielding import yield_to_others
from qserver.errors import FeatureNotSupported
from qserver.query.body import open_reading
from qserver.query.cursor import END
from qserver.query.kept_result import KeptResult, Line, changes_of
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import slots_of
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.request import Request, RequestContext
from qserver.query.row_stream import RowStream
from qserver.query.sql_port import ReadableDatabase
from qserver.sql import Rows, Scan, check_live, is_heavy, linear_scan
from qserver.storage.btree import EntryChange
from qserver.storage.catalog import Catalog
from qserver.storage.conflict import differs
from qserver.storage.footprint import Footprint, FootprintReader, changes_between
from qserver.storage.page import Key, Value
from qserver.storage.snapshot import Snapshot, empty_snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import TreeWrites
from qserver.values.relations import Definition
from qserver.values.schema import Table

Lines: TypeAlias = Callable[[Rows], list[Line]]
"""Encodes rows as the reader sees them."""

Changes: TypeAlias = tuple[list[Line], list[Line]]
"""Rows deleted, and rows inserted."""

KEYS_CHANGED_MAX = 50_000
"""Changed rows, found by an index, of which each is looked at; after more the query runs again."""


class LiveQuery:
    """`rows` are the first result; then `changes` whenever `is_stale`. Call `close` at the end."""

    def __init__(
        self,
        database: ReadableDatabase,
        statement: PreparedStatement,
        snapshot: Snapshot,
        request: Request,
        lines_of: Callable[[CachedPlan], Lines],
        new_plan: Callable[[Snapshot, float], Awaitable[CachedPlan]],
    ) -> None:
        """`lines_of` makes the encoder of rows; `new_plan` plans the statement again."""
        given, parameterized, plan = statement.given, statement.parameterized, statement.plan
        assert plan is not None and parameterized is not None
        slots = () if is_heavy(given) else slots_of(plan, parameterized.literals, given)
        check_live(plan.statement, slots)
        self._database = database
        self._statement = statement
        self._plan = plan
        self._scan = linear_scan(plan.statement)
        self._environment, self._timeout_ms = request.environment, request.timeout_ms
        self._allowed, self._request_id = request.allowed, request.id
        self._new_plan = new_plan
        self.columns, self.types = plan.columns, plan.types
        self.lines = lines_of(plan)
        self.version = snapshot.version
        self.row_count = 0
        self._reader: FootprintReader | None = FootprintReader(snapshot)
        self._kept = None if self._scan is not None else KeptResult(request.environment.pool)
        reader = self._reader
        self.rows = RowStream(
            lambda: open_reading(statement, reader, request, RequestContext(request, reader)),
            request,
            snapshot.version,
        )
        self._watch = database.watches.open()
        self._watch.base = snapshot

    def first(self, lines: Sequence[Line]) -> None:
        """Record encoded rows of the first result."""
        self.row_count += len(lines)
        if self._kept is not None:
            self._kept.add(lines)

    def begin(self) -> None:
        """Start watching: the first result was read to its end."""
        reader, self._reader = self._reader, None
        assert reader is not None and self.rows.ended
        self._arm(reader.footprint.settled(), reader.snapshot)

    @property
    def is_stale(self) -> bool:
        """Whether a commit may have changed the result, and a newer one can be read."""
        return not self._watch.armed and self._database.snapshots.take() is not None

    async def wait(self) -> None:
        """Wait until it is stale, or `wake` is called; raise if the database is closed."""
        if self._database.snapshots.take() is None:
            await self._database.wait_durable_snapshot()
        else:
            await self._watch.wait()

    def wake(self) -> None:
        self._watch.wake()

    async def changes(self) -> AsyncGenerator[Changes, None]:
        """Yield the changes from the last result to that of the newest durable version."""
        base = self._watch.base
        assert base is not None, "it is stale"
        about = self._timeout_ms, self._allowed, self._request_id
        request = self._environment.request(*about)
        now = self._database.snapshots.take()
        if now is None:
            now = await self._database.wait_durable_snapshot(request.deadline)
        plan_before, scan_before = self._plan, self._scan
        if not self._plan.holds_in(now.catalog):
            await self._plan_again(now, request)
        if self._kept is not None:
            steps = self._run_again(now, request)
        elif self._scan is not None and _is_same_scan(self._scan, scan_before):
            steps = self._look_at_changed(self._scan, base, now, request)
        else:
            steps = self._compare(plan_before, base, now, request)
        async with aclosing(steps):
            async for changes in steps:
                yield changes

    async def _plan_again(self, now: Snapshot, request: Request) -> None:
        plan = await self._new_plan(now, request.deadline)
        redefined = _redefined(self._plan.names, now.catalog)
        if redefined is not None or plan.types != self.types or plan.columns != self.columns:
            raise FeatureNotSupported(
                "what the live query reads has been redefined",
                hint="Send the query again.",
                table=redefined,
            )
        self._plan, self._scan = plan, None if self._kept else linear_scan(plan.statement)
        self._statement = replace(self._statement, plan=plan)

    # --- the rows that changed ---

    async def _look_at_changed(
        self, scan: Scan, base: Snapshot, now: Snapshot, request: Request
    ) -> AsyncGenerator[Changes, None]:
        """Run only on the changed rows of the footprint, as they were and as they are."""
        footprint, last = self._watch.footprint, None
        if scan.access.index is None:
            pieces = _tree_changes(scan.table.id, footprint, base, now)
        else:
            footprint = footprint.copy()
            keys = await self._changed_by_index(scan, footprint, base, now, request)
            if keys is None:
                async with aclosing(self._compare(self._plan, base, now, request)) as steps:
                    async for changes in steps:
                        yield changes
                return
            pieces = iter([[(key, *_both(scan.table.id, key, base, now)) for key in keys]])
        for at, piece in enumerate(pieces):
            if at:
                await self._pause(request)
            changed = [each for each in piece if differs(each[1], each[2])]
            if not changed:
                continue
            found = _without_common(
                await self._lines_of_rows(scan, ((key, was) for key, was, _ in changed), request),
                await self._lines_of_rows(scan, ((key, row) for key, _, row in changed), request),
            )
            if last is not None:
                yield last
            last = found if found[0] or found[1] else None
        self._arm(footprint, now)
        if last is not None:
            yield last

    async def _changed_by_index(
        self, scan: Scan, footprint: Footprint, base: Snapshot, now: Snapshot, request: Request
    ) -> set[Key] | None:
        """Return the keys of changed rows of an index scan, and update its footprint.

        The footprint has ranges or keys of the index, and the keys of the rows found through it.
        Returns None if there are too many.
        """
        index, table = scan.access.index, scan.table.id
        assert index is not None
        changed: set[Key] = set()
        gone: set[Key] = set()
        come: set[Key] = set()
        for at, piece in enumerate(_tree_changes(index.id, footprint, base, now)):
            if at:
                await self._pause(request)
            for _, was, becomes in piece:
                if was != becomes:
                    if was is not None:
                        gone.add(was)
                    if becomes is not None:
                        come.add(becomes)
            if len(gone) + len(come) > KEYS_CHANGED_MAX:
                return None
        for at, piece in enumerate(_tree_changes(table, footprint, base, now)):
            if at:
                await self._pause(request)
            changed.update(key for key, _, _ in piece)
            if len(changed) > KEYS_CHANGED_MAX:
                return None
        for key in gone - come:
            footprint.remove_key(table, key)
        for key in come:
            footprint.add_key(table, key)
        return changed | gone | come

    async def _lines_of_rows(
        self, scan: Scan, rows: Iterator[tuple[Key, Value | None]], request: Request
    ) -> list[Line]:
        """Return the result on a database that has these rows alone."""
        table, index = scan.table, scan.access.index
        entries: TreeWrites = {key: row for key, row in rows if row is not None}
        if not entries:
            return []
        reader = Transaction(empty_snapshot(1))
        reader.writes[table.id] = entries
        if index is not None:
            found = (table.entries(index, row) for row in entries.values() if row is not None)
            reader.writes[index.id] = dict(found)
        lines: list[Line] = []
        await self._run(reader, request, lines.extend, self._statement)
        return lines

    # --- whole results ---

    async def _run_again(self, now: Snapshot, request: Request) -> AsyncGenerator[Changes, None]:
        """Run the query again, and compare the result with the kept one."""
        assert self._kept is not None
        result = KeptResult(request.environment.pool)
        try:
            reader = FootprintReader(now)
            await self._run(reader, request, result.add, self._statement)
        except BaseException:
            result.release()
            raise
        before, self._kept = self._kept, result
        self._arm(reader.footprint.settled(), now)
        try:
            for changes in changes_of(before.counts, result.counts):
                yield changes
        finally:
            before.release()

    async def _compare(
        self, plan: CachedPlan, base: Snapshot, now: Snapshot, request: Request
    ) -> AsyncGenerator[Changes, None]:
        """Compare the results on two snapshots, for a linear query, which keeps no result."""
        before = KeptResult(request.environment.pool)
        result = KeptResult(request.environment.pool)
        try:
            planned = replace(self._statement, plan=plan)
            await self._run(FootprintReader(base), request, before.add, planned)
            reader = FootprintReader(now)
            await self._run(reader, request, result.add, self._statement)
            self._arm(reader.footprint.settled(), now)
            for changes in changes_of(before.counts, result.counts):
                yield changes
        finally:
            before.release()
            result.release()

    async def _run(
        self,
        reader: Transaction,
        request: Request,
        take: Callable[[list[Line]], None],
        statement: PreparedStatement,
    ) -> None:
        """Run the query; a short one does not yield."""
        context = RequestContext(request, reader)
        cursor = open_reading(statement, reader, request, context)
        pages = 0
        try:
            while (page := cursor.step()) is not END:
                if page:
                    take(self.lines(page))
                    pages += 1
                if not page or pages > 1:
                    await self._pause(request)
        finally:
            cursor.close()
            context.release()

    async def _pause(self, request: Request) -> None:
        await before_deadline(request.deadline, yield_to_others)

    def _arm(self, footprint: Footprint, snapshot: Snapshot) -> None:
        self.version = snapshot.version
        self._database.watches.arm(self._watch, footprint, snapshot)

    async def close(self) -> None:
        self._database.watches.close(self._watch)
        if self._kept is not None:
            self._kept.release()
        await self.rows.aclose()
        await trio.lowlevel.checkpoint()

    def __repr__(self) -> str:
        how = "runs again" if self._scan is None else "looks at changed rows"
        return f"a live query at version {self.version}, which {how}"


def _redefined(names: dict[str, Definition | None], catalog: Catalog) -> str | None:
    """Return the name of a changed definition; indexes may come and go."""
    for name, before in names.items():
        now = catalog.find(name)
        if now is before or now == before:
            continue
        if not (isinstance(before, Table) and isinstance(now, Table)):
            return name
        if (before.columns, before.primary_key) != (now.columns, now.primary_key):
            return name
    return None


def _is_same_scan(scan: Scan, other: Scan | None) -> bool:
    """Return whether the footprint of one plan is valid for the other."""
    return other is not None and (scan.table.id, scan.access.index) == (
        other.table.id,
        other.access.index,
    )


def _both(tree: int, key: Key, base: Snapshot, now: Snapshot) -> tuple[Value | None, Value | None]:
    return base.get_entry(tree, key), now.get_entry(tree, key)


def _tree_changes(
    tree: int, footprint: Footprint, base: Snapshot, now: Snapshot
) -> Iterator[list[EntryChange]]:
    """Yield the changes of one tree in a footprint, in pieces."""
    keys = footprint.keys.get(tree)
    if keys:
        yield [(key, *_both(tree, key, base, now)) for key in keys]
    for scanned in footprint.ranges.get(tree, ()):
        yield from changes_between(base, now, tree, scanned.low, scanned.high)


def _without_common(deleted: list[Line], inserted: list[Line]) -> Changes:
    """Return the rows that only one of two multisets has, for each."""
    if not deleted or not inserted:
        return deleted, inserted
    if len(deleted) == len(inserted) == 1:
        return ([], []) if deleted == inserted else (deleted, inserted)
    before, now = Counter(deleted), Counter(inserted)
    return list((before - now).elements()), list((now - before).elements())
