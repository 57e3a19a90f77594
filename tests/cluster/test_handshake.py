"""The handshake of nodes: who has the key and the right number, and nobody else, is let in."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from qserver.cluster.handshake import Asked, Kind, admit, greet
from tests.cluster.nodes import KEY
from tests.sampling import examples

CALLER_BYTES = 5 + 1 + 4 + 4 + 32 + 32
CALLEE_BYTES = 5 + 32 + 32
Change = Callable[[int, bytes], bytes]
"""Of a piece that is sent, and the place of its first byte in all that its side sends."""


class Changed(socket.socket):
    """A socket that sends something else, and ends after so many bytes."""

    def __init__(self, connected: socket.socket, change: Change) -> None:
        super().__init__(fileno=connected.detach())
        self.setblocking(False)
        self._change = change
        self._place = 0

    def send(self, data: Any, flags: int = 0) -> int:
        changed = self._change(self._place, bytes(data))
        self._place += len(data)
        if changed:
            super().send(changed, flags)
        if len(changed) < len(data):
            self.shutdown(socket.SHUT_WR)
        return len(data)


def unchanged(place: int, data: bytes) -> bytes:
    return data


def flipped(at: int, bits: int) -> Change:
    def change(place: int, data: bytes) -> bytes:
        if not place <= at < place + len(data):
            return data
        at_here = at - place
        return data[:at_here] + bytes([data[at_here] ^ bits]) + data[at_here + 1 :]

    return change


def cut(at: int) -> Change:
    return lambda place, data: data[: max(0, at - place)]


def shaken(
    of_caller: Change = unchanged, of_callee: Change = unchanged, key: bytes = KEY, me: int = 2
) -> tuple[bool, Asked | None]:
    """Whether the caller is content, and what the callee has found, after a handshake."""
    content, found = False, None

    async def main() -> None:
        nonlocal found
        near, far = socket.socketpair()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, Changed(near, of_caller))
            with Changed(far, of_callee) as accepted:
                try:
                    found = await admit(accepted, key, me)
                except OSError:
                    pass

    async def call(connected: socket.socket) -> None:
        nonlocal content
        with connected:
            try:
                await greet(connected, KEY, Kind.MOVED, 1, 2)
            except OSError:
                return
            content = True

    trio.run(main, clock=MockClock(autojump_threshold=0))
    return content, found


def test_a_good_handshake_tells_the_callee_who_asks_for_what() -> None:
    content, found = shaken()
    assert content and found is not None
    assert found[:3] == (Kind.MOVED, 1, 2)


def test_the_key_and_the_number_must_be_right() -> None:
    assert shaken(key=KEY[:-1] + b"?") == (False, None)
    assert shaken(me=3) == (False, None)


@settings(max_examples=examples(150))
@given(st.integers(0, CALLER_BYTES - 1), st.integers(1, 255))
def test_a_caller_of_which_a_byte_is_changed_is_refused(at: int, bits: int) -> None:
    assert shaken(of_caller=flipped(at, bits)) == (False, None)


@settings(max_examples=examples(150))
@given(st.integers(0, CALLEE_BYTES - 1), st.integers(1, 255))
def test_a_callee_of_which_a_byte_is_changed_is_refused(at: int, bits: int) -> None:
    content, _ = shaken(of_callee=flipped(at, bits))
    assert not content


@given(st.integers(0, CALLER_BYTES - 1), st.integers(0, CALLEE_BYTES - 1))
def test_no_part_of_a_handshake_is_enough(of_caller: int, of_callee: int) -> None:
    assert shaken(of_caller=cut(of_caller)) == (False, None)
    assert shaken(of_callee=cut(of_callee))[0] is False


@given(st.binary(max_size=200))
def test_nonsense_is_refused_by_both(data: bytes) -> None:
    def change(place: int, real: bytes) -> bytes:
        return (data * len(real))[: len(real)]

    assert shaken(of_caller=change) == (False, None)
    assert shaken(of_callee=change)[0] is False


def test_a_callee_that_sends_the_proof_of_its_caller_back_is_refused() -> None:
    """It has no key, and lets the caller speak with itself."""
    content = False

    async def main() -> None:
        nonlocal content
        near, far = socket.socketpair()
        for each in (near, far):
            each.setblocking(False)
        with near, far:
            async with trio.open_nursery() as nursery:

                async def call() -> None:
                    nonlocal content
                    try:
                        await greet(near, KEY, Kind.LINK, 1, 1)
                        content = True
                    except OSError:
                        nursery.cancel_scope.cancel()

                nursery.start_soon(call)
                await trio.lowlevel.wait_readable(far)
                opening = far.recv(1000)
                far.send(opening[:5] + opening[-32:])
                await trio.lowlevel.wait_readable(far)
                far.send(far.recv(1000))

    trio.run(main)
    assert not content
