"""Cells as lines of text, and how wide they are on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from prompt_toolkit.utils import get_cwidth

from qserver.cli.cells import Writer, harmless, writers_of
from qserver.values.keys import Row


class TextCells:
    """Formats the cells of rows as lines without anything that a terminal would execute."""

    def __init__(self, columns: Sequence[str], types: Sequence[str], null: str) -> None:
        self._writers: list[Writer] = writers_of(columns, types)
        self._null = harmless(null).split("\n")

    def of(self, row: Row) -> list[list[str]]:
        return [
            self._null if value is None else harmless(write(value)).split("\n")
            for write, value in zip(self._writers, row, strict=True)
        ]


def names_of(columns: Sequence[str]) -> list[list[str]]:
    return [harmless(name).split("\n") for name in columns]


def width(text: str) -> int:
    """The terminal columns that an escaped text takes."""
    return len(text) if text.isascii() else get_cwidth(text)


def widest(lines: Sequence[str]) -> int:
    return max(map(width, lines), default=0)


def padded(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))
