"""One client's connection: a state machine (see `state`), and a task for the steps that wait.

    bytes arrive ─► a whole request? ─► endpoint.handle ─┬─ Response   sent at once
                                                         ├─ PENDING    `respond` sends it
                                                         ├─ coroutine  the task awaits it
                                                         ├─ Elsewhere  another process serves it
                                                         └─ Upgrade    another protocol follows

Every step that does not wait is a plain call, made by the holder of the bytes or the answer: the
task, the reactor (bytes have arrived), or the caller of `respond`. In IDLE, HEAD, BODY and PENDING
the task has nothing to do; every other state wakes it.

A connection serves its requests one after the other, so answers leave in order, and yields to other
tasks between two of them. Only a task that waits for a head can be interrupted (`end_if_idle`,
`end_if_late`), never one that serves a request.
"""

from __future__ import annotations

import traceback
from collections.abc import Coroutine
from time import monotonic
from typing import Any

import trio

from qserver.http1.addresses import network_of
from qserver.http1.answer import CONTINUE, MarkedRenderer, is_bodiless
from qserver.http1.application import PENDING, Answer, Client, Elsewhere, Response, Upgrade
from qserver.http1.context import ServerContext
from qserver.http1.errors import AnswerCut, ClientGone, InvalidAnswer, is_only
from qserver.http1.head import END_OF_HEAD, Head, check_beginning, head_of
from qserver.http1.incoming import ArrivingBody
from qserver.http1.leaving import close_unstarted, leave, see_out
from qserver.http1.moving import FORWARD_BYTES_MAX, Moved, Visits
from qserver.http1.parts import PartsSender
from qserver.http1.refusal import Refusal, new_request_id, refusal_response
from qserver.http1.state import Phase
from qserver.http1.transport import Transport
from qserver.limits import RECEIVE_BYTES

CLIENT_LEFT = 499
"""The access log's status for a client that left before its answer."""

CR = ord("\r")
NOTHING = memoryview(b"")
# Globals, for fast lookup:
IDLE, HEAD, BODY = Phase.IDLE, Phase.HEAD, Phase.BODY
HANDLING, WAITS = Phase.HANDLING, Phase.PENDING
ARRIVING = (IDLE, HEAD, BODY)


class Connection:
    """The state of one connection; `run` serves it."""

    def __init__(self, context: ServerContext, transport: Transport, client: Client) -> None:
        self.context = context
        self.transport = transport
        self._renderer = context.renderer
        self.buffer = b""
        """Bytes that have arrived and belong to no request yet."""
        self.state = Phase.OPENING
        self._client = client
        self.address = network_of(client[0]) if client else ""
        """By which connections are counted."""
        self._interruption = trio.CancelScope()
        self._began = monotonic()
        """When the request began to arrive, or the wait for it."""
        self._answered_count, self._visits = 0, Visits()
        # What states carry:
        self._head: Head | None = None
        """From HANDLING on: the request's head."""
        self._body: ArrivingBody | None = None
        """From HANDLING on: the request's body, if it had not arrived whole."""
        self._raw = b""
        """From HANDLING on, if the answer did not come at once: what began with the request. A
        connection that rests lets it go when it is looked at next (`end_if_late`)."""
        self._leaves_by: Elsewhere | Upgrade
        """In LEAVING: where the request is served, or how the client is served from now on."""
        self._owed: Response | Coroutine[Any, Any, Answer] | None = None
        """In HANDLING: the coroutine to await, or the answer to send in parts."""
        self._serving: trio.CancelScope | None = None
        """In HANDLING: the wait for the coroutine."""
        self._has_probed = False
        """In HANDLING: the client was sent something, to find out whether it is there."""
        self._responded: trio.Event | None = None
        """In PENDING: `respond` sets it if the task waits."""
        self._unsent = NOTHING
        """In SENDING: bytes that the kernel has not taken."""
        self._then = IDLE
        """In SENDING: the state that follows."""

    def __repr__(self) -> str:
        client = f"{self._client[0]}:{self._client[1]}" if self._client else "somebody"
        return f"<connection of {client}, who {self.state.value}, {len(self.buffer)} bytes at hand>"

    def _move(self, state: Phase) -> None:
        assert state in self.state.followers, f"{state} cannot follow {self.state}"
        self.state = state

    def arrive(self, moved: Moved) -> None:
        """Go on with a connection of another process, before it is run."""
        self.buffer = moved.data
        if moved.marks is not None:
            self._renderer = MarkedRenderer(moved.marks)

    # --- the task ---------------------------------------------------------------------------------

    async def run(self, refused: Response | None = None) -> None:
        """Serve until the end; or refuse a request so. Raises nothing but cancellation."""
        try:
            await self._live(refused)
        except Exception:
            self.context.report(f"{self!r} failed:\n{traceback.format_exc()}")
        finally:
            self.context.remove(self)

    async def turn_away(self, refusal: Refusal) -> None:
        """Serve a connection that exceeds the limit: refuse it and close."""
        await self._live(refusal)

    async def _live(self, refusal: Refusal | Response | None) -> None:
        try:
            await self.transport.open()
            self._move(IDLE)
            reactor = self.context.reactor
            if self.buffer and reactor is not None:  # served before it waits: its end counts, too
                reactor.watch(self.transport.descriptor)
            if refusal is not None:
                if END_OF_HEAD in self.buffer:
                    self._head = self.context.heads.find(head_of(self.buffer))[0]
                self._refuse(refusal)
            while self.state is not Phase.CLOSED:
                await self._go_on()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass  # the client left
        finally:
            self.state = Phase.CLOSED  # from any state: `respond` now returns False
            if self.context.reactor is not None:
                self.context.reactor.forget(self.transport.descriptor)
            self.transport.close()
            owed, self._owed = self._owed, None
            await close_unstarted(owed)

    async def _go_on(self) -> None:
        match self.state:
            case Phase.IDLE | Phase.HEAD | Phase.BODY:
                if self.buffer and self._begin():
                    # A client that sends many requests at once must not starve others.
                    await trio.lowlevel.checkpoint()
                else:
                    await self._wait_for_more()
            case Phase.HANDLING:
                await self._finish()
            case Phase.PENDING:
                await self._wait_for_response()
            case Phase.SENDING:
                await self.transport.send_all(self._unsent, self.context.options.send_seconds)
                self._unsent = NOTHING
                self._answered(self._then, monotonic())
            case Phase.SKIPPING:
                await self._skip_body()
            case Phase.LEAVING:
                await self._give_away()
            case Phase.LINGERING:
                await see_out(self.transport, self.context.options.linger_seconds)
                self._move(Phase.CLOSED)

    def _has_work(self) -> bool:
        state = self.state
        if state is IDLE:
            return bool(self.buffer)
        return state is not WAITS and state is not HEAD and state is not BODY

    # --- arrival ----------------------------------------------------------------------------------

    async def _wait_for_more(self) -> None:
        reactor = self.context.reactor
        if self.context.draining and not self.buffer:
            self._received(await self.transport.look() or b"")
            return
        with trio.CancelScope() as self._interruption:
            if reactor is not None and self.transport.may_be_watched:
                await reactor.wait(self.transport.descriptor, self._readable)
            else:
                self._received(await self.transport.receive())
        if not self._interruption.cancel_called or self.state not in ARRIVING:
            return
        if self.state is BODY:
            self._begin(may_wait=False)
        else:
            await self._look_once_more()

    def end_if_idle(self) -> None:
        """End it if it rests; a body that is waited for is read by who handles the request."""
        if self.state is BODY or (self.state is IDLE and not self.buffer):
            self._interruption.cancel()

    def end_if_rests(self) -> bool:
        """End it to make room for another, unless it serves a request; False: it goes on."""
        interruption = self._interruption
        if self.state not in (IDLE, HEAD) or interruption.cancel_called:
            return False
        interruption.cancel()
        return True

    def end_if_late(self, now: float) -> bool:
        """End a connection whose time is over, or whose client is gone. True: it did look."""
        options, state = self.context.options, self.state
        rests = state is IDLE and not self.buffer and self._answered_count > 0
        seconds = options.idle_seconds if rests else options.header_seconds
        if state is HANDLING:
            return self._end_if_gone()
        if rests:
            self._raw = b""
        is_late = state is BODY or (now > self._began + seconds and state in ARRIVING)
        if is_late:
            self._interruption.cancel()
        return is_late

    def _end_if_gone(self) -> bool:
        """End the wait for an answer whose client is gone.

        The end of input may mean that, or only that no more requests follow. So something is sent,
        and the next time one knows: a client that has left resets the connection.
        """
        serving, reactor, head = self._serving, self.context.reactor, self._head
        body_is_there = self._body is None or self._body.complete
        if serving is None or reactor is None or head is None or not body_is_there:
            return False
        if not (head.modern and reactor.has_ended(self.transport.descriptor)):
            return False
        try:
            if not self._has_probed:
                self._has_probed = self.transport.try_send(CONTINUE) > 0
            elif self.transport.has_left():
                serving.cancel()
        except OSError:
            serving.cancel()
        return True

    async def _look_once_more(self) -> None:
        """After an interruption: did a request begin to arrive at the last moment?"""
        begun = bool(self.buffer)
        data = await self.transport.look()
        if data:
            self._received(data)
        if data == b"" or not self.buffer:
            self._move(Phase.CLOSED)
        elif begun and END_OF_HEAD not in self.buffer:
            self._refuse(Refusal(408, "the head of the request did not come in time"))

    def _readable(self) -> bool:
        """Handle an arrival while the task waits. False: all is done, and the task waits on."""
        if self.state is WAITS:
            self._mark()  # read after the answer
            return True
        data = self.transport.try_receive()
        if data is None:
            return False
        size = len(data)
        if size >= RECEIVE_BYTES:
            self._mark()
        if size == 0 or self.buffer:
            self._received(data)
        else:  # the common case
            self.context.counters.bytes_in += size
            self.buffer, self._began = data, monotonic()
        if size:
            self._begin()
        return (self.state is not IDLE or self.buffer != b"") and self._has_work()

    def _mark(self) -> None:
        """There may be more to read, of which the reactor will not tell."""
        assert self.context.reactor is not None, "it has told of an arrival"
        self.context.reactor.mark(self.transport.descriptor)

    def _received(self, data: bytes) -> None:
        """Take bytes for the next request; b"" is the end of input."""
        if not data:
            if self.state is BODY:
                self._begin(may_wait=False)  # who handles the request learns that the client left
            else:
                self._move(Phase.CLOSED)
            return
        self.context.counters.bytes_in += len(data)
        if self.buffer:
            self.buffer += data
            return
        self.buffer = data
        self._began = monotonic()

    def _has_more(self) -> bool:
        """Has another request begun to arrive?"""
        if not self.buffer:
            data = self.transport.try_receive()
            if data:
                self.context.counters.bytes_in += len(data)
                self.buffer = data
        return bool(self.buffer) or self.transport.may_have_more()

    # --- a request --------------------------------------------------------------------------------

    def _begin(self, may_wait: bool = True) -> bool:
        """Serve the next request as far as possible without waiting. False: no whole head yet, or
        a short body is on its way."""
        context, buffer = self.context, self.buffer
        if buffer[0] == CR and self.state is IDLE and buffer[:2] == b"\r\n":
            self._move(HEAD)  # HTTP advises to ignore one empty line; in HEAD a second is an error
            buffer = self.buffer = buffer[2:]
        end = buffer.find(END_OF_HEAD) + 4  # the head includes its end mark
        try:
            if end < 4:
                self._check_beginning()
                return False
            assert HANDLING in self.state.followers
            self.state = HANDLING
            raw, length = buffer[:end], len(buffer)
            head, endpoint = context.heads.kept.get(raw) or context.heads.find(raw)
            self._head = head
            stop = length + 1 if head.length is None else end + head.length
            if length < stop <= RECEIVE_BYTES and may_wait and self._may_wait_for(head):
                self._move(BODY)
                return False
            body: bytes | ArrivingBody
            if stop <= length:
                body, self.buffer = buffer[end:stop], buffer[stop:]
            else:
                self.buffer = buffer[end:]
                body = self._body = ArrivingBody(self, head)
                if body.complete:
                    body = body.arrived
            context.counters.requests += 1
            self._take(endpoint.handle(body, self._client, self.respond, head.values), buffer)
        except Refusal as refusal:
            self._refuse(refusal)
        except Exception as error:
            self._failed(error)
        return True

    def _may_wait_for(self, head: Head) -> bool:
        """Whether the body will come without a word from here, and the wait has an end."""
        return head.length is not None and not (head.expects_continue or self.context.draining)

    def _check_beginning(self) -> None:
        if self.buffer:
            check_beginning(self.buffer, self.context.options)
        if self.state is IDLE and self.buffer not in (b"", b"\r"):
            self._move(HEAD)

    def _take(self, answer: Answer, raw: bytes) -> None:
        """Take the answer to the request that `raw` begins with."""
        if isinstance(answer, Response):
            body, head = answer.body, self._head
            assert head is not None
            if not isinstance(body, bytes):
                self._owed = answer
            elif head.keep_alive and self._body is None and not self.context.draining:
                self._send(head, answer, body, True, IDLE)  # the common case
            else:
                keep_alive = head.keep_alive and self._may_keep_alive()
                self._send(head, answer, body, keep_alive, self._after(keep_alive))
        elif answer is PENDING:
            self._move(WAITS)
            self._raw = raw
        elif isinstance(answer, Coroutine):
            self._raw = raw
            self._owed = answer
        elif isinstance(answer, Elsewhere):
            self._pass_on(answer, raw)
        elif isinstance(answer, Upgrade):
            self._log(self._head, self._began, 101, 0, answer.request_id)
            self._leaves_by = answer
            self._move(Phase.LEAVING)
        else:
            raise InvalidAnswer(f"{answer!r} is no answer")

    def _pass_on(self, elsewhere: Elsewhere, raw: bytes) -> None:
        """Have another process serve the request: forward it, or move with it."""
        mover, process = self.context.mover, elsewhere.process
        if mover is None:
            raise InvalidAnswer(f"there is no process {process} beside this one")
        self.context.counters.requests -= 1  # the other process counts it
        size = len(raw) - len(self.buffer)
        is_visit = self._visits.next(elsewhere, self._answered_count, mover.visits_in_row)
        if is_visit and self._body is None and size <= FORWARD_BYTES_MAX:
            self._owed = mover.forward(elsewhere, raw[:size], self._client)
        else:
            self._leave(elsewhere, raw)

    def _leave(self, elsewhere: Elsewhere, raw: bytes) -> None:
        """Put the request back into the buffer; the task gives it to its owner."""
        body = self._body
        if body is not None and body.refusal is not None:
            self._answer_refusal(body.refusal)
            return
        data = raw if body is None else body.as_received(raw)
        assert data.endswith(self.buffer), "all that was received goes, too"
        self.buffer, self._leaves_by = data, elsewhere
        self._move(Phase.LEAVING)

    async def _give_away(self) -> None:
        data, self.buffer, self._raw, self._body = self.buffer, b"", b"", None
        await leave(self.context, self.transport, self._leaves_by, self._client, data)
        self._end()

    def respond(self, answer: Answer) -> bool:
        """Take the pending answer. A failure ends this connection and does not reach the caller."""
        if self.state is not Phase.PENDING:
            assert self.state is Phase.CLOSED, "an answer is given once, to a request that waits"
            return False
        self._move(HANDLING)
        try:
            self._take(answer, self._raw)
        except Exception as error:
            self._failed(error)
        if self._responded is not None:
            self._responded.set()
        elif self.context.reactor is not None and (self.context.draining or self._has_work()):
            self.context.reactor.wake(self.transport.descriptor)
        return True

    async def _wait_for_response(self) -> None:
        self._responded = trio.Event()
        try:
            await self._responded.wait()
        finally:
            self._responded = None

    async def _finish(self) -> None:
        """Await the coroutine that `handle` returned, or send an answer's parts."""
        owed, self._owed = self._owed, None
        assert owed is not None, "a request is served by its endpoint, or there is something owed"
        try:
            if isinstance(owed, Response):
                await self._send_parts(owed)
            else:
                self._take(await self._served(owed), self._raw)
        except Exception as error:
            self._failed(error)

    async def _served(self, owed: Coroutine[Any, Any, Answer]) -> Answer:
        """Await an answer. Raises ClientGone if the client leaves before."""
        self._has_probed = False
        with trio.CancelScope() as self._serving:
            try:
                return await owed
            finally:
                self._serving = None
        raise ClientGone("the client is gone")

    def _failed(self, error: Exception) -> None:
        """End a request without its answer: the client is gone, or the application has a bug."""
        head = self._head
        if is_only(error, AnswerCut):
            self._end()
            return
        if is_only(error, ClientGone):
            if self._body is not None and self._body.refusal is not None:
                self._answer_refusal(self._body.refusal)
                return
            if self.state is HANDLING:
                self._log(head, self._began, CLIENT_LEFT, 0, None)
            self._end()
            return
        request_id = (head and head.request_id) or new_request_id()
        logged = head.logged if head else "- -"
        lines = "".join(traceback.format_exception(error))
        self.context.report(f"request {request_id} ({logged}) failed:\n{lines}")
        if self.state is HANDLING:
            mistake = Refusal(500, "the server made a mistake, which has been noted")
            self._refuse(mistake, request_id)
        else:
            self._end()

    async def _skip_body(self) -> None:
        """Read and drop an unread body, to reach the next request."""
        assert self._body is not None
        try:
            while not self._body.complete:
                await self._body.receive()
        except ClientGone:
            self._move(Phase.CLOSED)
        except Refusal:
            self._move(Phase.LINGERING)  # the client has its answer
        else:
            self._answered(IDLE, monotonic())

    # --- answers ----------------------------------------------------------------------------------

    def _send(
        self, head: Head | None, response: Response, body: bytes, keep_alive: bool, then: Phase
    ) -> None:
        """Send a whole answer; the task sends what the kernel does not take now."""
        context, began, now = self.context, self._began, monotonic()
        data = self._renderer.render(response, body, head, keep_alive, now)
        try:
            sent = self.transport.try_send(data)
        except OSError:
            self._move(Phase.CLOSED)  # the client is gone
        else:
            size = len(data)
            context.counters.bytes_out += size
            if sent == size:
                self._answered(then, now)
            else:
                self._unsent, self._then = memoryview(data)[sent:], then
                self._move(Phase.SENDING)
        if context.options.access_log is not None:
            size = 0 if is_bodiless(response, head) else len(body)
            self._log(head, began, response.status, size, response.request_id)

    def _refuse(self, refusal: Refusal | Response, request_id: str | None = None) -> None:
        """Count and answer a request that the application does not get, or could not pass on."""
        self.context.counters.requests_refused += 1
        if isinstance(refusal, Refusal):
            self._answer_refusal(refusal, request_id)
        else:
            assert isinstance(refusal.body, bytes), "it is short"
            self._send(self._head, refusal, refusal.body, False, Phase.LINGERING)

    def _answer_refusal(self, refusal: Refusal, request_id: str | None = None) -> None:
        """Answer with the server's own error object; the connection closes after that."""
        head = self._head
        request_id = request_id or (head and head.request_id) or new_request_id()
        total_us = int((monotonic() - self._began) * 1_000_000)
        response, body = refusal_response(refusal, request_id, total_us)
        self._send(head, response, body, False, Phase.LINGERING)

    def _may_keep_alive(self) -> bool:
        if self._body is None or self._body.complete:
            return not self.context.draining or self._has_more()
        return self._body.is_worth_reading and not self.context.draining

    def _after(self, keep_alive: bool) -> Phase:
        """The state that follows an answer."""
        if keep_alive:
            return IDLE if self._body is None or self._body.complete else Phase.SKIPPING
        assert self._head is not None
        # The client may have sent more before it read that the connection ends.
        unread = self._body is not None and not self._body.complete
        return Phase.LINGERING if self._head.keep_alive or unread else Phase.CLOSED

    def _answered(self, state: Phase, now: float) -> None:
        """The answer has left: continue in `state`."""
        assert state in self.state.followers, f"{state} cannot follow {self.state}"
        self.state = state
        if state is IDLE:
            self._head = self._body = None
            self._answered_count += 1
            self._began = now

    async def _send_parts(self, response: Response) -> None:
        head, parts = self._head, response.body
        assert head is not None and not isinstance(parts, bytes)
        sender = PartsSender(self, head, response)
        try:
            keep_alive = head.keep_alive and self._may_keep_alive()
            keep_alive = keep_alive and not sender.ends_with_connection
            data = self._renderer.render(response, None, head, keep_alive, monotonic())
            await sender.send(data, parts)
        except BaseException:  # also a cancellation while draining
            if sender.began and sender.ends_with_connection:
                self.transport.abort()  # an ordinary end would look like the end of the answer
            raise
        finally:
            if sender.began:
                sent = sender.bytes_sent
                self._log(head, self._began, response.status, sent, response.request_id)
            await parts.aclose()
        if self.state is Phase.SENDING:
            self._answered(self._after(keep_alive), monotonic())

    def begin_sending(self) -> None:
        """Enter SENDING: from here only the rest of the answer can be sent."""
        self._move(Phase.SENDING)

    async def write(self, data: bytes) -> None:
        """Send all of `data`. Raises ClientGone."""
        try:
            sent = self.transport.try_send(data)
            if sent < len(data):
                rest = memoryview(data)[sent:]
                await self.transport.send_all(rest, self.context.options.send_seconds)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise ClientGone("the client is gone") from error
        self.context.counters.bytes_out += len(data)

    def _log(
        self, head: Head | None, began: float, status: int, body_bytes: int, request_id: str | None
    ) -> None:
        """Write client, method, path, status, bytes of body, milliseconds, request id."""
        client = self._client[0] if self._client else "-"
        request = "- -" if head is None else head.logged
        took = f"{(monotonic() - began) * 1000:.3f}"
        self.context.log(f"{client} {request} {status} {body_bytes} {took} {request_id or '-'}")

    def _end(self) -> None:
        if self.state is not Phase.CLOSED:
            self._move(Phase.CLOSED)
