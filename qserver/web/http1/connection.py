"""One client's connection: a task that reads heads, lets the application answer, and reads on.

                     +--------------- keep-alive ---------------+
                     v                                          |
    open --> waiting for a head --> exchange: the application --+--> linger --> closed
                 |     |                  |                            ^
       too late, |     | malformed        | failed                     |
       draining  |     +--> refused: an answer of the server's own ----+
                 +--> closed

A request that takes a lane is answered where it arrives, in whatever task that is; or it is begun
there, and answered from where its end becomes known. Until then it stays in the buffer, and the
connection's own task waits: if nothing comes of it, it goes the ordinary way.

Only one task reads and answers, so answers leave in the order of requests, and a client that sends
many at once gets one after the other; between two of them everybody else has a turn. The task is
cancelled from outside only while it waits for a head (`end_if_idle`, `end_if_late`), never while
the application works: `waiting` says which. What was read before the cancellation came is kept.
"""

from __future__ import annotations

import math
import time
import traceback
from typing import Any

import trio

from qserver import limits
from qserver.web.http1.asgi import VERSIONS, LaneAnswer, Waits
from qserver.web.http1.context import ServerContext
from qserver.web.http1.errors import ClientGone, InvalidAnswer
from qserver.web.http1.exchange import Exchange
from qserver.web.http1.head import END_OF_HEAD, Head, check_beginning
from qserver.web.http1.refusal import Refusal, new_request_id, refusal_body, refusal_headers
from qserver.web.http1.transport import Transport


class Connection:
    """The state of one connection; `run` is its life."""

    def __init__(
        self,
        context: ServerContext,
        transport: Transport,
        client: tuple[str, int] | None,
        server: tuple[str, int] | None,
    ) -> None:
        self.context = context
        self.transport = transport
        self.buffer = b""
        """What has arrived and belongs to no request yet."""
        self._client = client
        self._server = server
        self._waiting = False
        self._interruption = trio.CancelScope()
        self._began = time.monotonic()
        self._deadline = self._began + context.options.header_seconds
        self._blank_line_skipped = False
        self._lingers = False
        self._ended = False
        """The client has said all it will say, or nothing more can be said to it."""
        self._unsent = memoryview(b"")
        """What the kernel would not take yet of an answer that was made without waiting."""
        self._lane_asked = False
        """It does not answer the request at hand, which goes the ordinary way then."""
        self._begun: tuple[Head, int] | None = None
        """The request that a lane answers later, and its length."""
        self._settled: trio.Event | None = None
        """Set when it has been answered, if the connection's task waits for that."""
        self._scope: dict[str, Any] = {
            "type": "http",
            "asgi": VERSIONS,
            "scheme": context.scheme,
            "client": client,
            "server": server,
            "root_path": "",
        }

    def __repr__(self) -> str:
        client = f"{self._client[0]}:{self._client[1]}" if self._client else "somebody"
        does = "waits" if self._waiting else "is served"
        return f"<connection of {client}, which {does}, {len(self.buffer)} bytes at hand>"

    async def run(self) -> None:
        """Serve until either side has had enough. Raises nothing but cancellation."""
        context = self.context
        try:
            await self.transport.open()
            await self._live()
            if self._lingers:
                await self._linger()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass  # the client left in the middle of something
        except Exception:
            context.report(f"{self!r} failed:\n{traceback.format_exc()}")
        finally:
            self._close()
            context.remove(self)

    def _close(self) -> None:
        self._begun = None  # should an answer come yet, there is nobody left to tell
        if self.context.reactor is not None:
            self.context.reactor.forget(self.transport.descriptor)
        self.transport.close()

    async def turn_away(self, refusal: Refusal) -> None:
        """The whole life of a connection for which there is no room."""
        try:
            await self.transport.open()
            await self.refuse(refusal)
            await self._linger()
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            pass  # the client left by itself
        finally:
            self.transport.close()

    # --- interruptions, from other tasks ----------------------------------------------------------

    def end_if_idle(self) -> None:
        if self._waiting and not self.buffer:
            self._interruption.cancel()

    def end_if_late(self, now: float) -> None:
        if self._waiting and now > self._deadline:
            self._interruption.cancel()

    async def _live(self) -> None:
        while True:
            with trio.CancelScope() as self._interruption:
                try:
                    await self._serve()
                except Refusal as refusal:
                    await self.refuse(refusal)
                    return
            self._waiting = False
            if not self._interruption.cancel_called or not await self._go_on():
                return

    async def _go_on(self) -> bool:
        """After an interruption: had a request begun to arrive at the last moment?"""
        if self._unsent:
            await self._send_rest()
        begun = bool(self.buffer)
        data = await self.transport.look()
        if data:
            self._arrived(data)
        if not self.buffer or data == b"":
            return False
        if begun and END_OF_HEAD not in self.buffer:
            await self.refuse(Refusal(408, "the head of the request did not come in time"))
            return False
        return True

    # --- requests, one after the other ------------------------------------------------------------

    async def _serve(self) -> None:
        """Serve requests until the connection is to be closed, or this wait was interrupted."""
        while True:
            if self._begun is not None:
                await self._wait_for_lane()
            if self._ended:
                return
            if self._unsent:
                await self._send_rest()
            if self.buffer and self._take_lane():
                await trio.lowlevel.checkpoint()
                continue
            head = self._next_head()
            if head is None:
                if not await self._more():
                    return
            elif not await self._answer(head):
                return
            elif self.buffer:
                # Pipelined: whoever sends many requests at once may not keep others waiting.
                await trio.lowlevel.checkpoint()

    async def _wait_for_lane(self) -> None:
        self._settled = trio.Event()
        try:
            await self._settled.wait()
        finally:
            self._settled = None

    async def _send_rest(self) -> None:
        rest, self._unsent = self._unsent, memoryview(b"")
        await self.transport.send_all(rest, self.context.options.send_seconds)

    async def _more(self) -> bool:
        """Wait for more of a head. False: there is no more, or an interruption came."""
        if self.context.draining and not self.buffer:
            data = await self.transport.look()
        else:
            self._waiting = True
            reactor = self.context.reactor
            if reactor is not None and self.transport.may_be_watched:
                await reactor.wait(self.transport.descriptor, self._readable)
                self._waiting = False
                return not self._ended and not self._interruption.cancel_called
            data = await self.transport.receive()
            self._waiting = False
        if not data:
            return False
        self._arrived(data)
        return not self._interruption.cancel_called

    def _readable(self) -> bool:
        """Something came while the connection waits. False if that is all done, and it waits on."""
        if self._begun is not None:
            if self.context.reactor is not None:
                self.context.reactor.mark(self.transport.descriptor)
            return True
        data = self.transport.try_receive()
        if data is None:
            return False
        if not data:
            self._ended = True
            return True
        if len(data) >= limits.RECEIVE_BYTES and self.context.reactor is not None:
            self.context.reactor.mark(self.transport.descriptor)
        self._arrived(data)
        return not self._take_lane() or self._has_work()

    def _has_work(self) -> bool:
        """Is there something that the connection's task must see to?"""
        if self._begun is not None:
            return False
        return bool(self.buffer) or bool(self._unsent) or self._ended

    def _arrived(self, data: bytes) -> None:
        self.context.counters.bytes_in += len(data)
        if self.buffer:
            self.buffer += data
            return
        self.buffer = data
        self._began = time.monotonic()
        self._deadline = self._began + self.context.options.header_seconds

    def has_more(self) -> bool:
        """Has a further request begun to arrive?"""
        if not self.buffer:
            data = self.transport.try_receive()
            if data:
                self._arrived(data)
        return bool(self.buffer)

    def _next_head(self) -> Head | None:
        """The next request's head, cut off the buffer; None if it is not all there."""
        buffer = self.buffer
        if buffer.startswith(b"\r\n") and not self._blank_line_skipped:
            self._blank_line_skipped = True  # one of them is forgiven, as HTTP advises
            buffer = self.buffer = buffer[2:]
        end = buffer.find(END_OF_HEAD)
        if end < 0:
            if buffer:
                check_beginning(buffer, self.context.options)
            return None
        end += len(END_OF_HEAD)
        self.buffer = buffer[end:]
        return self.context.heads.find(buffer[:end])

    def _take_lane(self) -> bool:
        """Answer the next request, or begin with it, without any wait; if it is one that can be."""
        context, buffer = self.context, self.buffer
        start = buffer.find(END_OF_HEAD) + len(END_OF_HEAD)
        lane = context.heads.lane(buffer[:start])
        if lane is None or self._lane_asked or context.draining:
            return False
        length = lane[0].length
        assert length is not None, "a lane is for requests whose length is known"
        stop = start + length
        if stop > len(buffer):
            return False
        try:
            answer = lane[1].answer(buffer[start:stop], self._lane_answered)
        except Exception:  # a bug; the ordinary way may know better, and answers at any rate
            context.report(f"a lane failed:\n{traceback.format_exc()}")
            answer = None
        if answer is None:
            self._lane_asked = True
            return False
        if answer is Waits.LATER:
            self._begun = lane[0], stop
            self._deadline = math.inf
        else:
            self._send_at_once(lane[0], stop, answer)
        return True

    def _lane_answered(self, answer: LaneAnswer | None) -> None:
        """What a lane has promised for later."""
        if self._begun is None:
            return
        head, stop = self._begun
        self._begun = None
        if answer is None:
            self._lane_asked = True
        else:
            try:
                self._send_at_once(head, stop, answer)
            except Exception:  # it ends this connection, and is no affair of whoever called
                self.context.report(f"{self!r} failed:\n{traceback.format_exc()}")
                self._ended = True
        if self._settled is not None:
            self._settled.set()
        elif self.context.reactor is not None and (self.context.draining or self._has_work()):
            self.context.reactor.wake(self.transport.descriptor)

    def _send_at_once(self, head: Head, stop: int, answer: LaneAnswer) -> None:
        context = self.context
        self.buffer = self.buffer[stop:]
        data = context.renderer.render_lane(answer.status, answer.lines, answer.body)
        context.counters.requests += 1
        try:
            sent = self.transport.try_send(data)
        except OSError:
            self._ended = True  # there is nobody left to tell
        else:
            context.counters.bytes_out += len(data)
            if sent < len(data):
                self._unsent = memoryview(data)[sent:]
        if context.options.access_log is not None:
            self._log(head.logged, answer.status, len(answer.body), answer.request_id)
        self._wait_for_next()

    async def _answer(self, head: Head) -> bool:
        """Let the application answer. False if the connection ends with that."""
        context = self.context
        exchange = Exchange(self, head)
        context.counters.requests += 1
        scope = {**self._scope, **head.scope}
        scope["headers"] = head.headers.copy()
        if context.state is not None:
            scope["state"] = context.state.copy()
        try:
            await context.application(scope, exchange.receive, exchange.send)
            if not exchange.done and not exchange.gone:
                raise InvalidAnswer("the application returned before its answer was complete")
        except Exception as error:
            if not (exchange.gone and _is_only(error, ClientGone)):
                await self._failed(exchange, error)
        await exchange.stop_watching()
        if context.options.access_log is not None and not exchange.refused:
            self._log(head.logged, exchange.status_sent, exchange.body_bytes, exchange.request_id)
        return await self._may_go_on(exchange)

    async def _failed(self, exchange: Exchange, error: Exception) -> None:
        head = exchange.head
        request_id = exchange.request_id or head.request_id or new_request_id()
        lines = "".join(traceback.format_exception(error))
        self.context.report(f"request {request_id} ({head.logged}) failed:\n{lines}")
        if exchange.done or exchange.gone:
            return
        if not exchange.head_sent:
            exchange.refused = True
            mistake = Refusal(500, "the server made a mistake, which has been noted")
            await self.refuse(mistake, head, request_id)
        elif exchange.ends_with_connection:
            self.transport.abort()  # an ordinary end would look like the end of the answer

    async def _may_go_on(self, exchange: Exchange) -> bool:
        answer = exchange.answer
        if not exchange.done or answer is None:
            return False
        if exchange.body_missing:
            try:
                while answer.keep_alive and exchange.body_missing:
                    if await exchange.read_body() is None:
                        return False
            except Refusal:
                pass  # it has its answer already
        if not answer.keep_alive or exchange.body_missing:
            self._lingers = exchange.head.keep_alive
            return False
        self._wait_for_next()
        return True

    def _wait_for_next(self) -> None:
        self._blank_line_skipped = False
        self._lane_asked = False
        self._began = time.monotonic()
        options = self.context.options
        wait_seconds = options.header_seconds if self.buffer else options.idle_seconds
        self._deadline = self._began + wait_seconds

    # --- answers of the server's own --------------------------------------------------------------

    async def refuse(
        self, refusal: Refusal, head: Head | None = None, request_id: str | None = None
    ) -> None:
        """Answer with an error object; the connection is closed after that."""
        context = self.context
        context.counters.requests_refused += 1
        self._lingers = True
        request_id = request_id or (head.request_id if head else None) or new_request_id()
        body = refusal_body(refusal, request_id, int((time.monotonic() - self._began) * 1e6))
        answer = context.renderer.render(
            refusal.status,
            refusal_headers(refusal, request_id),
            known_length=len(body),
            head_request=head is not None and head.is_head,
            modern=True,
            keep_alive=False,
        )
        data = answer.data if answer.bodiless else answer.data + body
        try:
            sent = self.transport.try_send(data)
            await self.transport.send_all(memoryview(data)[sent:], context.options.send_seconds)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError):
            self._lingers = False  # there is nobody left to tell
        context.counters.bytes_out += len(data)
        if context.options.access_log is not None:
            logged = "- -" if head is None else head.logged
            self._log(logged, refusal.status, len(data) - len(answer.data), request_id)

    def _log(self, logged: str, status: int, body_bytes: int, request_id: str | None) -> None:
        """Client, method, path, status, bytes of body, milliseconds, request id."""
        assert self.context.options.access_log is not None
        client = self._client[0] if self._client else "-"
        milliseconds = (time.monotonic() - self._began) * 1000
        self.context.options.access_log(
            f"{client} {logged} {status} {body_bytes} {milliseconds:.3f} {request_id or '-'}"
        )

    async def _linger(self) -> None:
        """Throw away what the client still sends.

        To close a socket with unread input makes the kernel send a reset, and a reset can overtake
        the answer that says what was wrong.
        """
        await self.transport.end_output()
        with trio.move_on_after(self.context.options.linger_seconds):
            while await self.transport.receive():
                pass


def _is_only(error: Exception, kind: type[Exception]) -> bool:
    """Is it such an error, or a group of nothing else?"""
    if isinstance(error, ExceptionGroup):
        return error.split(kind)[1] is None
    return isinstance(error, kind)
