"""Puts a checksum before bytes, so that damage is noticed before they are used.

    checksum (CRC-32, 4 bytes, big end first) ‖ bytes

`place` is where the bytes belong, such as the number of a page. It is part of the checksum and not
of the bytes, so that whole bytes in the wrong place are damage too.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from qserver.errors import DataCorrupted
from qserver.values.steps import Steps

PIECE_BYTES: Final = 4 * 1024 * 1024
"""So many bytes are summed up before others can run."""


def sealed(body: bytes, place: int = 0) -> bytes:
    return crc32(body, place & 0xFFFFFFFF).to_bytes(4, "big") + body


def sealed_in_pieces(pieces: list[bytes]) -> Steps[bytes]:
    """Seal the bytes that pieces make together; yield now and then, so that others can run."""
    checksum = 0
    for piece in pieces:
        checksum = crc32(piece, checksum)
        if len(piece) > 1024:
            yield
    return b"".join([checksum.to_bytes(4, "big"), *pieces])


def unsealed_in_pieces(data: bytes, what: str) -> Steps[memoryview]:
    """Return the bytes without a copy; yield now and then, so that others can run."""
    body, checksum = memoryview(data)[4:], 0
    for start in range(0, len(body), PIECE_BYTES):
        checksum = crc32(body[start : start + PIECE_BYTES], checksum)
        if len(body) > PIECE_BYTES:
            yield
    _compare(checksum, data, what)
    return body


def unsealed(data: bytes, what: str, place: int = 0) -> bytes:
    """Return the bytes, or raise DataCorrupted that names what they should have been."""
    check_seal(data, what, place)
    return data[4:]


def check_seal(data: bytes, what: str, place: int = 0) -> None:
    _compare(crc32(memoryview(data)[4:], place & 0xFFFFFFFF), data, what)


def _compare(checksum: int, data: bytes, what: str) -> None:
    if checksum != int.from_bytes(data[:4], "big"):
        raise DataCorrupted(
            f"{what} does not match its checksum",
            hint="Restore a backup, and keep the damaged data until you have.",
        )
