from __future__ import annotations

from urllib.parse import quote, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import InvalidRequest
from qserver.web.query_strings import BIGINT_MAX, read_query_string, whole_number

NAMES = ("sql", "params", "max_rows")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@given(st.dictionaries(st.sampled_from(NAMES), TEXT), st.booleans())
def test_what_a_client_encodes_is_read_as_it_was(given: dict[str, str], plus: bool) -> None:
    encoded = urlencode(given) if plus else urlencode(given, quote_via=quote)
    assert read_query_string(encoded.encode(), NAMES) == given


@given(TEXT, TEXT)
def test_a_nul_is_refused_wherever_it_is(before: str, behind: str) -> None:
    encoded = urlencode({"sql": f"{before}\0{behind}"})
    with pytest.raises(InvalidRequest, match="NUL"):
        read_query_string(encoded.encode(), NAMES)


@given(st.binary())
def test_any_bytes_are_read_or_refused_with_a_reason(query: bytes) -> None:
    try:
        given = read_query_string(query, NAMES)
    except InvalidRequest as error:
        assert error.message
    else:
        assert set(given) <= set(NAMES)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (b"sql=1&sql=1", "the parameter sql is there more than once"),
        (b"sql=1&s%71l=2", "the parameter sql is there more than once"),
        (b"sql&sql", "the parameter sql is there more than once"),
        (b"SQL=1", "unknown parameter 'SQL'"),
        (b"=1", "unknown parameter ''"),
        (b"a=1;sql=2", "unknown parameter 'a'"),
        (b"sql=100%", "the query string cannot be read: '%' is no escape; write % itself as %25"),
        (b"sql=%1", "'%1' is no escape"),
        (b"sql=%zz", "'%zz' is no escape"),
        (b"sql=%u0041", "'%u0' is no escape"),
        (b"sql=%+1", "'%+1' is no escape"),
        (b"%zz=1", "'%zz' is no escape"),
        (b"sql=%ff", "a value is not UTF-8"),
        (b"sql=%ed%a0%80", "a value is not UTF-8"),
        (b"sql=\xc3\xa9", "is not ASCII"),
    ],
)
def test_what_cannot_be_meant_is_refused(query: bytes, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_query_string(query, NAMES)
    assert message in refused.value.message


def test_blank_values_and_empty_parts_are_no_errors() -> None:
    assert read_query_string(b"", NAMES) == {}
    assert read_query_string(b"&&sql=&max_rows&", NAMES) == {"sql": "", "max_rows": ""}
    assert read_query_string(b"sql=a=b%26c;d+e%2B", NAMES) == {"sql": "a=b&c;d e+"}


@pytest.mark.parametrize("text", ["", "-", "1.0", "1e3", " 1", "1_000", "+1", "²", "٣", "1" * 20])
def test_a_whole_number_has_only_digits(text: str) -> None:
    with pytest.raises(InvalidRequest, match="limit is a whole number"):
        whole_number("limit", text)


def test_a_whole_number_is_within_its_bounds() -> None:
    assert whole_number("limit", "007") == 7
    assert whole_number("seed", f"-{BIGINT_MAX}") == -BIGINT_MAX
    assert whole_number("limit", "10", 1, 10) == 10
    for text in ("0", "11", "-1"):
        with pytest.raises(InvalidRequest, match=f"limit is 1 to 10, not {text}"):
            whole_number("limit", text, 1, 10)
    with pytest.raises(InvalidRequest, match="seed is -"):
        whole_number("seed", str(BIGINT_MAX + 1))
