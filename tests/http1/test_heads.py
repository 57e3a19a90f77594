"""Heads that differ only in values which vary share what was parsed; each request has its own."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.http1 import PATH, Request, ServerOptions, Values, Varying
from qserver.http1.heads import Heads
from qserver.http1.refusal import Refusal


class Endpoint:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.takes_values = request.path != "/whole"


class Application:
    varying = Varying((b"idempotency-key", b"x-request-id"), rb"/things/(\w{0,20})(?:/end)?")

    def __init__(self) -> None:
        self.found = 0

    def endpoint(self, request: Request) -> Endpoint:
        self.found += 1
        return Endpoint(request)


def raw(*lines: str, path: str = "/v1/query") -> bytes:
    every = [f"POST {path} HTTP/1.1", "Host: a", *lines, "", ""]
    return "\r\n".join(every).encode("latin-1")


def found(heads: Heads, data: bytes) -> tuple[Values, Any]:
    head, endpoint = heads.kept.get(data) or heads.find(data)
    return head.values, endpoint


def test_heads_that_differ_in_a_varying_header_are_parsed_once() -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    for number in range(50):
        key = f"the key {number}"
        expected = {b"idempotency-key": key.encode()}
        assert found(heads, raw(f"Idempotency-Key: {key}", "X-A: b"))[0] == expected
        assert found(heads, raw(f"IDEMPOTENCY-key:{key} ", "X-A: b"))[0] == expected
    assert application.found == 2 and len(heads.kept) == 2
    assert found(heads, raw("X-A: b"))[0] == {}
    assert found(heads, raw("Idempotency-Key: ", "X-A: b"))[0] == {b"idempotency-key": b""}


def test_each_request_has_its_own_id_and_its_own_path_in_the_log() -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    for number in range(50):
        lines = f"x-Request-ID: id-{number}", "A: b", f"Idempotency-Key: {number}"
        head, _ = heads.find(raw(*lines, path=f"/things/t{number}/end"))
        assert head.request_id == f"id-{number}"
        assert head.logged == f"POST /things/t{number}/end"
        assert head.values == {
            b"x-request-id": b"id-%d" % number,
            b"idempotency-key": b"%d" % number,
            PATH: b"/things/t%d/end" % number,
        }
    assert application.found == 1
    head, _ = heads.find(raw("X-Request-Id: not safe", path="/things/t1/end"))
    assert head.request_id is None


@pytest.mark.parametrize(
    "path", ["/things/a%62", "/things/a/", "/things/a/end?x=1", "/things/a/begin", "/thingsa", "/*"]
)
def test_other_paths_are_left_to_the_parser(path: str) -> None:
    application: Any = Application()
    values, endpoint = found(Heads(application, ServerOptions()), raw(path=path))
    assert endpoint.request.path == path.partition("?")[0].replace("%62", "b")
    assert values == ({PATH: b"/things/a/end"} if "?" in path else {})


def test_an_endpoint_may_want_the_whole_head_which_is_not_kept() -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    for key in (b"a", b"b"):
        lines = f"Idempotency-Key: {key.decode()}"
        values, endpoint = found(heads, raw(lines, path="/whole"))
        assert values == {b"idempotency-key": key}
        assert dict(endpoint.request.headers)[b"idempotency-key"] == key
    assert len(heads.kept) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("Idempotency-Key: a", "Idempotency-Key: b"),
        ("Idempotency-Key: a", "idempotency-key: a"),
        ("Idempotency-Key: a", "idempotency-key: "),
        ("Idempotency-Key: a", "idempotency-key: \xe4"),
        ("Idempotency-Key: ",),
        ("Idempotency-Key: a\tb",),
        ("Idempotency-Key: \xe4",),
        ("Idempotency-Key: " + "k" * 256,),
        ("X-Idempotency-Key: a",),
    ],
)
def test_the_parser_says_which_values_there_are(lines: tuple[str, ...]) -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    values, endpoint = found(heads, raw(*lines))
    assert values == heads.parse(raw(*lines))[0].values
    given = lines[0].partition(":")[2].strip().encode("latin-1")
    alone = len(lines) == 1 and lines[0].startswith("I")
    assert values == ({b"idempotency-key": given} if alone else {})
    assert len(endpoint.request.headers) == len(lines) + 1


def test_values_do_not_hide_what_is_malformed_or_too_long() -> None:
    heads = Heads(Application(), ServerOptions())  # type: ignore[arg-type]
    for lines in (
        ("Idempotency-Key: a\x00",),
        ("Idempotency-Key: a", "Bad header"),
        ("Idempotency-Key : a",),
        ("Idempotency-Key: a", " b"),
    ):
        with pytest.raises(Refusal):
            heads.find(raw(*lines))
    small = Heads(Application(), ServerOptions(line_bytes_max=40))  # type: ignore[arg-type]
    small.find(raw(path="/things/a"))
    with pytest.raises(Refusal):
        small.find(raw(path="/things/" + "a" * 20 + "/end"))
