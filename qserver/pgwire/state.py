"""The state of a session, and what all of its messages need of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import inf
from time import monotonic
from typing import Final

import msgspec

from qserver.control.databases import OpenDatabase
from qserver.control.owners import OwnedElsewhere
from qserver.control.rates import Uncounted
from qserver.control.records import Grant
from qserver.engine.turns import OWNER
from qserver.errors import (
    Forbidden,
    InvalidAuthorization,
    NotFound,
    QserverError,
    SessionEnded,
    Unauthorized,
)
from qserver.limits import RETRIES_DEFAULT
from qserver.pgwire.host import Host
from qserver.pgwire.limits import OUTPUT_BYTES_MAX
from qserver.pgwire.messages import Frame, Frames, notification
from qserver.pgwire.problems import notice
from qserver.pgwire.settings import SessionSettings
from qserver.pgwire.transactions import Block
from qserver.pgwire.waits import INPUT, OUTPUT, Fatal, Waits
from qserver.query.request import Request
from qserver.query.results import RunOptions
from qserver.query.server_facts import SessionActivity
from qserver.storage.snapshot import Snapshot
from qserver.values.notices import Notice

INPUT_HELD_MIN: Final = 64 * 1024
"""Shorter messages are not counted as memory."""


class Credentials(msgspec.Struct, frozen=True):
    """By what a session was let in: a key that was sent, or one that was proved."""

    token: str | None = None
    key_id: str | None = None


class State:
    """One for each session."""

    def __init__(
        self, host: Host, number: int, secret: int, client: str, ended: Callable[[], None]
    ) -> None:
        """`client` is the address; `ended` wakes the session, so that it ends."""
        self.host = host
        self.number = number
        """By which a client names the session when it cancels a statement."""
        self.secret = secret
        self.client = client
        self.is_private = False
        """Whether nobody can read along: over TLS, or on this machine."""
        self.is_tls = False
        self.frames = Frames()
        self.out = bytearray()
        self.settings = SessionSettings()
        self.user = ""
        self.startup: dict[str, str] = {}
        self.credentials = Credentials()
        self.grant: Grant | None = None
        self.database = ""
        """The id of the database."""
        self._end = ended
        self.block = Block(host.plane.open_transactions, ended)
        self.request: Request | None = None
        """The statement that runs, and can be cancelled."""
        self.query = ""
        """The text of the statement that runs, or of the last one."""
        self.was_canceled = False
        self.ending: QserverError | None = None
        """Why the session ends, as soon as it can."""
        self._moment: Snapshot | None = None
        """What stood for all that is allowed when the client was last looked at, see `Access`."""
        self._options: RunOptions | None = None
        """How statements run, as long as the grant is the same."""
        self.input_held = 0
        """Bytes of long messages that count as memory."""
        self._entered = ""
        self._disconnect: Callable[[], None] | None = None
        self._heard: OpenDatabase | None = None
        """The database, for as long as the session listens: it stays open."""
        self.told: Callable[[], None] = lambda: None
        """Called when there is a notification for the client."""

    # --- bytes ---

    def hold_input(self) -> None:
        """Count long messages that have begun to arrive as memory of the organization."""
        size = len(self.frames)
        size = size if size > INPUT_HELD_MIN else 0
        if self.grant is not None and size != self.input_held:
            pool = self.grant.share.bodies
            pool.give_back(self.input_held)
            self.input_held = 0
            pool.take(size)
            self.input_held = size

    def frame(self) -> Waits[Frame]:
        """Wait for the next message."""
        while (frame := self.frames.next()) is None:
            yield INPUT
        if self.input_held:
            self.hold_input()
        return frame

    def flushed(self) -> Waits[float]:
        """Wait until the client has read what there is for it; return for how long."""
        began = monotonic()
        yield OUTPUT
        return monotonic() - began

    # --- who the client is, and what it may do ---

    def enter(self, grant: Grant) -> None:
        """Count the session as one of its organization."""
        self.grant, self._entered, self._options = grant, grant.organization_id, None
        self.host.connections[self._entered] += 1
        self.frames.is_known = True

    def admit(self) -> Waits[None]:
        """Look whether the client may still do anything, and count a request."""
        grant = yield from self.check()
        self._take_part(grant)
        if not grant.is_unlimited:
            try:
                self.host.plane.take_request(grant)
            except Uncounted:
                yield partial(self.host.plane.take_request_later, grant)

    def admit_nowait(self) -> bool:
        """Do the same, if nothing has to be looked up or counted for that."""
        token, grant = self.credentials.token, self.grant
        if token is None or grant is None or not grant.is_unlimited:
            return False
        if self.host.plane.grant_nowait(token) is not grant:
            return False
        self._take_part(grant)
        return True

    def use_nowait(self) -> OpenDatabase | None:
        """Admit a statement, and return the open database, which its caller releases.

        None if anything has to be looked up for that; then nothing is counted either.
        """
        plane = self.host.plane
        moment = plane.moment_nowait()
        if moment is not None and moment is self._moment:  # then all is as it was
            opened = plane.databases.use_nowait(self.database)
        else:
            opened = self._checked_nowait(moment)
        if opened is None:
            return None
        try:
            if self.join_nowait():
                return opened
        except BaseException:
            opened.release()
            raise
        opened.release()
        return None

    def join_nowait(self) -> bool:
        """Count a statement of a client that is allowed it; False if that has to wait."""
        grant = self.grant
        if grant is None:
            return False
        share = grant.share
        if OWNER.get() is not share.turns:
            OWNER.set(share.turns)
        if share.connections >= share.limits.connections:
            share.check_connections()
        if not grant.is_unlimited:
            try:
                self.host.plane.take_request(grant)
            except Uncounted:
                return False
        return True

    def opened_nowait(self) -> OpenDatabase | None:
        """Return the open database, which its caller releases, if that needs no look at all."""
        plane, moment = self.host.plane, self._moment
        if moment is None or plane.moment_nowait() is not moment:
            return None
        return plane.databases.use_nowait(self.database)

    def _checked_nowait(self, moment: Snapshot | None) -> OpenDatabase | None:
        """Return the open database, if the client is known to be still allowed to use it."""
        plane, grant, credentials = self.host.plane, self.grant, self.credentials
        if credentials.token is not None:
            known = plane.grant_nowait(credentials.token)
        else:
            known = plane.access.grant_of_key_nowait(credentials.key_id or "")
        if grant is None or known is not grant:
            return None
        opened = self.database_nowait()
        if opened is not None:
            self._moment = moment if grant.expires_at == inf else None
        return opened

    def own_task(self) -> None:
        """Have what the present task does count as work of the organization."""
        grant = self.grant
        if grant is not None and OWNER.get() is not grant.share.turns:
            OWNER.set(grant.share.turns)

    def _take_part(self, grant: Grant) -> None:
        """Count as one of the organization's, which may have too much under way."""
        share = grant.share
        self.own_task()
        if share.connections >= share.limits.connections:
            share.check_connections()

    def check(self) -> Waits[Grant]:
        """Look whether the client may still do anything; the session ends if it may not."""
        plane, before, credentials = self.host.plane, self.grant, self.credentials
        assert before is not None, "it has entered"
        if credentials.token is not None:
            grant = plane.grant_nowait(credentials.token)
        else:
            grant = plane.access.grant_of_key_nowait(credentials.key_id or "")
        if grant is not before:
            if grant is None:
                grant = yield from self.authenticated()
            if grant.organization_id != before.organization_id or grant.statements is not None:
                raise Fatal(InvalidAuthorization("the key has no SQL any more"))
            self.grant, self._options = grant, None
        return grant

    def authenticated(self) -> Waits[Grant]:
        """Look up what the client may do; it ends if that is nothing any more."""
        plane, credentials = self.host.plane, self.credentials
        try:
            if credentials.token is not None:
                grant: Grant = yield partial(plane.authenticate, credentials.token)
            else:
                grant = yield partial(plane.access.authenticate_key, credentials.key_id or "")
        except Unauthorized as error:
            raise Fatal(InvalidAuthorization(error.message, hint=error.hint)) from error
        return grant

    def database_nowait(self) -> OpenDatabase | None:
        """Return the database if it is open here; its caller releases it."""
        assert self.grant is not None
        try:
            return self.host.plane.database_nowait(self.grant, self.database)
        except OwnedElsewhere:
            return None

    def find_database(self) -> Waits[OpenDatabase]:
        """Find the database; its caller releases it."""
        grant = self.grant
        assert grant is not None
        opened = self.database_nowait()
        if opened is not None:
            return opened
        try:
            found: OpenDatabase = yield partial(self.host.plane.database, grant, self.database)
            return found
        except OwnedElsewhere as elsewhere:
            raise Fatal(
                SessionEnded("another process serves the database now", hint="Connect again.")
            ) from elsewhere
        except (NotFound, Forbidden) as error:
            raise Fatal(error) from error

    # --- notifications ---

    def may_listen(self) -> None:
        """Give the session its number, by which others know it, and somebody to tell."""
        session = self.settings.session
        session.number, session.told = self.number, self._was_told

    def _was_told(self) -> None:
        self.told()

    def hold_heard(self) -> None:
        """Keep the database open while the session listens to it."""
        listening = self.settings.session.listening
        if listening is not None and listening.committed:
            if self._heard is None:
                self._heard = self.database_nowait()
        elif self._heard is not None:
            self._heard.release()
            self._heard = None

    def tell(self) -> bool:
        """Write notifications, if the client may get them now; return whether there were any.

        It is between transactions then. The listener has ended if it was too slow.
        """
        listening = self.settings.session.listening
        if listening is None or self.block.transaction is not None:
            return False
        listener, out = listening.listener, self.out
        if listener.ended is not None and self.ending is None:
            self.ending = listener.ended
        before = len(out)
        while len(out) < OUTPUT_BYTES_MAX and (heard := listener.take()) is not None:
            out += notification(heard.sender, heard.channel, heard.payload)
        return len(out) > before

    # --- notices ---

    def warn(self, code: str, text: str) -> None:
        self.tell_notice(Notice("WARNING", code, text))

    def tell_notices(self) -> None:
        """Tell what the statement has to say beside its answer."""
        request = self.request
        if request is not None and request.notices is not None:
            for each in request.notices:
                self.tell_notice(each)
            request.notices = None

    def tell_notice(self, what: Notice) -> None:
        """Write a notice, unless the client does not want to see such."""
        least = self.settings.session.settings.value("client_min_messages")
        if what.is_wanted(least):
            self.out += notice(what)

    # --- how statements run ---

    def options(self) -> RunOptions:
        """Return how statements run: by what the key and the session's settings say now."""
        if self._options is not None:
            return self._options
        grant, session = self.grant, self.settings.session
        assert grant is not None
        limits, asked = grant.limits, self.settings.statement_timeout_ms
        timeout = limits.statement_timeout_ms if asked is None else asked
        timeout = min(timeout, limits.statement_timeout_max_ms)
        allowed = grant.allowed()
        limits_of_all = RETRIES_DEFAULT, timeout, None, None
        self._options = RunOptions(*limits_of_all, allowed, session=session)
        return self._options

    def options_inside(self) -> RunOptions:
        """Return the same for a statement of the session's transaction."""
        options, transaction = self.options(), self.block.transaction
        if transaction is None or not transaction.read_only:
            return options
        allowed = msgspec.structs.replace(options.allowed, read_only=True)
        return msgspec.structs.replace(options, allowed=allowed)

    def cancel(self) -> None:
        """Cancel the statement that runs, if one does."""
        if self.request is not None:
            self.was_canceled = True
            self.request.cancel()

    # --- what others see --------------------------------------------------------------------------

    def connect(self, database_id: str) -> None:
        """Be one of the sessions of a database."""
        self.database = database_id
        self._disconnect = self.host.plane.databases.connect(database_id, self.number, self)

    def activity(self) -> SessionActivity:
        request, block = self.request, self.block
        if request is not None:
            state = "active"
        elif block.transaction is None:
            state = "idle"
        else:
            failed = block.transaction.failed
            state = f"idle in transaction{' (aborted)' if failed else ''}"
        name = self.settings.session.settings.value("application_name")
        began = None if request is None else request.time
        grant = self.grant
        whose = ("", None) if grant is None else (grant.key_id, grant.session_id)
        return SessionActivity(state, self.query, began, name, self.client, self.is_tls, *whose)

    def terminate(self) -> None:
        """End the session, and the statement that runs."""
        self._end()
        self.cancel()

    def close(self) -> None:
        """Release what the session holds."""
        self.block.roll_back()
        if self._disconnect is not None:
            self._disconnect()
            self._disconnect = None
        if self._heard is not None:
            self._heard.release()
            self._heard = None
        if self._entered:
            self.host.connections[self._entered] -= 1
            self._entered = ""
        if self.grant is not None:
            self.grant.share.bodies.give_back(self.input_held)
            self.input_held = 0
