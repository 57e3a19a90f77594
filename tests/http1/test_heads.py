"""Heads that differ only in one header share what was parsed; each request has its own value."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.http1 import Request, ServerOptions
from qserver.http1.heads import Heads
from qserver.http1.refusal import Refusal


class Endpoint:
    def __init__(self, request: Request, value: bytes | None = None) -> None:
        self.request = request
        self.value = value

    def with_value(self, value: bytes) -> Endpoint:
        return Endpoint(self.request, value)


class Application:
    varying = b"idempotency-key"

    def __init__(self) -> None:
        self.found = 0

    def endpoint(self, request: Request) -> Endpoint:
        self.found += 1
        return Endpoint(request)


def raw(*lines: str) -> bytes:
    return "\r\n".join(["POST /v1/query HTTP/1.1", "Host: a", *lines, "", ""]).encode("latin-1")


def found(heads: Heads, data: bytes) -> Any:
    return (heads.kept.get(data) or heads.find(data))[1]


def test_heads_that_differ_in_the_varying_header_are_parsed_once() -> None:
    application: Any = Application()
    heads = Heads(application, ServerOptions())
    for number in range(50):
        key = f"the key {number}"
        assert found(heads, raw(f"Idempotency-Key: {key}", "X-A: b")).value == key.encode()
        assert found(heads, raw(f"IDEMPOTENCY-key:{key} ", "X-A: b")).value == key.encode()
    assert application.found == 2 and len(heads.kept) == 2
    assert found(heads, raw("X-A: b")).value is None
    assert found(heads, raw("Idempotency-Key: *", "X-A: b")).request.headers[1][1] == b"*"


@pytest.mark.parametrize(
    "lines",
    [
        ("Idempotency-Key: a", "Idempotency-Key: b"),
        ("Idempotency-Key: a", "idempotency-key: "),
        ("Idempotency-Key: ",),
        ("Idempotency-Key: a\tb",),
        ("Idempotency-Key: \xe4",),
        ("Idempotency-Key: " + "k" * 256,),
        ("X-Idempotency-Key: a",),
    ],
)
def test_what_is_not_one_plain_value_is_left_to_the_parser(lines: tuple[str, ...]) -> None:
    application: Any = Application()
    endpoint = found(Heads(application, ServerOptions()), raw(*lines))
    assert endpoint.value in (None, b"a")
    given = [line.partition(":")[2].strip().encode("latin-1") for line in lines]
    headers = [value for name, value in endpoint.request.headers if name.endswith(b"key")]
    assert headers == given or endpoint.value is not None


def test_a_key_does_not_hide_what_is_malformed() -> None:
    heads = Heads(Application(), ServerOptions())  # type: ignore[arg-type]
    for lines in (("Idempotency-Key: a\x00",), ("Idempotency-Key: a", "Bad header")):
        with pytest.raises(Refusal):
            heads.find(raw(*lines))
