"""What literals are worth."""

from __future__ import annotations

from decimal import Decimal

import pytest

from qserver.errors import QserverError
from qserver.lexing.literals import Value, read_literal


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0", "i", 0),
        ("007", "i", 7),
        ("2147483647", "i", 2**31 - 1),
        ("2147483648", "l", 2**31),
        ("9223372036854775807", "l", 2**63 - 1),
        ("9223372036854775808", "n", Decimal(2**63)),
        ("0" * 5000 + "1", "i", 1),
        ("9" * 5000, "n", Decimal("9" * 5000)),
        ("1.50", "n", Decimal("1.50")),
        (".5", "n", Decimal("0.5")),
        ("5.", "n", Decimal("5")),
        ("1e3", "n", Decimal("1000")),
        ("1.5E-2", "n", Decimal("0.015")),
        ("'it''s'", "s", "it's"),
        ("'a'\n'b''c' -- x\n\n'd'", "s", "ab'cd"),
        ("N'a'", "s", "a"),
        (r"'a\nb'", "s", r"a\nb"),
        (r"E'\b\f\n\r\t\\\'\q'''", "s", "\b\f\n\r\t\\'q'"),
        (r"e'\101\x41\u0041\U00000041'", "s", "AAAA"),
        (r"E'\xc3\xa9 \ud83d\ude00'", "s", "é 😀"),
        (r"U&'\0061\+000062\\'", "s", "ab\\"),
        ("U&'!0061!!' UESCAPE '!'", "s", "a!"),
        (r"U&'\d83d\de00'", "s", "😀"),
        ("$$a'b$$", "s", "a'b"),
        ("$x$ $$ $x$", "s", " $$ "),
        ("B'0101'", "b", "0101"),
        ("x'1f'", "b", "00011111"),
        ("b''", "b", ""),
    ],
)
def test_a_literal_has_a_kind_and_a_value(text: str, kind: str, value: Value) -> None:
    assert read_literal(text, 0) == (kind, value)
    assert type(read_literal(text, 0)[1]) is type(value)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("1e131072", "22003", "value overflows numeric format"),
        ("1e-16384", "22003", "value overflows numeric format"),
        ("1e99999999999999999999", "22003", "value overflows numeric format"),
        ("b'12'", "22P02", '"2" is not a valid binary digit'),
        ("X'1G'", "22P02", '"G" is not a valid hexadecimal digit'),
        (r"E'\000'", "22021", 'invalid byte sequence for encoding "UTF8": 0x00'),
        (r"E'\xff'", "22021", 'invalid byte sequence for encoding "UTF8": 0xff'),
        (r"E'\u12'", "22025", "invalid Unicode escape"),
        (r"E'\ud83dx'", "42601", "invalid Unicode surrogate pair"),
        (r"E'\U00110000'", "42601", "invalid Unicode escape value"),
        (r"U&'\12'", "42601", "invalid Unicode escape"),
        (r"U&'\de00'", "42601", "invalid Unicode surrogate pair"),
        (r"U&'\+110000'", "42601", "invalid Unicode escape value"),
        ("U&'a' UESCAPE '+'", "42601", "invalid Unicode escape character at or near \"'+'\""),
    ],
)
def test_a_literal_that_means_nothing_is_refused_at_its_place(
    text: str, code: str, message: str
) -> None:
    with pytest.raises(QserverError) as caught:
        read_literal(text, 7)
    assert (caught.value.code, caught.value.message, caught.value.position) == (code, message, 8)
