"""The cache of heads decides nothing: the parser and the application say what a head means."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from hypothesis import example, given, settings

from qserver.http1 import PATH, Endpoint, Headers, Request, ServerOptions
from qserver.http1.head import Head
from qserver.http1.heads import Heads
from qserver.http1.refusal import Refusal
from qserver.web.app import Application
from tests.http1.drawn_heads import three_heads
from tests.sampling import NIGHTLY
from tests.web.test_app import new_app

NARROW = ServerOptions(headers_count_max=4, headers_bytes_max=200, line_bytes_max=60)
START = b"POST /v1/query HTTP/1.1\r\nHost: a\r\n"
application = cache(new_app)


def decision(way: Callable[[bytes], tuple[Head, Endpoint]], raw: bytes) -> object:
    """All that follows from a head, as values that can be compared."""
    try:
        head, found = way(raw)
    except Refusal as refusal:
        return refusal.status, str(refusal), refusal.hint
    endpoint: Any = found
    facts = {name: _comparable(value) for name, value in vars(endpoint).items()}
    request = head.request
    if endpoint.takes_values:
        assert endpoint.request.path == request.path
        request = _without_values(head)
        facts.update(request=request, headers=dict(request.headers))
    ends = head.modern, head.is_head, head.keep_alive, head.expects_continue
    body = head.length, head.too_large, head.body_bytes_max
    told = head.request_id, head.logged, head.values
    return ends, body, told, request, type(endpoint), endpoint.kind, facts


def _comparable(value: Any) -> object:
    if isinstance(value, Headers):
        return value.pairs
    return str(value()) if getattr(value, "__name__", "") in ("<lambda>", "refused") else value


def _without_values(head: Head) -> Request:
    """The request without what its endpoint is given as values, and nowhere else."""
    names, request = Application.varying.headers, head.request
    headers = tuple([(name, b"" if name in names else value) for name, value in request.headers])
    path = "" if PATH in head.values else request.path
    return Request(request.method, path, request.query, headers, request.scheme)


def check_both_ways(heads: list[bytes], options: ServerOptions) -> None:
    cached = Heads(application(), options)
    for raw in heads * 2:
        found = decision(lambda raw: cached.kept.get(raw) or cached.find(raw), raw)
        assert found == decision(cached.parse, raw)
    for raw in cached.kept:
        assert decision(cached.kept.__getitem__, raw) == decision(cached.parse, raw)


@pytest.mark.long
@settings(max_examples=3000 if NIGHTLY else 300, deadline=None)
@given(three_heads())
@example([START + b"X-Request-Id: a\r\nX-Request-Id: \xe4\r\n\r\n"])
@example([START + b"X-Request-Id: %d\r\nX-Request-Id: b\r\n\r\n" % at for at in range(3)])
@example([START + b"Idempotency-Key: %d\r\nIdempotency-Key:\r\n\r\n" % at for at in range(3)])
@example([START + b"X-Request-Id: %d\r\n b\r\n\r\n" % at for at in range(3)])
@example([START + b"Content-Length: %d\r\nX-Request-Id: a\r\n\r\n" % at for at in range(3)])
@example([START + b"X-X-Request-Id: %d\r\n\r\n" % at for at in range(3)])
@example([START + b"X-Request-Id: %b\r\n\r\n" % (b"k" * size) for size in (9, 250, 255)])
@example([START + b"X-Request-Id: %b\r\n\r\n" % value for value in (b"a", b"a\x00b", b"b")])
@example([START.replace(b"query", b"transaction/txn_%d%%41" % at) + b"\r\n" for at in range(3)])
@example([START + b"X-Request-Id:%b\r\n\r\n" % value for value in (b"", b" a", b"a", b"")])
def test_a_cached_head_means_what_its_bytes_mean(heads: list[bytes]) -> None:
    for options in (ServerOptions(), NARROW):
        check_both_ways(heads, options)


def test_paths_and_headers_of_one_shape_share_an_endpoint_and_no_value() -> None:
    made, heads = set(), Heads(application(), ServerOptions())
    for number in range(50):
        raw = (
            f"POST /v1/transaction/txn_{number}/commit HTTP/1.1\r\nHost: a\r\n"
            f"X-Request-Id: id {number}\r\n\r\n"
        ).encode()
        head, endpoint = heads.find(raw)
        made.add(endpoint)
        path = f"/v1/transaction/txn_{number}/commit".encode()
        assert head.values == {b"x-request-id": b"id %d" % number, PATH: path}
    assert len(made) == len(heads.kept) == 1
