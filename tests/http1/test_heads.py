"""Heads that differ only in values which vary share what was parsed; each request has its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from qserver.http1 import Request, ServerOptions, Varying
from qserver.http1.heads import Heads
from qserver.http1.refusal import Refusal


class Endpoint:
    def __init__(self, request: Request, values: Mapping[bytes, bytes] | None = None) -> None:
        self.request = request
        self.values = values or {}

    def with_values(self, values: Mapping[bytes, bytes]) -> Endpoint | None:
        return None if self.request.path == "/whole" else Endpoint(self.request, values)


class Application:
    varying = Varying((b"idempotency-key", b"x-request-id"), rb"/things/(\w{1,20})(?:/end)?")

    def __init__(self) -> None:
        self.found = 0

    def endpoint(self, request: Request) -> Endpoint:
        self.found += 1
        return Endpoint(request)


def raw(*lines: str, path: str = "/v1/query") -> bytes:
    every = [f"POST {path} HTTP/1.1", "Host: a", *lines, "", ""]
    return "\r\n".join(every).encode("latin-1")


def found(heads: Heads, data: bytes) -> Any:
    return (heads.kept.get(data) or heads.find(data))[1]


def test_heads_that_differ_in_a_varying_header_are_parsed_once() -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    for number in range(50):
        key = f"the key {number}"
        expected = {b"idempotency-key": key.encode()}
        assert found(heads, raw(f"Idempotency-Key: {key}", "X-A: b")).values == expected
        assert found(heads, raw(f"IDEMPOTENCY-key:{key} ", "X-A: b")).values == expected
    assert application.found == 2 and len(heads.kept) == 2
    assert found(heads, raw("X-A: b")).values == {}
    assert found(heads, raw("Idempotency-Key: *", "X-A: b")).request.headers[1][1] == b"*"


def test_each_request_has_its_own_id_and_its_own_path_in_the_log() -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    for number in range(50):
        lines = f"x-Request-ID: id-{number}", "A: b", f"Idempotency-Key: {number}"
        head, endpoint = heads.find(raw(*lines, path=f"/things/t{number}/end"))
        assert head.request_id == f"id-{number}"
        assert head.logged == f"POST /things/t{number}/end"
        assert endpoint.values == {  # type: ignore[attr-defined]
            b"x-request-id": b"id-%d" % number,
            b"idempotency-key": b"%d" % number,
            b"path": b"t%d" % number,
        }
    assert application.found == 1
    head, _ = heads.find(raw("X-Request-Id: not safe", path="/things/t1/end"))
    assert head.request_id is None


@pytest.mark.parametrize(
    "path", ["/things/a%62", "/things/a/", "/things/a/end?x=1", "/things/a/begin", "/thingsa", "/*"]
)
def test_other_paths_are_left_to_the_parser(path: str) -> None:
    application: Any = Application()
    endpoint = found(Heads(application, ServerOptions()), raw(path=path))
    assert endpoint.values == {}
    assert endpoint.request.path == path.partition("?")[0].replace("%62", "b")


def test_an_endpoint_may_want_the_whole_head() -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    for key in (b"a", b"b"):
        lines = f"Idempotency-Key: {key.decode()}"
        endpoint = found(heads, raw(lines, path="/whole"))
        assert endpoint.values == {} and dict(endpoint.request.headers)[b"idempotency-key"] == key


@pytest.mark.parametrize(
    "lines",
    [
        ("Idempotency-Key: a", "Idempotency-Key: b"),
        ("Idempotency-Key: a", "idempotency-key: a"),
        ("Idempotency-Key: ",),
        ("Idempotency-Key: a\tb",),
        ("Idempotency-Key: \xe4",),
        ("Idempotency-Key: " + "k" * 256,),
        ("X-Idempotency-Key: a",),
        ("Idempotency-Key : a",),
    ],
)
def test_what_is_not_one_plain_value_is_left_to_the_parser(lines: tuple[str, ...]) -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    if " :" in lines[0]:
        with pytest.raises(Refusal):
            heads.find(raw(*lines))
        return
    endpoint = found(heads, raw(*lines))
    assert endpoint.values == {}
    given = [line.partition(":")[2].strip().encode("latin-1") for line in lines]
    assert [value for name, value in endpoint.request.headers if name.endswith(b"key")] == given


def test_an_empty_second_header_is_refused_by_the_application_as_before() -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    endpoint = found(heads, raw("Idempotency-Key: a", "idempotency-key: "))
    names = [name for name, _ in endpoint.request.headers]
    assert names.count(b"idempotency-key") == 2, "the parsed head has both"


def test_values_do_not_hide_what_is_malformed_or_too_long() -> None:
    heads = Heads(Application(), ServerOptions())  # type: ignore[arg-type]
    for lines in (("Idempotency-Key: a\x00",), ("Idempotency-Key: a", "Bad header")):
        with pytest.raises(Refusal):
            heads.find(raw(*lines))
    small = Heads(Application(), ServerOptions(line_bytes_max=40))  # type: ignore[arg-type]
    small.find(raw(path="/things/a"))
    with pytest.raises(Refusal):
        small.find(raw(path="/things/" + "a" * 20 + "/end"))
