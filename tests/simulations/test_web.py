"""Requests by HTTP in the simulated world: what is told as an answer, what is seen as a problem.

The application is the product's own, or a stand-in that breaks one promise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from qserver.errors import (
    Applied,
    DivisionByZero,
    OutcomeUnknown,
    QserverError,
    RateLimited,
    Unauthorized,
)
from qserver.http1 import PENDING, Answer, Respond, Response
from qserver.http1.headers import Headers
from qserver.query.results import RunOptions, Statement, TransactionResult
from simulations.determinism import run_repeatably
from simulations.disk import Disk
from simulations.faults import Faults, make_profile
from simulations.service import Service
from simulations.trace import Trace
from simulations.web.answers import read_answer
from simulations.web.client import SqlClient
from simulations.web.exchange import ConnectionLost, Exchange, Reply, head
from simulations.web.front import Front
from simulations.web.keys import LIMITED, ORDINARY, REQUESTS_LEFT, brief_key
from simulations.world import SimulatedWorld

SERIES = "SELECT n FROM generate_series(1, 3) AS g(n)"


def in_world(
    work: Callable[[Service, Front], Awaitable[Any]], probabilities: dict[str, float] | None = None
) -> tuple[Any, Service]:
    """Run work in a calm world, or in one where these faults strike."""
    profile = make_profile("calm", 1)
    world = SimulatedWorld(1, profile, Faults(1, probabilities or {}), Trace(keep_events=False))
    services: list[Service] = []

    async def main() -> Any:
        async with trio.open_nursery() as nursery:
            service = Service(world, Disk(world, nursery))
            services.append(service)
            nursery.start_soon(service.run)
            await service.read(lambda transaction: None)
            assert service._front is not None
            result = await work(service, service._front)
            await service.rest()
            nursery.cancel_scope.cancel()
        return result

    result = run_repeatably(1, main, virtual_seconds_max=30.0, steps_max=300_000)
    return result, services[0]


async def post(front: Front, sql: str, key: str = ORDINARY, accept: bytes = b"") -> Reply:
    headers = {b"content-type": b"text/plain", b"authorization": b"Bearer " + key.encode()}
    if accept:
        headers[b"accept"] = accept
    exchange = Exchange(front, "T1", head("/query", headers), lambda: 0.001)
    front.answered.clear()
    return await exchange.send(sql.encode(), None)


def read(reply: Reply) -> tuple[TransactionResult | QserverError, list[str]]:
    problems: list[str] = []
    try:
        return read_answer(reply, problems.append), problems
    except QserverError as error:
        return error, problems


# --- answers of the product ----------------------------------------------------------------------


@pytest.mark.parametrize("accept", [b"", b"text/event-stream"])
def test_rows_come_as_they_are(accept: bytes) -> None:
    async def work(service: Service, front: Front) -> Reply:
        return await post(
            front, "SELECT 1 AS a, 'x' AS b, 1.50 AS c, NULL::int AS d", accept=accept
        )

    reply, service = in_world(work)
    answer, problems = read(reply)
    assert isinstance(answer, TransactionResult)
    ((a, b, c, d),) = answer.results[0].rows
    assert (a, b, str(c), d) == (1, "x", "1.50", None)
    assert answer.results[0].columns == ("a", "b", "c", "d")
    assert problems == service.problems == []


def test_an_error_is_told_by_its_class() -> None:
    async def work(service: Service, front: Front) -> Reply:
        return await post(front, "SELECT 1 / 0")

    reply, service = in_world(work)
    answer, problems = read(reply)
    assert isinstance(answer, DivisionByZero)
    assert problems == service.problems == []


def test_the_limited_key_is_refused_after_its_last_request() -> None:
    async def work(service: Service, front: Front) -> list[Reply]:
        return [await post(front, SERIES, LIMITED) for _ in range(REQUESTS_LEFT + 1)]

    replies, _ = in_world(work)
    assert [reply.status for reply in replies] == [200] * REQUESTS_LEFT + [429]
    assert isinstance(read(replies[-1])[0], RateLimited)


def test_a_brief_key_is_revoked_in_the_middle_of_a_stream() -> None:
    async def work(service: Service, front: Front) -> Reply:
        return await post(front, SERIES, brief_key("T1", 1), accept=b"text/event-stream")

    reply, service = in_world(work)
    answer, problems = read(reply)
    assert reply.status == 200 and reply.streamed
    assert isinstance(answer, Unauthorized)
    assert problems == service.problems == []


def test_who_leaves_knows_nothing_and_leaves_nothing_behind() -> None:
    """Some are ended by the server, others go on for nobody; all give back what they held."""

    async def work(service: Service, front: Front) -> list[Applied]:
        client = SqlClient(front.world.delays, 0.001)
        create = Statement("CREATE TABLE t (id serial PRIMARY KEY)")
        await client.write(front, [create], RunOptions(), single=True)
        front.world.faults.on = True
        told = []
        for _ in range(60):
            insert = Statement("INSERT INTO t DEFAULT VALUES RETURNING id")
            try:
                await client.write(front, [insert], RunOptions(), single=True)
            except QserverError as error:
                told.append(error.applied)
                left = isinstance(error, ConnectionLost)
                assert left == (error.applied is Applied.UNKNOWN), error
        front.world.faults.on = False
        return told

    told, service = in_world(work, {"client_leaves": 0.9, "message_slow": 0.5})
    assert Applied.UNKNOWN in told
    assert service.problems == []
    points = service.world.reached
    assert points["the server went on with a request whose client had left"]
    assert points["a client left a request waiting in a task"]
    assert points["an answer came when its client had left"]


# --- promises that are broken --------------------------------------------------------------------


def answer_of(request_id: str) -> Response:
    headers = Headers([(b"content-type", b"application/json")])
    return Response(200, headers, b"{}", request_id)


def answered_by(handle: Callable[[Respond], Answer]) -> list[str]:
    """The problems of a request that is handled so."""

    async def work(service: Service, front: Front) -> None:
        endpoint = SimpleNamespace(handle=lambda body, client, respond, values: handle(respond))
        front.endpoint = lambda request: endpoint  # type: ignore[method-assign]
        request = head("/query", {b"x-request-id": b"T1"})
        with trio.move_on_after(1.0):
            await Exchange(front, "T1", request, lambda: 0.0).send(b"", None)

    return in_world(work)[1].problems


def test_an_answer_that_keeps_its_promises_is_no_problem() -> None:
    assert answered_by(lambda respond: answer_of("T1")) == []


def test_an_answer_to_another_request_is_seen() -> None:
    (problem,) = answered_by(lambda respond: answer_of("T2"))
    assert "was given the answer of T2" in problem


def test_an_answer_before_the_request_is_pending_is_seen() -> None:
    def handle(respond: Respond) -> Answer:
        respond(answer_of("T1"))
        return answer_of("T1")

    (problem,) = answered_by(handle)
    assert "was answered while it was being handled" in problem


def test_an_answer_that_is_given_twice_is_seen() -> None:
    def handle(respond: Respond) -> Answer:
        async def later() -> None:
            for _ in range(2):
                respond(answer_of("T1"))

        trio.lowlevel.spawn_system_task(later)
        return PENDING

    (problem,) = answered_by(handle)
    assert "was answered while it was pending" in problem


def test_a_lease_that_is_not_given_back_is_seen() -> None:
    async def work(service: Service, front: Front) -> None:
        grant = await front.keys.authenticate(ORDINARY)
        await front.keys.database(grant)

    assert in_world(work)[1].problems == ["at rest: 1 requests have not given back the database"]


# --- answers that do not keep their form ---------------------------------------------------------

HEADING = b'event: columns\ndata: {"columns":["n"],"types":["integer"],"version":7}\n\n'
ROW = b'event: row\nid: 7:%d\ndata: {"n":1}\n\n'
DONE = b'event: done\ndata: {"success":true,"row_count":%d,"affected_rows":0,"version":7}\n\n'
ERROR = (
    b'event: error\ndata: {"success":false,"error":{"code":"08007",'
    b'"name":"transaction_resolution_unknown","message":"","retryable":false,"request_id":"T1"}}\n\n'
)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([HEADING, ROW % 1, DONE % 1], None),
        ([HEADING, ROW % 1, ERROR], None),
        ([HEADING, ERROR, ROW % 1, DONE % 1], "in its middle"),
        ([HEADING, ROW % 1, ERROR, DONE % 1], "in its middle"),
        ([HEADING, ROW % 1], "ends with [b'row']"),
        ([HEADING, ROW % 1, ROW % 1, DONE % 2], "have the ids"),
        ([HEADING, ROW % 1, DONE % 2], "1 rows of version 7 end with"),
    ],
)
def test_a_stream_that_does_not_keep_its_form_is_seen(
    parts: list[bytes], problem: str | None
) -> None:
    reply = Reply(200, {b"content-type": b"text/event-stream"}, "T1", parts, streamed=True)
    answer, problems = read(reply)
    if problem is None:
        assert problems == []
        assert isinstance(answer, OutcomeUnknown) == (ERROR in parts)
    else:
        assert any(problem in each for each in problems), problems
