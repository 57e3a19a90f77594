"""What a request asks for, and its results."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import force_setattr

from qserver.engine.freshness import STRONG, Freshness
from qserver.engine.history import AsOf
from qserver.engine.work import Step
from qserver.lexing.fingerprint import Parameterized
from qserver.limits import RETRIES_DEFAULT
from qserver.query.permissions import EVERYTHING, Allowed
from qserver.query.session import Session
from qserver.sql import Given, Rows
from qserver.storage.catalog import Catalog
from qserver.storage.changes import Changes
from qserver.storage.transaction import Transaction
from qserver.values.types import SqlType


class Statement(msgspec.Struct, frozen=True):
    sql: str
    parameters: Given = None
    parameterized: Parameterized | None = None
    """Its literals, if they are not those of the text, which only shows their kinds then."""


class Once(msgspec.Struct, frozen=True):
    """What makes a request one that is applied once, see `idempotency`."""

    name: bytes
    """Who sends it, and the key that they chose for it."""
    fingerprint: bytes
    """A digest of the request."""
    seconds: float
    """How long the answer is kept."""
    render: Callable[[list[Result], int], tuple[bytes, bytes]]
    """Makes the answer from the results and the number of retries: the text around the version."""


class Answered(msgspec.Struct, frozen=True):
    """The answer of a request that is applied once."""

    text: bytes
    replayed: bool
    """Whether an earlier request has made it."""


class RunOptions(msgspec.Struct, frozen=True):
    """How to run a request.

    More than `max_rows` rows of a statement are an error; of more than `cut_rows`, the first are
    returned. `timeout_ms` bounds everything up to the sending of a commit. More than `max_affected`
    changed rows are an error. `dry_run`: run it, and commit nothing. `if_version`: only if no table
    that it touches has changed since. `freshness`: how new what it reads must be.
    """

    max_retries: int = RETRIES_DEFAULT
    timeout_ms: float | None = None
    max_rows: int | None = None
    cut_rows: int | None = None
    allowed: Allowed = EVERYTHING
    max_affected: int | None = None
    dry_run: bool = False
    as_of: AsOf | None = None
    """The version, or the time, that is read; nothing can be written then."""
    if_version: int | None = None
    freshness: Freshness = STRONG
    session: Session | None = None
    """The session of the request; None: one of its own, if it needs one."""
    is_plain: bool = True
    """Whether none of the last six is set."""
    counts: bool = True
    """Whether its runs are counted in the statistics of statements: those inside COPY are not."""
    may_leave: bool = False
    """Whether another process may be asked for the result of a read that turns out to be long."""
    request_id: str | None = None
    """The request's id, if these options are its alone."""

    def __post_init__(self) -> None:
        special = self.max_affected, self.as_of, self.if_version, self.session
        if self.dry_run or special != (None, None, None, None) or self.freshness is not STRONG:
            force_setattr(self, "is_plain", False)


class Result(msgspec.Struct, frozen=True):
    columns: tuple[str, ...]
    types: tuple[SqlType, ...]
    rows: Rows
    affected_rows: int
    version: int
    retries: int = 0
    truncated: bool = False
    """Whether there were more rows than the request wanted."""
    held_bytes: int = 0
    """The memory charged for its rows and those of earlier statements of the request."""
    seconds: float = 0.0
    """The duration of its planning and execution."""
    tag: str = ""
    """The words of its tag, where its text does not tell them: of EXECUTE and FETCH."""

    def committed(self, version: int, retries: int) -> None:
        """Set the version that the transaction made, and its retries, on a still private result."""
        force_setattr(self, "version", version)
        force_setattr(self, "retries", retries)


class Redefinition(msgspec.Struct, frozen=True):
    """A definition that differs: its catalog key, and the catalogs before and after."""

    key: str
    before: Catalog
    after: Catalog


class Diff(msgspec.Struct, frozen=True):
    changes: Changes
    truncated: bool = False
    held_bytes: int = 0
    redefined: tuple[Redefinition, ...] = ()
    """Of the first changes, which are those of schema."""


class TransactionResult(msgspec.Struct, frozen=True):
    results: list[Result]
    version: int
    retries: int = 0
    committed: bool = False
    """Whether they may have changed something, so that no error may say that they have not."""
    answered: Answered | None = None
    """The stored answer of a request that is applied once; then there are no results."""
    diff: Diff | None = None
    """Of a dry run, what would have changed."""

    @property
    def held_bytes(self) -> int:
        """The memory that its rows take."""
        return self.results[-1].held_bytes + (0 if self.diff is None else self.diff.held_bytes)


Body: TypeAlias = Callable[[Transaction], Generator[Step, Any, list[Result]]]
"""The statements of a request, to be run in a transaction; see `body`."""
