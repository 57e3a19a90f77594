"""Round trips that come again: Bind to Sync of a prepared read, with other values.

    Bind   head: portal, statement, formats, count │ values │ tail: formats of the results
    rest   Describe, Execute, Sync: what most drivers send behind it

The first one goes the way of single messages, and leaves what is the same each time: how a value
becomes what the plan runs with, the plan, what writes the rows, what is answered before them. The
next ones are recognized by their bytes, and begin there. Whatever is unusual about one, or has
changed since the last, sends it the way of single messages again, which alone raises errors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct, error
from typing import Any, Final, TypeAlias

import msgspec

from qserver.errors import QserverError
from qserver.pgwire import messages
from qserver.pgwire.executing import Executing
from qserver.pgwire.messages import Around, Frames, text_of
from qserver.pgwire.prepared import Prepared
from qserver.pgwire.rows import BINARY, RowWriter, formats_of
from qserver.pgwire.running import Begun
from qserver.pgwire.text_format import Reader, integer_reader
from qserver.query.named_statement import NamedStatement
from qserver.query.plan_cache import CachedPlan
from qserver.query.prepared_statement import PreparedStatement
from qserver.query.settings.values import Settings
from qserver.values.types import INTEGER_KINDS

ROUND_TRIPS_KEPT: Final = 64
"""Of a session: clients repeat a few statements."""
BYTES_MOST: Final = 4096
"""Longer messages go the way of single ones: their values may have to be read in steps."""
Noted: TypeAlias = tuple[Prepared, Around, bytes]
"""A statement, what its Bind had around the values, the rest."""
_size = Struct("!i").unpack_from


class RoundTrip(msgspec.Struct, eq=False):
    """What is the same each time."""

    head: bytes
    tail: bytes
    rest: bytes
    prepared: Prepared
    named: NamedStatement | None
    """The statement of the session, if it has a name."""
    plan: CachedPlan
    settings: Settings
    """Those of the session when the plan was found."""
    readers: Sequence[tuple[str, Reader]]
    """What makes the value of each slot of the plan."""
    literals: Any
    writer: RowWriter
    answer: bytes
    """What precedes the rows."""

    def slots(self, body: bytes) -> Any:
        """Return what the plan runs with; None if anything is unusual."""
        at = len(self.head)
        if not self.readers:
            return self.literals if body[at:] == self.tail else None
        slots: dict[Any, Any] = self.literals.copy()
        try:
            for slot, read in self.readers:
                (size,) = _size(body, at)
                at += 4
                if size >= 0:
                    end = at + size
                    slots[slot] = read(body[at:end])
                    at = end
                elif size == -1:
                    slots[slot] = None
                else:
                    return None
        except (QserverError, error):
            return None
        return slots if body[at:] == self.tail else None


class RoundTrips:
    """Those of a session, by the names of their statements."""

    def __init__(self, executing: Executing) -> None:
        self._executing = executing
        self._state = executing.state
        self._kept: dict[bytes, RoundTrip] = {}
        self._last: RoundTrip | None = None
        self._noted: Noted | None = None

    def begin(self, body: bytes, frames: Frames) -> tuple[RoundTrip, Begun] | None:
        """Begin one that comes again, take its messages, and answer what precedes its rows."""
        trip = self._last
        if trip is None or not body.startswith(trip.head):
            trip = self._find(body)
        if trip is None or len(body) > BYTES_MOST or not frames.follows(trip.rest):
            return None
        state, executing = self._state, self._executing
        slots, session = trip.slots(body), executing.session
        if (
            slots is None
            or session.settings is not trip.settings
            or session.temporary is not None
            or state.block.transaction is not None
            or executing.has_portals
            or not executing.has(trip.prepared, trip.named)
        ):
            return None
        opened = state.opened_nowait()
        if opened is None:
            return None
        text = trip.prepared.text
        found = PreparedStatement(text.sql, None, text.parameterized, trip.plan, slots)
        try:
            beginning = opened.sql.beginnings.begin_again(found, state.options())
            if beginning is None or not state.join_nowait():
                opened.release()
                return None
        except BaseException:
            opened.release()
            raise
        frames.skip(trip.rest)
        state.query = text.sql
        state.out += trip.answer
        return trip, Begun(opened, beginning)

    def _find(self, body: bytes) -> RoundTrip | None:
        end = body.find(0, 1)
        trip = self._kept.get(body[1:end]) if body[:1] == b"\0" else None
        if trip is None or not body.startswith(trip.head):
            return None
        self._last = trip
        return trip

    def note(self, prepared: Prepared, rest: bytes) -> None:
        """Note by what a read is asked for that has run before: it may come again."""
        around = self._executing.binds.around
        if prepared.has_run and around is not None:
            self._noted = prepared, around, rest
        prepared.has_run = True

    def keep(self, prepared: Prepared) -> None:
        """Keep what is the same each time of the read that was noted: now its plan is known."""
        noted, self._noted = self._noted, None
        if noted is None or noted[0] is not prepared:
            return
        _, around, rest = noted
        session = self._executing.session
        plan, parameterized = prepared.plan_in(session), prepared.text.parameterized
        if plan is None or parameterized is None:
            return
        literals, writer = parameterized.literals, prepared.writer(around.result_formats)
        if len(self._kept) >= ROUND_TRIPS_KEPT:
            self._kept.clear()
        description = writer.description if rest is messages.DESCRIBE_AND_RUN else b""
        name = prepared.name
        self._kept[name.encode()] = self._last = RoundTrip(
            around.head,
            around.tail,
            rest,
            prepared,
            session.statements.get(name) if name else None,
            plan,
            session.settings,
            _slot_readers(prepared, plan, around.formats),
            literals if plan.parameters is None else dict(enumerate(literals)),
            writer,
            messages.BOUND + description,
        )


def _slot_readers(
    prepared: Prepared, plan: CachedPlan, formats: tuple[int, ...]
) -> list[tuple[str, Reader]]:
    """Return what makes the value of each parameter, and the slot that it goes to."""
    if plan.parameters is None:
        return []
    each = formats_of(formats, len(prepared.parameters), "parameter")
    about = zip(
        prepared.readers(formats), each, plan.parameters.converters, plan.parameters.types,
        prepared.parameters, strict=True,
    )  # fmt: skip
    found: list[tuple[str, Reader]] = []
    for read, form, (slot, convert), wanted, told in about:
        if wanted.kind not in INTEGER_KINDS or wanted != told:
            made = _converted(read, convert)
        elif form == BINARY:
            made = read
        else:
            made = integer_reader(wanted.kind, _converted(text_of, convert))
        found.append((slot, made))
    return found


def _converted(read: Reader, convert: Callable[[Any], Any]) -> Reader:
    return lambda data: convert(read(data))
