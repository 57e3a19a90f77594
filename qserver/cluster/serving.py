"""The callee's end of one connection: runs what the caller asks for, each in a task of its own.

    Call ───► handlers[method](*arguments) ──► Answer or Failure
    Follow ─► streams[name](back, *arguments), an async generator ──► Item …, End or Failure
    Lock ───► a claim in the queue of the lock ──► Answer, when it is granted
    Cancel ─► cancels the task, or releases the claim
    Move ───► welcome(meta, data, socket)

What was asked for over a connection ends with it: tasks are cancelled, then claims are released. A
moved connection of a client is an exception: it belongs to this process from the moment it arrives.

An error of ours travels to the caller as it is. Any other is a bug: it is reported here, and the
caller is told no more than that.
"""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio

from qserver.cluster.connection import Connection, LinkBroken, Report
from qserver.cluster.frames import DamagedFrame
from qserver.cluster.locks import Claim, RemoteLocks
from qserver.cluster.messages import (
    Answer,
    Beat,
    Call,
    Cancel,
    Credit,
    End,
    Failure,
    Follow,
    Hello,
    Item,
    Lock,
    Message,
    Move,
)
from qserver.cluster.outgoing import Outgoing
from qserver.cluster.streams import Stream
from qserver.errors import DatabaseUnavailable, QserverError, error_to_plain, first_of

Handler = Callable[..., Awaitable[Any]]
StreamHandler = Callable[..., AsyncGenerator[Any, None]]
"""Is called with the `Stream` of what the caller sends back, and the arguments."""
Welcome = Callable[[Any, bytes, socket.socket], Awaitable[None]]
"""Takes over a client's connection. If it fails the connection is closed."""


async def _unwelcome(meta: Any, data: bytes, moved: socket.socket) -> None:
    raise AssertionError("this process takes no connections over")


@dataclass(frozen=True, slots=True)
class Service:
    """What a process does for others."""

    handlers: Mapping[str, Handler] = field(default_factory=dict)
    streams: Mapping[str, StreamHandler] = field(default_factory=dict)
    welcome: Welcome = _unwelcome
    locks: RemoteLocks = field(default_factory=RemoteLocks)


class Served:
    """One connection of a caller."""

    def __init__(
        self,
        connection: Connection,
        process: int,
        service: Service,
        moves: trio.Nursery,
        report: Report,
    ) -> None:
        self._connection = connection
        self._process = process
        self._service = service
        self._moves = moves
        self._report = report
        self._calls: trio.Nursery  # of `run`
        self._scopes: dict[int, trio.CancelScope] = {}
        self._claims: dict[int, Claim] = {}
        self._backs: dict[int, Stream] = {}

    async def run(self) -> None:
        try:
            self._connection.send_nowait(Outgoing(Hello(self._process)))
            async with trio.open_nursery() as self._calls:
                await self._connection.run(self._receive)
                self._calls.cancel_scope.cancel()
        finally:
            self._connection.close()
            for claim in self._claims.values():
                claim.release()

    def _receive(self, message: Message, descriptor: int | None) -> None:
        match message:
            case Call():
                self._begin(message)
            case Follow():
                scope = self._scopes[message.id] = trio.CancelScope()
                back = self._backs[message.id] = Stream(message.id, self._connection)
                self._calls.start_soon(self._lead, message, back, scope)
            case Lock(id=ticket, name=name):
                granted = partial(self._connection.send_nowait, Outgoing(Answer(ticket, None)))
                self._claims[ticket] = self._service.locks.ask(name, granted)
            case Cancel(id=ended):
                if ended in self._claims:
                    self._claims.pop(ended).release()
                elif ended in self._scopes:
                    self._scopes[ended].cancel()
            case Item() if message.id in self._backs:
                self._backs[message.id].arrive(message.value)
            case Credit() if message.id in self._backs:
                self._backs[message.id].credit()
            case Item() | Credit():
                pass  # the stream has ended meanwhile
            case Beat():
                pass
            case Move(meta=meta, data=data):
                assert descriptor is not None
                self._moves.start_soon(self._welcome, meta, data, descriptor)
            case _:
                raise DamagedFrame(f"{type(message).__name__} is not for a callee")

    def _begin(self, call: Call) -> None:
        claim = None
        if call.ticket is not None:
            claim = self._claims.get(call.ticket)
            if claim is None or not claim.holds:
                error = DatabaseUnavailable(
                    f"the lock is lost that {call.method} needs", hint="Try again."
                )
                self._connection.send_nowait(Outgoing(Failure(call.id, *error_to_plain(error))))
                return
            claim.begin()
        scope = self._scopes[call.id] = trio.CancelScope()
        self._calls.start_soon(self._answer, call, claim, scope)

    async def _answer(self, call: Call, claim: Claim | None, scope: trio.CancelScope) -> None:
        try:
            with scope:
                try:
                    value = await self._service.handlers[call.method](*call.arguments)
                    frame = Outgoing(Answer(call.id, value))
                except Exception as error:
                    frame = Outgoing(self._failure(call.id, call.method, error))
                await self._connection.send(frame)
        except LinkBroken:
            pass  # nobody waits any more
        finally:
            del self._scopes[call.id]
            if claim is not None:
                claim.end()

    async def _lead(self, follow: Follow, stream: Stream, scope: trio.CancelScope) -> None:
        ending: Message = End(follow.id)
        try:
            with scope:
                try:
                    values = self._service.streams[follow.name](stream, *follow.arguments)
                    async with aclosing(values):
                        async for value in values:
                            await stream.send(value)
                except Exception as error:
                    ending = self._failure(follow.id, follow.name, error)
                await self._connection.send(Outgoing(ending))
        except LinkBroken:
            pass
        finally:
            del self._scopes[follow.id], self._backs[follow.id]
            stream.end()

    async def _welcome(self, meta: object, data: bytes, descriptor: int) -> None:
        try:
            moved = socket.socket(fileno=descriptor)
        except OSError as error:
            os.close(descriptor)
            self._report(f"a descriptor that was moved here is no socket: {error}")
            return
        await welcome(self._service, meta, data, moved, self._report)

    def _failure(self, message_id: int, name: str, error: Exception) -> Failure:
        error = first_of(error)
        if not isinstance(error, QserverError):
            lines = "".join(traceback.format_exception(error))
            self._report(f"{name}, which another process asked for, failed:\n{lines}")
            error = QserverError(
                f"process {self._process} failed in {name}", detail="It has reported why."
            )
        return Failure(message_id, *error_to_plain(error))


async def welcome(
    service: Service, meta: object, data: bytes, moved: socket.socket, report: Report
) -> None:
    """Give a client's connection that has arrived here to the service."""
    try:
        await service.welcome(meta, data, moved)
    except Exception:
        moved.close()
        report(f"a connection that was moved here is lost:\n{traceback.format_exc()}")
    except BaseException:
        moved.close()
        raise
