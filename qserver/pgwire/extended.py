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
from qserver.pgwire.prepared import Portal
from qserver.pgwire.rows import RowWriter
from qserver.pgwire.running import start
from qserver.pgwire.tags import Sort
from qserver.pgwire.types import oid_of
from qserver.pgwire.waits import Waits
from qserver.query.open_transaction import in_failed


class Extended:
    def __init__(self, executing: Executing) -> None:
        self._executing = executing
        self._state = executing.state
        self.waiting: tuple[str, Portal, int] | None = None
        """What is executed when the next message is known, and how many rows of it."""

    def parse(self, body: bytes) -> Waits[None]:
        asked = messages.read_parse(body)
        yield from self._executing.prepare(asked.name, asked.text, asked.oids)
        self._state.out += messages.PARSED

    def bind(self, body: bytes) -> None:
        asked = messages.read_bind(body)
        prepared = self._executing.statement(asked.statement)
        transaction = self._state.block.transaction
        if transaction is not None and transaction.failed:
            kind = prepared.kind
            if kind is not None and kind.sort is not Sort.CONTROL:
                raise in_failed()
        self._executing.open_portal(asked.portal, Portal(prepared, asked))
        self._state.out += messages.BOUND

    def take_results(self, frames: Frames) -> bool:
        """Take what asks for all rows of the unnamed portal, up to Sync, if that comes next.

        That is how drivers send a statement, so it is read as if it were one message.
        """
        portal = self._executing.unnamed_portal
        kind = None if portal is None else portal.prepared.kind
        if portal is None or kind is None or kind.sort is not Sort.SQL:
            return False
        if frames.take(messages.DESCRIBE_AND_RUN):
            self._describe(portal.description)
        elif not frames.take(messages.RUN):
            return False
        self.waiting = "", portal, 0
        return True

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

    def run_waiting(self, *, alone: bool) -> Waits[None]:
        """Execute what waits. If it is not alone, it is part of a transaction."""
        assert self.waiting is not None
        (name, portal, most), self.waiting = self.waiting, None
        return self._run(name, portal, most, alone=alone)

    def sync(self) -> Waits[None]:
        """Run what waits, and end the transaction of the messages before."""
        block = self._state.block
        if self.waiting is not None:
            yield from self.run_waiting(alone=block.transaction is None)
        if block.transaction is not None and block.is_implicit:
            yield from self._executing.commit()
        if block.transaction is None:
            self._executing.close_portals()

    def _run(self, name: str, portal: Portal, most: int, *, alone: bool) -> Waits[None]:
        state, executing, prepared = self._state, self._executing, portal.prepared
        kind, block = prepared.kind, state.block
        if kind is None:
            state.out += messages.NO_QUERY
            return
        stands_alone = alone or kind.sort is Sort.COPY or portal.running is not None
        steps = admitted(
            executing, kind, prepared.text.sql, in_block=not stands_alone, commits=False
        )
        if not (yield from steps):
            return
        if portal.running is None and not portal.has_ended:
            portal.running = yield from start(state, portal.statement)
            if block.transaction is not None and not portal.running.stream.ended:
                executing.begun(name, portal)
        elif portal.running is not None:
            state.request = portal.running.stream.begin_again()
        yield from self._send(name, portal, most)

    def _send(self, name: str, portal: Portal, most: int) -> Waits[None]:
        state, prepared, running = self._state, portal.prepared, portal.running
        rows, affected, tag = 0, 0, prepared.tag
        if running is not None:  # otherwise it has ended before
            if prepared.columns is None:
                rows = yield from running.skip()
            else:
                rows = yield from running.send(state, portal.writer(running), most)
                if most and rows == most:
                    state.out += messages.SUSPENDED
                    return
            affected, tag = running.stream.affected_rows, running.stream.tag or tag
            portal.close()
            portal.has_ended = True
            self._executing.session.portals.pop(name, None)
        end(state, tag, rows, affected)
