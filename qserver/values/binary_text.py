"""Reads and prints UUID and BYTEA as PostgreSQL does.

uuid    a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11; in any case, in braces, hyphens after any four
bytea   \\xdeadbeef, or text in which \\\\ is a backslash and \\123 a byte in octal digits
"""

from __future__ import annotations

import re
from typing import Final
from uuid import UUID

from qserver.errors import InvalidParameterValue, InvalidTextRepresentation
from qserver.values.text_input import bad_text

_UUID: Final = re.compile(r"\{?(?:[0-9a-fA-F]{4}-?){7}[0-9a-fA-F]{4}\}?", re.ASCII)
_ESCAPE: Final = re.compile(rb"\\(?:(\\)|([0-3][0-7][0-7])|(.?))", re.DOTALL)
_HEX_PAIRS: Final = re.compile(r"(?>[ \t\n\r]|[0-9a-fA-F]{2})*+")


def uuid_from_text(text: str) -> UUID:
    if _UUID.fullmatch(text) is None or text.startswith("{") != text.endswith("}"):
        raise bad_text(text, "uuid")
    return UUID(hex=text)


def bytes_from_text(text: str) -> bytes:
    """Reads hexadecimal digits after \\x, or text with escapes."""
    if text.startswith("\\x"):
        return bytes_from_hex(text[2:])
    return bytes_from_escapes(text)


def bytes_from_hex(digits: str) -> bytes:
    """Reads pairs of hexadecimal digits, with blanks between pairs."""
    try:
        return bytes.fromhex(digits)
    except ValueError:
        pass
    match = _HEX_PAIRS.match(digits)
    assert match is not None, "no pairs are pairs too"
    wrong = digits[match.end() :][:2].lstrip("0123456789abcdefABCDEF")
    if wrong:
        raise InvalidParameterValue(f'invalid hexadecimal digit: "{wrong[0]}"')
    raise InvalidParameterValue("invalid hexadecimal data: odd number of digits")


def bytes_from_escapes(text: str) -> bytes:
    """Reads UTF-8 text in which a backslash begins an escape."""
    return _ESCAPE.sub(_unescape, text.encode()) if "\\" in text else text.encode()


def _unescape(match: re.Match[bytes]) -> bytes:
    if match[1]:
        return b"\\"
    if match[2]:
        return bytes((int(match[2], 8),))
    raise InvalidTextRepresentation("invalid input syntax for type bytea")


def text_of_bytes(value: bytes) -> str:
    """`\\xdeadbeef`"""
    return f"\\x{value.hex()}"
