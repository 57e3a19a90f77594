"""The base class of all errors: code, fault, whether anything was applied, what to do."""

from __future__ import annotations

import re
from enum import Enum
from typing import ClassVar, Final

TEXT_LENGTH_MAX: Final = 8192
"""Many errors quote the wrong value, which may have megabytes."""


class Applied(Enum):
    """Was anything of the failed request applied?"""

    NO = "no"
    UNKNOWN = "unknown"


class QserverError(Exception):
    """A failure that is not a bug of ours. Subclasses say which."""

    code: ClassVar[str] = "XX000"
    name: ClassVar[str] = "internal_error"
    """PostgreSQL's name of the condition; by default the class's name in lower case."""
    retryable: bool = False
    applied: ClassVar[Applied] = Applied.NO
    statement: int | None = None
    """The statement of a transaction that failed, counted from 0."""
    row: int | None = None
    """The row of a request with many that failed, counted from 1."""
    literal: int | None = None
    """The literal of the statement that could not be read; the caller knows its position."""
    where: str | None = None
    """The place in data beside the statement, as COPY tells it: table, line and column."""
    item: int = 0
    """The value in a list of rows, counted through all rows."""
    definition: tuple[str, int] | None = None
    """The DEFAULT, CHECK or other text of a definition that is wrong, and the position in it."""

    def __init_subclass__(cls) -> None:
        if "name" not in cls.__dict__:
            cls.name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def __init__(
        self,
        message: str = "",
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        table: str | None = None,
        column: str | None = None,
        constraint: str | None = None,
    ) -> None:
        message = _shortened(message)
        super().__init__(message)
        self.message = message or self.name.replace("_", " ")
        self.detail = None if detail is None else _shortened(detail)
        self.hint = hint
        self.position = position
        """Where in the SQL text, counted in characters from 1."""
        self.table = table
        self.column = column
        self.constraint = constraint

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        """Reads as a sentence: `<unique_violation 23505: duplicate key …, not applied>`."""
        place = f" at character {self.position}" if self.position is not None else ""
        applied = "not applied" if self.applied is Applied.NO else "perhaps applied"
        retry = ", try again" if self.retryable else ""
        return f"<{self.name} {self.code}: {self.message}{place}, {applied}{retry}>"


def _shortened(text: str) -> str:
    return text if len(text) <= TEXT_LENGTH_MAX else f"{text[:TEXT_LENGTH_MAX]}…"
