"""The value of a row of literals that cannot be read is found without reading long ones again."""

from __future__ import annotations

from typing import Any

from qserver.errors import InvalidTextRepresentation, ProgramLimitExceeded
from qserver.sql.codegen.runtime import READ_AGAIN_BYTES_MAX, unreadable

BAD = InvalidTextRepresentation("no number")
LONG = "7" * (READ_AGAIN_BYTES_MAX + 1)


def read(value: Any) -> int:
    assert len(value) <= READ_AGAIN_BYTES_MAX, "nobody else runs meanwhile"
    if not value.isdigit():
        raise BAD
    return int(value)


def found(row: list[Any], error: Exception, columns: tuple[int, ...]) -> int:
    rows = [["1"] * len(row), row]
    readers = dict.fromkeys(columns, read)
    return unreadable(rows, row, readers, error)  # type: ignore[arg-type]


def test_the_first_bad_value_is_found() -> None:
    assert found(["1", None, "x", "y"], BAD, (0, 1, 2, 3)) == 6
    assert found(["x", None, "x", "y"], BAD, (1, 3)) == 7


def test_a_long_value_is_not_read_again() -> None:
    assert found(["1", LONG, "x"], BAD, (0, 1, 2)) == 3
    assert found(["x", LONG, "x"], BAD, (0, 1, 2)) == 3
    assert found(["1", "2", LONG, "x"], ProgramLimitExceeded("too long"), (0, 1, 2, 3)) == 6
