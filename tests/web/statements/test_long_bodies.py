"""Long JSON is decoded in steps, to what it would be in one go."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.control.tiers import Limits
from qserver.errors import InvalidRequest, ProgramLimitExceeded
from qserver.web.statements.long_bodies import RUN_MEMBERS, decode_in_steps
from qserver.web.statements.requests import (
    BODY_BYTES_SHORT,
    query_request,
    read_query_request,
    read_transaction_request,
    transaction_request,
)
from tests.steps import taken

LIMITS = Limits()
_scalars = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text()
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text('a",:[]{}\\ '), inner)
)


def _in_steps(text: bytes) -> tuple[int, Any]:
    return taken(decode_in_steps(text, msgspec.json.decode))


@given(_values, st.sampled_from([None, 1]), st.booleans())
def test_steps_make_the_same_value(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "replace")
    assert _in_steps(text)[1] == msgspec.json.decode(text)


@pytest.mark.parametrize("part", [b"1", b'"a"', b"[]", b'{"a":1}', b"[[2]]"])
def test_a_step_has_few_values(part: bytes) -> None:
    count = 100 * RUN_MEMBERS
    steps, value = _in_steps(b"[" + b",".join([part] * count) + b"]")
    assert value == [msgspec.json.decode(part)] * count
    assert steps >= 100


@pytest.mark.long
@pytest.mark.parametrize("part", [b"[]", b"{}"])
def test_what_would_take_much_memory_is_refused(part: bytes) -> None:
    with pytest.raises(ProgramLimitExceeded):
        _in_steps(b"[" + b",".join([part] * 2_000_000) + b"]")


_LONG = ["x" * BODY_BYTES_SHORT]


@pytest.mark.parametrize(
    "request_",
    [
        {"sql": "select $1", "params": _LONG},
        {"sql": "select :a", "params": {"a": _LONG}, "format": "arrays", "database": "d"},
        {"sql": "x" * BODY_BYTES_SHORT},
        {"sql": "select 1", "params": None, "database": "x" * BODY_BYTES_SHORT},
    ],
)
async def test_a_long_query_is_what_it_would_be_if_it_were_short(request_: Any) -> None:
    body = json.dumps({**request_, "timeout_ms": 30_000}).encode()
    long, short = await read_query_request(b"", body, LIMITS), query_request(b"", body)
    assert msgspec.structs.replace(long, timeout_ms=short.timeout_ms) == short
    assert long.timeout_ms is not None and 20_000 < long.timeout_ms <= 30_000


async def test_a_long_transaction_is_what_it_would_be_if_it_were_short() -> None:
    statements = ["select 1", {"sql": "select $1", "params": _LONG}, {"sql": "select 2"}]
    body = json.dumps({"statements": statements, "max_retries": 3, "timeout_ms": 9000}).encode()
    (long, of_long), (short, of_short) = (
        await read_transaction_request(b"", body, LIMITS),
        transaction_request(b"", body),
    )
    assert of_long == of_short
    assert msgspec.structs.replace(long, timeout_ms=9000) == short


@pytest.mark.parametrize(
    "wrong",
    [
        {"sql": "select 1", "params": 5},
        {"sql": 5, "params": _LONG},
        {"sql": "select 1", "params": _LONG, "more": 1},
        {"params": _LONG},
        {"sql": "select 1", "params": [None] * 40_000},
    ],
)
async def test_a_long_body_that_is_wrong_is_refused(wrong: Any) -> None:
    spaces = b" " * BODY_BYTES_SHORT
    with pytest.raises(InvalidRequest):
        await read_query_request(b"", json.dumps(wrong).encode() + spaces, LIMITS)
    with pytest.raises(InvalidRequest):
        body = json.dumps({"statements": [wrong]}).encode() + spaces
        await read_transaction_request(b"", body, LIMITS)
    for body in (b"[" + spaces, b'{"sql":"a","params":["\xff"]}' + spaces):
        with pytest.raises(InvalidRequest):
            await read_query_request(b"", body, LIMITS)
