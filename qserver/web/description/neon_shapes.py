"""The shapes of POST /sql, which are those of Neon's serverless driver."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType


class NeonStatement(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One statement; its parameters are texts, or become texts."""

    query: str
    params: list[Any] | None = None
    array_mode: bool | None = None


class NeonRequest(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One statement, or several that are one transaction."""

    query: str | None = None
    params: list[Any] | None = None
    array_mode: bool | None = None
    queries: list[NeonStatement] | None = None


class NeonField(Struct, frozen=True):
    """One column."""

    name: str
    dataTypeID: int
    tableID: int
    columnID: int
    dataTypeSize: int
    dataTypeModifier: int
    format: str


class NeonResult(Struct, frozen=True, rename="camel"):
    """The result of one statement."""

    command: str
    row_count: int | None
    row_as_array: bool
    fields: list[NeonField]
    rows: list[Any]
    version: int | UnsetType = UNSET


class NeonBatch(Struct, frozen=True):
    """The results of a transaction."""

    results: list[NeonResult]
    version: int | UnsetType = UNSET


class NeonError(Struct, frozen=True, rename="camel"):
    """An error, with the fields that PostgreSQL gives it."""

    message: str
    code: str
    severity: str
    detail: str | None
    hint: str | None
    position: str | None
    internal_position: str | None
    internal_query: str | None
    where: str | None
    schema: str | None
    table: str | None
    column: str | None
    data_type: str | None
    constraint: str | None
    file: str | None
    line: str | None
    routine: str | None
