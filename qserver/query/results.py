"""What a request asks for, and what it comes to."""

from __future__ import annotations

import msgspec
from msgspec.structs import force_setattr

from qserver.limits import RETRIES_DEFAULT
from qserver.query.permissions import EVERYTHING, Allowed
from qserver.sql.execution import Rows
from qserver.sql.parameters import Given
from qserver.values.types import SqlType


class Statement(msgspec.Struct, frozen=True):
    """One statement of a request, with its parameters."""

    sql: str
    parameters: Given = None


class Options(msgspec.Struct, frozen=True):
    """How a request is to be run.

    More than `max_rows` rows of a statement are an error; of more than `cut_rows`, the first are
    given. `timeout_ms` bounds everything up to the sending of a commit.
    """

    max_retries: int = RETRIES_DEFAULT
    timeout_ms: float | None = None
    max_rows: int | None = None
    cut_rows: int | None = None
    allowed: Allowed = EVERYTHING


class Result(msgspec.Struct, frozen=True):
    """What a statement came to."""

    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    rows: Rows
    affected_rows: int
    version: int
    retries: int = 0
    truncated: bool = False
    """Were there more rows than the request wanted?"""
    held_bytes: int = 0
    """What its rows, and those of statements before it in the request, count for as memory."""
    exec_us: int = 0
    """Microseconds of its planning and execution."""

    def committed(self, version: int, retries: int) -> None:
        """Its transaction has made this version, after so many retries. Nobody has seen it yet."""
        force_setattr(self, "version", version)
        force_setattr(self, "retries", retries)


class TransactionResult(msgspec.Struct, frozen=True):
    """What the statements of a request came to, one after the other."""

    results: list[Result]
    version: int
    retries: int = 0
    committed: bool = False
    """Were they run in a transaction? What only reads is run on a snapshot."""
