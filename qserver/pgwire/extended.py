"""The extended protocol: Parse, Bind, Describe, Execute, Close, Flush, Sync.

Messages up to Sync are one transaction. Execute runs when the message behind it is known: if that
is Sync, and nothing ran before, it is a statement alone, which the server repeats after a conflict.
Otherwise a transaction is opened for all of them, and Sync commits it. No client can wait for an
answer in between, because it has to send Sync or Flush for one.

An error is sent at once, and all messages up to Sync are passed over.
"""

from __future__ import annotations

from qserver.pgwire import messages
from qserver.pgwire.admission import admitted, end
from qserver.pgwire.executing import Executing
from qserver.pgwire.messages import Frames
from qserver.pgwire.prepared import Portal, new_portal
from qserver.pgwire.reading import begin_at_once, read_page
from qserver.pgwire.round_trips import RoundTrip, RoundTrips
from qserver.pgwire.rows import RowWriter
from qserver.pgwire.running import Begun, Running, start
from qserver.pgwire.tags import Kind, Sort
from qserver.pgwire.types import oid_of
from qserver.pgwire.waits import Waits
from qserver.query.open_transaction import in_failed
from qserver.query.results import Statement


class Extended:
    def __init__(self, executing: Executing) -> None:
        self._executing = executing
        self._state = executing.state
        self.round_trips = RoundTrips(executing)
        self.waiting: tuple[str, Portal, int] | None = None
        """What is executed when the next message is known, and how many rows of it."""

    def parse(self, body: bytes) -> Waits[None] | None:
        if not self._executing.is_prepared(body):
            return self._parse(body)
        self._state.out += messages.PARSED
        return None

    def _parse(self, body: bytes) -> Waits[None]:
        asked = messages.read_parse(body)
        yield from self._executing.prepare(asked.name, asked.text, asked.oids)
        if not asked.name:
            self._executing.note_body(body)
        self._state.out += messages.PARSED

    def repeat(self, trip: RoundTrip, begun: Begun) -> Waits[None] | None:
        """Answer a round trip that has come again; return what is left, if that may wait."""
        rows, running = read_page(self._state, begun, trip.writer)
        if running is None:
            self._state.out += messages.complete_select(rows)
            return None
        statement = Statement(trip.prepared.text.sql)
        return self._go_on("", Portal(trip.prepared, statement, trip.writer, running), rows)

    def bind(self, body: bytes, frames: Frames) -> bool:
        """Make a portal; return whether all that is asked of it was taken, up to Sync.

        Then it is what waits. That is how drivers send a statement, so it is read as if it were
        one message. The portal of a read that is alone has nothing to be closed, and is not kept.
        """
        executing, state = self._executing, self._state
        asked = executing.binds.read(body)
        prepared = executing.statement(asked.statement)
        kind, transaction, name = prepared.kind, state.block.transaction, asked.portal
        comes_alone = kind is None or kind.sort is not Sort.COPY  # no data behind it
        if transaction is not None and transaction.failed and not _may_control(kind):
            raise in_failed()
        portal = new_portal(prepared, asked)
        is_alone = prepared.reads and transaction is None and not name and not executing.has_portals
        if not is_alone:
            executing.open_portal(name, portal, len(body))
        state.out += messages.BOUND
        if comes_alone and not name:
            for rest in (messages.DESCRIBE_AND_RUN, messages.RUN):
                if frames.follows(rest):
                    frames.skip(rest)
                    if rest is messages.DESCRIBE_AND_RUN:
                        self._describe(portal.description)
                    self.waiting = "", portal, 0
                    if is_alone:
                        self.round_trips.note(prepared, rest)
                    return True
        if is_alone:
            executing.open_portal(name, portal, len(body))
        return False

    def describe(self, body: bytes) -> None:
        asked, out = messages.read_named(body), self._state.out
        if asked.is_portal:
            writer = self._executing.description(asked.name)
        else:
            prepared = self._executing.statement(asked.name)
            out += messages.parameters([oid_of(each) for each in prepared.parameters])
            writer = None if prepared.columns is None else prepared.writer(())
        self._describe(writer)

    def _describe(self, writer: RowWriter | None) -> None:
        self._state.out += messages.NO_DATA if writer is None else writer.description

    def execute(self, body: bytes) -> Waits[None] | None:
        name, most = messages.read_execute(body)
        portal = self._executing.portal(name)
        kind = portal.prepared.kind
        if kind is not None and kind.sort is Sort.COPY:
            return self._run(
                name, portal, most, alone=False
            )  # a Sync behind it is part of the COPY
        self.waiting = name, portal, most
        return None

    def close(self, body: bytes) -> None:
        asked = messages.read_named(body)
        if asked.is_portal:
            self._executing.close_portal(asked.name)
        else:
            self._executing.close_statement(asked.name)
        self._state.out += messages.CLOSED

    def run_waiting(self) -> Waits[None]:
        """Execute what waits, as part of a transaction: it is not alone."""
        assert self.waiting is not None
        (name, portal, most), self.waiting = self.waiting, None
        return self._run(name, portal, most, alone=False)

    def sync(self) -> Waits[None] | None:
        """Run what waits, and end the transaction of the messages before.

        Return what is left to do, if that may have to wait.
        """
        block, waiting, steps = self._state.block, self.waiting, None
        self.waiting = None
        if waiting is not None:
            name, portal, most = waiting
            if block.transaction is not None:
                steps = self._run(name, portal, most, alone=False)
            elif most or not portal.prepared.reads or portal.running or portal.has_ended:
                steps = self._run(name, portal, most, alone=True)
            else:
                steps = self._read(name, portal)
        if steps is not None or block.transaction is not None:
            return self._syncing(steps)
        self._executing.close_portals()
        return None

    def _syncing(self, steps: Waits[None] | None) -> Waits[None]:
        block = self._state.block
        if steps is not None:
            yield from steps
        if block.transaction is not None and block.is_implicit:
            yield from self._executing.commit()
        if block.transaction is None:
            self._executing.close_portals()

    def _read(self, name: str, portal: Portal) -> Waits[None] | None:
        """Execute a read that is alone; return what is left of it, if that may have to wait."""
        state, prepared = self._state, portal.prepared
        session = state.settings.session
        begun = begin_at_once(state, portal.statement)
        plan = None if begun is None else begun.plan
        if begun is not None and plan is not None and not plan.writes:
            prepared.keep(plan, session)
            self.round_trips.keep(prepared)
            rows, portal.running = read_page(state, begun, portal.description)
            if portal.running is None:
                state.out += messages.complete_select(rows)
                return None
            return self._go_on(name, portal, rows)
        if begun is not None:
            steps = self._begin(name, portal, 0, begun)
        else:
            steps = self._run(name, portal, 0, alone=True)
        self._executing.keep_portal(name, portal)
        return steps

    def _go_on(self, name: str, portal: Portal, sent: int) -> Waits[None]:
        """Keep a portal whose first rows were sent, and return what sends the others."""
        assert portal.running is not None, "it has begun"
        self._executing.keep_portal(name, portal)
        return self._rest(name, portal, portal.running, sent)

    def _rest(self, name: str, portal: Portal, running: Running, sent: int) -> Waits[None]:
        """Send the rest of a read whose first rows were sent."""
        yield running.stream.pause()
        yield from self._send(name, portal, 0, sent)

    def _run(self, name: str, portal: Portal, most: int, *, alone: bool) -> Waits[None]:
        state, executing, prepared = self._state, self._executing, portal.prepared
        kind = prepared.kind
        if kind is None:
            state.out += messages.NO_QUERY
            return
        stands_alone = alone or kind.sort is Sort.COPY or portal.running is not None
        steps = admitted(
            executing, kind, prepared.text.sql, in_block=not stands_alone, commits=False
        )
        if (yield from steps):
            yield from self._begin(name, portal, most)

    def _begin(
        self, name: str, portal: Portal, most: int, begun: Begun | None = None
    ) -> Waits[None]:
        """Begin it, or go on with it, and send rows."""
        state = self._state
        if portal.running is None and not portal.has_ended:
            portal.running = yield from start(state, portal.statement, begun)
            if most and state.block.transaction is not None and not portal.running.stream.ended:
                self._executing.begun(name, portal)  # others may run before its last row
        elif portal.running is not None:
            state.request = portal.running.stream.begin_again()
        yield from self._send(name, portal, most)

    def _send(self, name: str, portal: Portal, most: int, sent: int = 0) -> Waits[None]:
        """Send rows, `sent` of which were sent before."""
        state, prepared, running = self._state, portal.prepared, portal.running
        rows, affected, tag = sent, 0, prepared.tag
        if running is not None:  # otherwise it has ended before
            if prepared.columns is None:
                rows += yield from running.skip()
            else:
                rows += yield from running.send(state, portal.writer(running), most)
                if most and rows == most:
                    state.out += messages.SUSPENDED
                    return
            affected, tag = running.stream.affected_rows, running.stream.tag or tag
            portal.close()
            portal.has_ended = True
            self._executing.session.portals.pop(name, None)
        end(state, tag, rows, affected)


def _may_control(kind: Kind | None) -> bool:
    """Return whether a statement may run in a transaction that has failed."""
    return kind is None or kind.sort is Sort.CONTROL
