"""The machine that a connection is: which states follow which, and that nothing else happens."""

from __future__ import annotations

import pytest

from qserver.http1.connection import Connection
from qserver.http1.state import TRANSITIONS, Phase
from qserver.http1.transport import PlainTransport
from tests.http1.ways import Ways, alone, expected, fast


def reachable(start: Phase) -> set[Phase]:
    found, todo = {start}, [start]
    while todo:
        for state in TRANSITIONS[todo.pop()]:
            if state not in found:
                found.add(state)
                todo.append(state)
    return found


def test_every_state_is_reached_and_every_one_leads_to_the_end() -> None:
    assert TRANSITIONS.keys() == set(Phase)
    assert reachable(Phase.OPENING) == set(Phase)
    for state in Phase:
        assert Phase.CLOSED in reachable(state)
        assert state.followers == TRANSITIONS[state]
    assert TRANSITIONS[Phase.CLOSED] == ()


class Traced(Connection):
    """Notes the states that it passes through."""

    @property
    def state(self) -> Phase:
        return self.trace[-1]

    @state.setter
    def state(self, state: Phase) -> None:
        if not hasattr(self, "trace"):
            self.trace: list[Phase] = []
        self.trace.append(state)


IDLE, HANDLING, PENDING = Phase.IDLE, Phase.HANDLING, Phase.PENDING


@pytest.mark.parametrize(
    ("body", "passes"),
    [
        (b"quick", [HANDLING, IDLE]),
        (b"slow", [HANDLING, IDLE]),
        (b"later", [HANDLING, PENDING, HANDLING, IDLE]),
        (b"large", [HANDLING, Phase.SENDING, IDLE]),
        (b"later large", [HANDLING, PENDING, HANDLING, Phase.SENDING, IDLE]),
    ],
)
async def test_a_request_passes_through_the_states_of_its_way(
    body: bytes, passes: list[Phase]
) -> None:
    ways = Ways()
    async with alone(PlainTransport, ways, connection_of=Traced) as (_, connection, _, client):
        assert isinstance(connection, Traced)
        await client.send(fast(body))
        if body.startswith(b"later"):
            await ways.until_begun()
            ways.settle()
        assert (await client.answer()).body == expected(body)
        assert connection.trace == [Phase.OPENING, IDLE, *passes]
        assert connection.trace[-1] is IDLE


async def test_a_head_in_pieces_and_a_refusal_pass_through_theirs() -> None:
    async with alone(PlainTransport, connection_of=Traced) as (_, connection, _, client):
        assert isinstance(connection, Traced)
        await client.send(fast(b"quick")[:20])
        while connection.state is not Phase.HEAD:
            await client.stream.wait_send_all_might_not_block()
        assert (await client.ask(fast(b"quick")[20:])).body == b"fast quick"
        assert (await client.ask(b"nonsense\r\n\r\n")).status == 400
        assert await client.rest() == b""
        await client.stream.aclose()
        served = [Phase.HEAD, HANDLING, IDLE]
        assert connection.trace[2:7] == [*served, HANDLING, Phase.LINGERING]


async def test_a_move_that_the_table_does_not_have_is_our_mistake() -> None:
    async with alone(PlainTransport) as (_, connection, _, client):
        assert (await client.ask(fast(b"quick"))).status == 200
        with pytest.raises(AssertionError, match="cannot follow"):
            connection._move(PENDING)
        assert repr(connection) == "<connection of somebody, who rests, 0 bytes at hand>"
