"""Heads of answers: what the application says, what the server adds, what neither may do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.web.http1.answer import MEANINGS, NAMES_KEPT_MAX, AnswerHead, HeadRenderer
from qserver.web.http1.errors import InvalidAnswer

ORDINARY = {"known_length": 2, "head_request": False, "modern": True, "keep_alive": True}


def rendered(
    status: int = 200, headers: list[tuple[bytes, bytes]] | None = None, **changed: object
) -> AnswerHead:
    arguments: dict[str, Any] = {**ORDINARY, **changed}
    return HeadRenderer().render(status, headers or [], **arguments)


def lines(head: AnswerHead) -> list[bytes]:
    assert head.data.endswith(b"\r\n\r\n")
    return [line for line in head.data.split(b"\r\n") if line and not line.startswith(b"date: ")]


@pytest.mark.parametrize(
    ("changed", "added"),
    [
        ({}, [b"content-length: 2"]),
        ({"known_length": None}, [b"transfer-encoding: chunked"]),
        ({"known_length": None, "modern": False}, [b"connection: close"]),
        ({"modern": False}, [b"content-length: 2", b"connection: keep-alive"]),
        ({"keep_alive": False}, [b"content-length: 2", b"connection: close"]),
        ({"known_length": None, "head_request": True}, []),
        ({"head_request": True}, [b"content-length: 2"]),
        ({"status": 204}, []),
        ({"status": 304}, [b"content-length: 2"]),
        ({"status": 304, "known_length": None}, []),
    ],
)
def test_the_body_is_delimited_in_the_one_way_that_fits(
    changed: dict[str, object], added: list[bytes]
) -> None:
    assert lines(rendered(**changed))[1:] == added  # type: ignore[arg-type]


def test_a_status_that_has_no_phrase_is_sent_without() -> None:
    assert lines(rendered(299))[0] == b"HTTP/1.1 299 "
    assert lines(rendered(404))[0] == b"HTTP/1.1 404 Not Found"


passed_on = st.binary(max_size=12).filter(lambda name: name.lower() not in MEANINGS)


@given(passed_on, st.binary(max_size=12))
def test_no_header_can_make_a_second_line(name: bytes, value: bytes) -> None:
    try:
        head = rendered(200, [(name, value), (b"last", b"one")])
    except InvalidAnswer:
        return
    assert head.data.count(b"\n") == head.data.count(b"\r") == 6
    assert name + b": " + value + b"\r\n" in head.data


def test_the_number_of_remembered_names_is_bounded() -> None:
    renderer = HeadRenderer()
    for number in range(2 * NAMES_KEPT_MAX):
        headers = [(b"x-%d" % number, b"")]
        head = renderer.render(
            200, headers, known_length=0, head_request=False, modern=True, keep_alive=True
        )
        assert headers[0][0] in head.data
    assert len(renderer._names) == NAMES_KEPT_MAX
