"""The shapes of older versions: list, compare, restore."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import UNSET, Struct, UnsetType, field

from qserver.web import fields as options
from qserver.web.description.shapes import RowChange


class RestoreRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """The version, or the time, that the database shall be as it was at.

    With `if_version`, only if no table has changed since that version.
    """

    as_of: int | str
    if_version: options.IfVersion = None


class Version(Struct, frozen=True):
    """What a version changed. `request_id` is the last of the requests that made it."""

    version: int
    time: datetime
    tables: list[str]
    rows_changed: int
    request_id: str | None
    request_ids: list[str]


class VersionsAnswer(Struct, frozen=True):
    """Versions, newest first; the next page is that before `next_cursor`."""

    success: Literal[True]
    versions: list[Version]
    next_cursor: str | None


class TableDifference(Struct, frozen=True):
    """How many changes of each kind a table has between two versions; `schema` is 0 or 1."""

    table: str
    schema: int
    insert: int
    update: int
    delete: int


class DiffAnswer(Struct, frozen=True):
    """What differs between two versions: `changes`, or with `count=true` their `counts`."""

    success: Literal[True]
    from_version: int = field(name="from")
    to_version: int = field(name="to")
    changes: list[RowChange] = []
    next_cursor: str | None = None
    counts: list[TableDifference] | UnsetType = UNSET


class RestoreAnswer(Struct, frozen=True):
    """The new version, and the one that it is like."""

    success: Literal[True]
    version: int
    restored: int
