"""A body that is too large is refused as any other mistake is, with all that an answer carries."""

from __future__ import annotations

import json

import pytest
import trio

from qserver.limits import ANONYMOUS_BODY_BYTES_MAX, REQUEST_BODY_BYTES_MAX
from qserver.web.description.catalogue import ROUTES
from qserver.web.route import Route
from tests.http1.serving import Answer, Client
from tests.web.served import Served, code_of, serving

TOO_MUCH = REQUEST_BODY_BYTES_MAX + 1
FRAMINGS = {
    "a length": (f"Content-Length: {TOO_MUCH}", b""),
    "a length and its beginning": (f"Content-Length: {TOO_MUCH}", b"x" * 5000),
    "a chunk": ("Transfer-Encoding: chunked", b"%x\r\nxxx" % TOO_MUCH),
    "chunks": ("Transfer-Encoding: chunked", b"5\r\nhello\r\n%x\r\n" % REQUEST_BODY_BYTES_MAX),
}


def head(path: str, *lines: str) -> bytes:
    fields = [f"POST {path} HTTP/1.1", "Host: a", "Origin: http://b", "X-Request-Id: mine", *lines]
    return "\r\n".join([*fields, "", ""]).encode()


def statuses(served: Served, route: str) -> dict[int, int]:
    return served.service.metrics.of_route(route).statuses


async def limited(served: Served) -> str:
    """The key of an organization whose requests are counted."""
    made = await served.admin("POST", "/v1/signup", {"organization": "limited"})
    return str(made["key"])


async def ended(client: Client) -> None:
    assert await client.rest() == b"", "the connection ends after the answer"


@pytest.mark.parametrize("comes", ["at once", "later"])
@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("path", ["/v1/query", "/v1/databases"])
async def test_the_answer_has_cors_the_rate_limit_and_is_counted(
    path: str, framing: str, comes: str
) -> None:
    line, body = FRAMINGS[framing]
    async with serving() as served, await served.client() as client:
        data = head(path, f"Authorization: Bearer {await limited(served)}", line)
        if comes == "later":
            await client.send(data)
            data = b""
        answer = await client.ask(data + body)
        check_413(answer)
        assert answer.header("ratelimit-policy") == '"free";q=200;w=60'
        assert (answer.header("ratelimit") or "").startswith('"free";r=199;')
        assert statuses(served, path) == {413: 1}
        assert served.counters.statistics().requests_refused == 1
        assert f" POST {path} 413 " in served.log[-1] and served.log[-1].endswith(" mine")
        if body:
            await client.stream.send_eof()
            await ended(client)


def check_413(answer: Answer) -> None:
    assert code_of(answer) == (413, "QS009")
    assert json.loads(answer.body)["error"]["request_id"] == "mine"
    assert answer.header("x-request-id") == "mine"
    assert answer.header("access-control-allow-origin") == "*"
    assert answer.header("connection") == "close"


@pytest.mark.parametrize("framing", FRAMINGS)
async def test_who_has_no_key_is_told_that_first(framing: str) -> None:
    line, body = FRAMINGS[framing]
    async with serving() as served, await served.client() as client:
        answer = await client.ask(head("/v1/query", line) + body)
        assert code_of(answer) == (401, "QS002")
        assert answer.header("connection") == "close"


@pytest.mark.parametrize("framing", FRAMINGS)
async def test_nobody_is_told_to_continue_with_it(framing: str) -> None:
    line, body = FRAMINGS[framing]
    async with serving() as served, await served.client() as client:
        key = await limited(served)
        lines = f"Authorization: Bearer {key}", "Expect: 100-continue", line
        await client.send(head("/v1/query", *lines))
        if line.startswith("Transfer"):
            assert (await client.answer()).status == 100, "how much it is nobody knows yet"
            await client.send(body)
        check_413(await client.answer())


KEYED = [route for route in ROUTES if route.request is not None and not route.anonymous]
LARGE = f"Content-Length: {REQUEST_BODY_BYTES_MAX}"


@pytest.mark.parametrize("route", KEYED, ids=lambda route: route.name)
async def test_who_has_no_key_is_told_so_by_the_head_alone(route: Route) -> None:
    async with serving() as served, await served.client() as client:
        data = head(route.path.replace("{", "").replace("}", ""), LARGE)
        answer = await client.ask(data.replace(b"POST", route.method.encode(), 1))
        assert code_of(answer) == (401, "QS002")


SIGNUP = b'{"organization": "limited"}'


@pytest.mark.parametrize("comes", ["at once", "later"])
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("more", [0, 1])
async def test_what_is_open_to_anyone_takes_small_bodies_only(
    more: int, chunked: bool, comes: str
) -> None:
    body = SIGNUP.ljust(ANONYMOUS_BODY_BYTES_MAX + more)
    line = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {len(body)}"
    if chunked:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    async with serving() as served, await served.client() as client:
        data = head("/v1/signup", line)
        if comes == "later":
            await client.send(data)
            await trio.testing.wait_all_tasks_blocked(0.01)
            data = b""
        answer = await client.ask(data + body)
        assert answer.status == (413 if more else 201)
        if more:
            assert code_of(answer) == (413, "QS009")
            assert answer.header("access-control-allow-origin") == "*"
        assert statuses(served, "/v1/signup") == {answer.status: 1}


async def test_a_signup_that_says_it_is_large_is_refused_by_its_head() -> None:
    async with serving() as served, await served.client() as client:
        check_413(await client.ask(head("/v1/signup", LARGE)))
