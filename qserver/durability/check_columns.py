"""Checks saved columns: whether each has the values of the rows below its page.

A damaged column is a warning, because scans read the rows in its place. One that is whole and has
other values is a problem, because scans believe it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qserver.durability.page_store import LoggedPages
from qserver.durability.pages import page_without_entries
from qserver.durability.port import Log
from qserver.durability.saved_columns import UnknownColumn, read_column
from qserver.errors import DataCorrupted
from qserver.storage.columns import vectors_of
from qserver.storage.page import Branch
from qserver.values.vector_families import ColumnVector

if TYPE_CHECKING:
    from qserver.values.vectors import Array, Vector


class ColumnsCheck:
    def __init__(self, log: Log, store: LoggedPages) -> None:
        self.problems: list[str] = []
        self.damaged = 0
        """Columns that cannot be read."""
        self._log = log
        self._store = store

    def check(self, page: int, length: int, numbers: list[int]) -> Iterator[None]:
        """Check columns of a page with so many rows; yield where the caller may pause."""
        saved: dict[ColumnVector, Vector | None] = {}
        for number, data in self._log.load(numbers).items():
            try:
                wanted, vector = read_column(page, length, number, data)
                saved[wanted] = vector
            except DataCorrupted:
                self.damaged += 1
            except UnknownColumn:
                pass  # scans do not read it, either
        branch = page_without_entries(page, length, 1, self._store)
        assert isinstance(branch, Branch)
        try:
            for found in vectors_of(branch, saved):
                if found is not None and not _are_equal(saved[found[0]], found[1]):
                    at = found[0].position
                    self.problems.append(
                        f"column {at} of page {page} has other values than its rows"
                    )
                yield
        except DataCorrupted as error:
            self.problems.append(f"columns of page {page}: {error}")

    def __repr__(self) -> str:
        return f"a check of columns: {len(self.problems)} problems, {self.damaged} damaged"


def _are_equal(one: Vector | None, other: Vector | None) -> bool:
    if one is None or other is None:
        return one is other
    return (
        (one.low, one.high, one.scale, one.words)
        == (other.low, other.high, other.scale, other.words)
        and one.values.dtype == other.values.dtype
        and one.values.tolist() == other.values.tolist()
        and _as_list(one.nulls) == _as_list(other.nulls)
    )


def _as_list(nulls: Array | None) -> list[bool] | None:
    return None if nulls is None else nulls.tolist()
