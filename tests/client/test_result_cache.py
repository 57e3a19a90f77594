"""What a client keeps of queries by URL, and when it may use it."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from qserver.client import Client, Named, TrioClient, UnexpectedAnswer
from qserver.client.requests import Request
from qserver.client.result_cache import ResultCache
from qserver.errors import UndefinedTable
from qserver.web.statements.cached_reads import PARAMETERS
from tests.client.fake_server import KEY, Answer, FakeServer, Received, error, result
from tests.sampling import examples


class Tagged:
    """Answers queries by URL as the server does: a tag for each content."""

    def __init__(self, server: FakeServer) -> None:
        self.value = 1
        self.tag: str | None = None
        """None: made of the content."""
        self.failure: Answer | None = None
        self.seen: list[dict[str, str]] = []
        self.tags: list[str | None] = []
        answered = server.respond

        def respond(received: Received) -> Answer:
            if received.method == "GET" and received.path.startswith("/v1/query?"):
                return self.answer(received)
            return answered(received)

        server.respond = respond  # type: ignore[method-assign]

    def answer(self, received: Received) -> Answer:
        query = parse_qs(urlsplit(received.path).query)
        self.seen.append({name: value for name, (value,) in query.items()})
        known = received.headers.get("if-none-match")
        self.tags.append(known)
        if self.failure is not None:
            return self.failure
        tag = f'W/"{self.value}"' if self.tag is None else self.tag
        if known is not None and tag and known == tag:
            return Answer(b"", 304, {"ETag": tag})
        body = result(["x"], ["integer"], [[self.value]])
        return Answer(body, headers={"ETag": tag} if tag else {})


@pytest.fixture
def tagged(server: FakeServer) -> Tagged:
    return Tagged(server)


async def test_both_flavours_keep_an_answer_as_long_as_the_server_says(
    server: FakeServer, tagged: Tagged
) -> None:
    async def read(client: Any) -> Any:
        if isinstance(client, TrioClient):
            return await client.read("SELECT x", [1], max_rows=5)
        return await trio.to_thread.run_sync(lambda: client.read("SELECT x", [1], max_rows=5))

    for flavour in (Client, TrioClient):
        tagged.value, tagged.tags, tagged.seen = 1, [], []
        client = flavour(server.url, KEY, "shop", cache_bytes=100_000)
        first, again = await read(client), await read(client)
        assert (first.rows, first.unchanged) == ([(1,)], False)
        assert (again.rows, again.unchanged) == ([(1,)], True)
        again.rows.append((99,))  # a caller may do as it likes with its rows
        assert (await read(client)).rows == [(1,)]
        tagged.value = 2
        changed, held = await read(client), await read(client)
        assert (changed.rows, changed.unchanged) == ([(2,)], False)
        assert (held.rows, held.unchanged) == ([(2,)], True)
        assert tagged.tags == [None, 'W/"1"', 'W/"1"', 'W/"1"', 'W/"2"']
        asked = {"sql": "SELECT x", "params": "[1]", "max_rows": "5"}
        assert tagged.seen[0] == {**asked, "format": "arrays", "database": "shop"}
        await client.aclose() if isinstance(client, TrioClient) else client.close()


def test_nothing_is_kept_unless_it_is_asked_for(server: FakeServer, tagged: Tagged) -> None:
    with Client(server.url, KEY) as client:
        assert [client.read("SELECT x").rows for _ in range(2)] == [[(1,)], [(1,)]]
    assert tagged.tags == [None, None]


def test_an_answer_is_for_one_query_with_its_parameters(server: FakeServer, tagged: Tagged) -> None:
    calls: list[tuple[Any, Any, dict[str, Any]]] = [
        ("SELECT x", None, {}),
        ("SELECT x", [1], {}),
        ("SELECT x", {"a": 1}, {}),
        ("SELECT x", None, {"as_of": 3}),
        ("SELECT x", None, {"database": "other"}),
        (Named("x"), None, {}),
    ]
    with Client(server.url, KEY, cache_bytes=100_000) as client:
        for sql, params, options in calls:
            assert not client.read(sql, params, **options).unchanged
        for sql, params, options in calls:
            assert client.read(sql, params, **options).unchanged
        assert len(client.cache) == len(calls)


def test_errors_and_answers_without_a_tag_are_not_kept(server: FakeServer, tagged: Tagged) -> None:
    with Client(server.url, KEY, cache_bytes=100_000) as client:
        tagged.failure = error("42P01", "undefined_table", "there is no t")
        with pytest.raises(UndefinedTable):
            client.read("SELECT x")
        tagged.failure, tagged.tag = None, ""
        client.read("SELECT now()")
        client.read("SELECT now()")
        assert tagged.tags == [None, None, None]
        assert (len(client.cache), client.cache.bytes) == (0, 0)
        tagged.failure = Answer(b"", 304)  # to a request without a tag
        with pytest.raises(UnexpectedAnswer):
            client.read("SELECT x")


PATHS = st.sampled_from([f"/v1/query?{name}" for name in "abcdef"])


@given(st.integers(0, 6000), st.lists(st.tuples(PATHS, st.integers(0, 3000))))
@settings(max_examples=examples(200))
def test_the_cache_holds_what_was_asked_for_last_in_its_bytes(
    most: int, steps: list[tuple[str, int]]
) -> None:
    cache, model = ResultCache(most), OrderedDict[str, tuple[str, int]]()
    for number, (path, size) in enumerate(steps):
        request = Request("GET", path, cacheable=True)
        kept = cache.find(request)
        expected = model.get(path)
        assert (kept and kept.tag) == (expected and expected[0])
        body = b'{"success":true,"n":"%b"}' % (b"x" * size)
        cache.answer(request, kept, 200, {"etag": str(number)}, body)
        model.pop(path, None)
        cost = 1000 + len(path) + len(body)
        if cost <= most:
            model[path] = (str(number), cost)
        elif expected is not None:
            assert cache.find(request) is None
        while sum(cost for _, cost in model.values()) > most:
            model.popitem(last=False)
        assert cache.bytes == sum(cost for _, cost in model.values()) <= most
        assert len(cache) == len(model)


def test_only_queries_by_url_are_kept() -> None:
    cache = ResultCache(10_000)
    other = Request("GET", "/v1/keys")
    cache.answer(other, None, 200, {"etag": "1"}, b'{"success":true}')
    assert cache.find(other) is None


@pytest.mark.parametrize("flavour", [Client, TrioClient])
def test_read_offers_what_the_server_takes(flavour: Any) -> None:
    _, options = flavour.read.__doc__.split("The options are")
    arguments = {"sql", "statement", "params", "format"}
    assert set(re.findall(r"`(\w+)`", options)) == set(PARAMETERS) - arguments
