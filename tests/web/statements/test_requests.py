"""From bytes to what a request asks for."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import InvalidRequest, RequestTooLarge, UnsupportedMediaType
from qserver.limits import PARAMETERS_MAX, STATEMENT_BYTES_MAX, TRANSACTION_STATEMENTS_MAX
from qserver.web.description.shapes import QueryRequest, TransactionRequest
from qserver.web.statements.requests import (
    query_request,
    text_request,
    transaction_request,
    wants_stream,
)
from qserver.web.statements.statement_calls import has_options

JSON = b"application/json"
scalars = st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=5))


def body(**fields: Any) -> bytes:
    return msgspec.json.encode(fields)


@given(st.text(), st.one_of(st.lists(scalars), st.dictionaries(st.text(), scalars)))
def test_sql_and_params_arrive_as_they_were_sent(sql: str, params: Any) -> None:
    request = query_request(JSON, body(sql=sql, params=params))
    assert (request.sql, request.params) == (sql, params)
    assert (request.database, request.format, request.max_rows) == (None, "objects", None)
    assert (request.timeout_ms, request.max_retries) == (None, None)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_request_or_an_error_that_says_why(data: bytes) -> None:
    for read in (query_request, transaction_request):
        try:
            read(JSON, data)
        except InvalidRequest as error:
            assert error.message
    try:
        assert text_request(b"text/plain", data).sql.encode() == data
    except InvalidRequest as error:
        assert "UTF-8" in error.message


def test_of_a_field_that_is_there_twice_the_last_counts() -> None:
    request = query_request(b"", b'{"sql": "select 1", "max_rows": 1, "sql": "select 2"}')
    assert request.sql == "select 2" and request.max_rows == 1
    twice = b'{"statements": [{"sql": "select 1"}], "statements": [{"sql": "a", "sql": "b"}]}'
    assert [each.sql for each in transaction_request(b"", twice)[1]] == ["b"]


def test_numbers_with_a_point_keep_every_digit() -> None:
    request = query_request(JSON, b'{"sql":"x","params":[0.10, 1e-30, 12345678901234567890.5]}')
    digits = [Decimal("0.10"), Decimal("1e-30"), Decimal("12345678901234567890.5")]
    assert request.params == digits
    assert str(request.params[0]) == "0.10"


@pytest.mark.parametrize("number", [b"1e999999999", b"-1e-999999999", b"1E999999999999999999999"])
def test_a_number_that_has_no_end_of_digits_is_refused(number: bytes) -> None:
    with pytest.raises(InvalidRequest):
        query_request(JSON, b'{"sql":"x","params":[[' + number + b"]]}")


@pytest.mark.parametrize(
    "content_type",
    [b"", JSON, b"Application/JSON; charset=utf-8", b"application/vnd.acme+json", b"text/json"],
)
def test_json_may_be_called_by_several_names(content_type: bytes) -> None:
    assert query_request(content_type, body(sql="x")).sql == "x"


@pytest.mark.parametrize("content_type", [b"text/plain", b"application/xml", b"json", b"\xff"])
def test_any_other_name_is_refused_with_the_right_one(content_type: bytes) -> None:
    with pytest.raises(UnsupportedMediaType) as caught:
        query_request(content_type, body(sql="x"))
    assert caught.value.hint == "Send it with the header Content-Type: application/json."
    with pytest.raises(UnsupportedMediaType):
        text_request(JSON, b"select 1")


def test_limits_hold_at_their_very_edge() -> None:
    assert query_request(JSON, body(sql="x" * STATEMENT_BYTES_MAX)).sql
    assert text_request(b"", b"x" * STATEMENT_BYTES_MAX).sql
    with pytest.raises(RequestTooLarge):
        query_request(JSON, body(sql="x" * (STATEMENT_BYTES_MAX + 1)))
    with pytest.raises(RequestTooLarge):
        text_request(b"", b"x" * (STATEMENT_BYTES_MAX + 1))
    with pytest.raises(RequestTooLarge):
        text_request(b"", "é".encode() * (STATEMENT_BYTES_MAX // 2 + 1))
    assert query_request(JSON, body(sql="x", params=[1] * PARAMETERS_MAX)).params
    with pytest.raises(InvalidRequest, match=str(PARAMETERS_MAX)):
        query_request(JSON, body(sql="x", params=[1] * (PARAMETERS_MAX + 1)))
    most = ["x"] * TRANSACTION_STATEMENTS_MAX
    assert len(transaction_request(JSON, body(statements=most))[1]) == TRANSACTION_STATEMENTS_MAX
    with pytest.raises(InvalidRequest, match=str(TRANSACTION_STATEMENTS_MAX)):
        transaction_request(JSON, body(statements=[*most, "x"]))


def test_statements_are_texts_or_objects() -> None:
    given_statements = ["a", {"sql": "b", "params": [1]}, {"sql": "c", "params": {"x": None}}]
    _, statements = transaction_request(JSON, body(statements=given_statements))
    assert [(each.sql, each.parameters) for each in statements] == [
        ("a", None),
        ("b", [1]),
        ("c", {"x": None}),
    ]


def test_the_streaming_hint_in_a_transaction_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidRequest) as caught:
        transaction_request(JSON, body(statements=["a", {"sql": "/*+ STREAM */ b"}]))
    assert caught.value.statement == 1


@given(
    st.text(" \t\r\n", max_size=3),
    st.text(" \t\n", max_size=3),
    st.sampled_from(["STREAM", "stream", "StReAm"]),
    st.text(max_size=5),
)
def test_the_hint_is_found_whatever_its_spacing_and_case(
    before: str, inner: str, word: str, after: str
) -> None:
    assert wants_stream(f"{before}/*+{inner}{word}{inner}*/{after}")


@pytest.mark.parametrize(
    "sql", ["", "select 1", "/* STREAM */", "/*+ STREAMS */", "/*+ STREAM", "x /*+ STREAM */"]
)
def test_nothing_else_is_the_hint(sql: str) -> None:
    assert not wants_stream(sql)


@pytest.mark.parametrize("shape", [QueryRequest, TransactionRequest])
def test_every_field_that_is_not_read_elsewhere_is_an_option(shape: type[Any]) -> None:
    read_elsewhere = {"sql", "params", "statements", "database", "format"}
    read_elsewhere |= {"live", "every_ms", "branch"}
    for field in msgspec.structs.fields(shape):
        request = shape(["select 1"], **({} if field.required else {field.name: 1}))
        assert has_options(request) == (field.name not in read_elsewhere), field.name
