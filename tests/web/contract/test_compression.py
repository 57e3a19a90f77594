"""Answers are compressed for clients that accept it, and say the same."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx
import pytest
import zstandard

from qserver.limits import ANSWER_BYTES_WHOLE, COMPRESSED_AT_ONCE_BYTES, COMPRESSED_BYTES_MIN
from tests.web.contract.servers import Client, error_of

LINES = {"Accept": "application/x-ndjson"}
EVENTS = {"Accept": "text/event-stream"}
DECODERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "gzip": gzip.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
by_coding = pytest.mark.parametrize("coding", DECODERS)


def raw(
    client: Client, path: str, accepted: str | None, body: Any = None, **headers: str
) -> tuple[httpx.Response, bytes]:
    """The answer, and its bytes as they came."""
    given = {**client.headers, "Accept-Encoding": accepted or "", **headers}
    method = "GET" if body is None else "POST"
    request = client.server.http.build_request(method, path, json=body, headers=given)
    if accepted is None:
        del request.headers["Accept-Encoding"]
    answer = client.server.http.send(request, stream=True)
    try:
        return answer, b"".join(answer.iter_raw())
    finally:
        answer.close()


def without_times(data: bytes) -> bytes:
    return re.sub(rb'_us":\d+', b'_us":0', data)


def rows(count: int) -> dict[str, str]:
    sql = "select n, 'row ' || n as name, md5(n::text) as hash"
    return {"sql": f"{sql} from generate_series(1, {count}) as n"}


@by_coding
@pytest.mark.parametrize(
    ("count", "least", "most"),
    [
        (100, COMPRESSED_BYTES_MIN, COMPRESSED_AT_ONCE_BYTES),
        (3000, COMPRESSED_AT_ONCE_BYTES, ANSWER_BYTES_WHOLE),
        (30_000, ANSWER_BYTES_WHOLE, 10 * ANSWER_BYTES_WHOLE),
    ],
)
def test_a_compressed_answer_is_the_answer(
    admin: Client, coding: str, count: int, least: int, most: int
) -> None:
    plain, expected = raw(admin, "/v1/query", None, rows(count))
    answer, data = raw(admin, "/v1/query", coding, rows(count))
    assert least < len(expected) < most
    assert "content-encoding" not in plain.headers
    assert answer.headers["content-encoding"] == coding
    assert answer.headers["content-type"] == plain.headers["content-type"]
    assert without_times(DECODERS[coding](data)) == without_times(expected)
    assert len(data) < 0.6 * len(expected)
    if "content-length" in answer.headers:
        assert int(answer.headers["content-length"]) == len(data)
    for each in (plain, answer):
        assert "Accept-Encoding" in each.headers["vary"]


@by_coding
def test_transactions_and_long_tables_of_routes_are_compressed(admin: Client, coding: str) -> None:
    statements = {"statements": [rows(100)["sql"], "select 1 as one"]}
    for path, body in (("/v1/transaction", statements), ("/openapi.json", None), ("/docs", None)):
        _, expected = raw(admin, path, "identity", body)
        answer, data = raw(admin, path, coding, body)
        assert answer.headers["content-encoding"] == coding
        assert without_times(DECODERS[coding](data)) == without_times(expected)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        (None, None),
        ("", None),
        ("identity", None),
        ("br, deflate", None),
        ("gzip;q=0", None),
        ("gzip;q=0.5, identity", None),
        ("gzip;q=2", None),
        ("GZIP ; Q=0.5 , br;q=1", "gzip"),
        ("x-gzip", "gzip"),
        ("gzip, zstd;q=0.9", "gzip"),
        ("gzip, zstd", "zstd"),
        ("*", "zstd"),
        ("zstd;q=0, *;q=0.1", "gzip"),
        ("*;q=0", None),
    ],
)
def test_what_a_client_accepts_decides(
    admin: Client, accepted: str | None, coding: str | None
) -> None:
    answer, _ = raw(admin, "/v1/query", accepted, rows(100))
    assert answer.headers.get("content-encoding") == coding


def test_a_short_answer_is_sent_as_it_is_unless_that_is_refused(admin: Client) -> None:
    answer, data = raw(admin, "/v1/query", "gzip", {"sql": "select 1 as one"})
    assert "content-encoding" not in answer.headers
    assert json.loads(data)["rows"] == [{"one": 1}]
    for accepted in ("gzip, identity;q=0", "gzip;q=0.1, *;q=0"):
        answer, data = raw(admin, "/v1/query", accepted, {"sql": "select 1 as one"})
        assert answer.headers["content-encoding"] == "gzip"
        assert json.loads(gzip.decompress(data))["rows"] == [{"one": 1}]
        answer, data = raw(admin, "/v1/query", accepted, {"sql": "select nothing"})
        assert json.loads(gzip.decompress(data))["error"]["code"] == "42703"


def test_lines_are_compressed_and_events_only_where_nothing_else_is_accepted(
    admin: Client,
) -> None:
    _, expected = raw(admin, "/v1/query", None, rows(5000), **LINES)
    answer, data = raw(admin, "/v1/query", "gzip", rows(5000), **LINES)
    assert answer.headers["content-encoding"] == "gzip"
    assert gzip.decompress(data) == expected
    _, expected = raw(admin, "/v1/query", None, rows(5000), **EVENTS)
    answer, data = raw(admin, "/v1/query", "gzip", rows(5000), **EVENTS)
    assert "content-encoding" not in answer.headers
    assert without_times(data) == without_times(expected)
    answer, data = raw(admin, "/v1/query", "gzip, identity;q=0", rows(5000), **EVENTS)
    assert answer.headers["content-encoding"] == "gzip"
    assert without_times(gzip.decompress(data)) == without_times(expected)


def test_the_lines_of_a_page_can_be_read_before_the_next_page_is_made(admin: Client) -> None:
    endless = {"sql": "select n from generate_series(1, 1000000000000) as n"}
    headers = {"Authorization": f"Bearer {admin.token}", "Accept-Encoding": "gzip", **LINES}
    with admin.server.http.stream("POST", "/v1/query", json=endless, headers=headers) as answer:
        decoder, text = zlib.decompressobj(31), b""
        for piece in answer.iter_raw():
            text += decoder.decompress(piece)
            if text.count(b"\n") > 10_000:
                break
        assert text.startswith(b'{"n":1}\n{"n":2}\n')
        assert text.endswith(b"\n"), "a whole page"


def test_head_announces_what_get_would_send_and_sends_nothing(admin: Client) -> None:
    headers = {"Accept-Encoding": "gzip"}
    answer = admin.server.http.head("/openapi.json", headers=headers)
    got, data = raw(admin, "/openapi.json", "gzip")
    assert answer.content == b"" and len(data) > 1000
    for name in ("content-encoding", "content-type", "vary", "content-length"):
        assert answer.headers.get(name) == got.headers.get(name)


def test_answers_with_secrets_are_never_compressed(admin: Client) -> None:
    accepted = "gzip, identity;q=0"
    answer, data = raw(admin, "/v1/session", accepted, {})
    assert answer.status_code == 201 and "content-encoding" not in answer.headers
    admin.server.secrets.add(json.loads(data)["session"]["token"])
    answer, _ = raw(admin, "/v1/keys", accepted)
    assert answer.status_code == 200 and "content-encoding" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/query", "/query", "/v1/transaction", "/v1/keys"])
@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "gzip, identity", "nonsense"])
def test_a_compressed_body_is_refused_and_never_unpacked(
    admin: Client, path: str, coding: str
) -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    answer = admin.call("POST", path, content=bomb, headers=headers)
    assert "Content-Encoding" in error_of(answer, 415, "QS010")["message"]
    assert answer.headers["accept-encoding"] == "identity"


def test_a_body_that_says_that_it_is_not_compressed_is_taken(admin: Client) -> None:
    headers = {"Content-Type": "text/plain", "Content-Encoding": "identity"}
    answer = admin.call("POST", "/query", content="select 1 as one", headers=headers)
    assert answer.json()["rows"] == [{"one": 1}]
    wrong_type = admin.call("POST", "/query", content="x", headers={"Content-Type": "image/png"})
    assert wrong_type.status_code == 415 and "accept-encoding" not in wrong_type.headers
