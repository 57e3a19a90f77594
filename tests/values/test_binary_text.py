"""UUIDs and bytes are read and printed as in PostgreSQL 15."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.values.binary_text import bytes_from_text, text_of_bytes, uuid_from_text

SOME_UUID = UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")


@pytest.mark.parametrize(
    "text",
    [
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}",
        "a0eebc999c0b4ef8bb6d6bb9bd380a11",
        "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
    ],
)
def test_a_uuid_has_many_spellings(text: str) -> None:
    assert uuid_from_text(text) == SOME_UUID


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "a0eebc999-c0b4ef8bb6d6bb9bd380a11", "{a0eebc999c0b4ef8bb6d6bb9bd380a11"),
        *("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11 ", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11-"),
        "urn:uuid:a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ],
)
def test_what_is_no_uuid_is_refused(text: str) -> None:
    with pytest.raises(QserverError) as caught:
        uuid_from_text(text)
    assert caught.value.message == f'invalid input syntax for type uuid: "{text}"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\xDEADbeef", b"\xde\xad\xbe\xef"),
        ("\\xde ad\n", b"\xde\xad"),
        ("\\x", b""),
        ("", b""),
        ("abc\\\\d\\000\\377", b"abc\\d\x00\xff"),
        ("é", "é".encode()),
    ],
)
def test_bytes_are_hexadecimal_or_text_with_escapes(text: str, expected: bytes) -> None:
    assert bytes_from_text(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("\\xdea", "22023", "invalid hexadecimal data: odd number of digits"),
        ("\\xzz", "22023", 'invalid hexadecimal digit: "z"'),
        ("\\xd e", "22023", 'invalid hexadecimal digit: " "'),
        ("abc\\9", "22P02", "invalid input syntax for type bytea"),
        ("abc\\", "22P02", "invalid input syntax for type bytea"),
        ("\\400", "22P02", "invalid input syntax for type bytea"),
    ],
)
def test_what_spells_no_bytes_is_refused(text: str, code: str, message: str) -> None:
    with pytest.raises(QserverError) as caught:
        bytes_from_text(text)
    assert (caught.value.code, caught.value.message) == (code, message)


@given(st.binary())
def test_bytes_survive_their_text(value: bytes) -> None:
    assert bytes_from_text(text_of_bytes(value)) == value
