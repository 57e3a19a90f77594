"""Reads answers: results as values, failures as exceptions; no I/O.

Rows are tuples in the order of `columns`, even if the server sent objects. An answer that is not
the API's JSON (a proxy's page, another server) raises `UnexpectedAnswer`, whatever its status.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from qserver.client.extras import module_of
from qserver.client.failures import error_from, unexpected_answer
from qserver.client.into import rows_into
from qserver.client.python_values import Row, Values, row_converter


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one statement."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[Row]
    affected_rows: int = 0
    version: int | None = None
    retries: int = 0
    truncated: bool = False
    timings: Mapping[str, int] = field(default_factory=dict)
    diff: list[dict[str, Any]] | None = None
    replayed: bool = False
    """Whether an earlier request with the same idempotency_key got this answer."""
    unchanged: bool = False
    """Whether the client had this answer already, and the server says that it still holds."""
    diff_truncated: bool = False
    """Whether `diff` has only the first `max_rows` changes."""

    def dicts(self) -> Iterator[dict[str, Any]]:
        """The rows by column name; the server makes the names unique."""
        return (dict(zip(self.columns, row, strict=True)) for row in self.rows)

    def with_rows(self, into: type) -> Result:
        """The same result, whose rows are objects of a class."""
        rows: list[Any] = rows_into(into, self.columns, self.rows)
        return replace(self, rows=rows)

    def to_pandas(self) -> Any:
        """A DataFrame of the values as they are in `rows`; `arrow` is faster for many."""
        pandas = module_of("pandas")
        return pandas.DataFrame(self.rows, columns=list(self.columns))

    def to_polars(self) -> Any:
        """The same for polars."""
        polars = module_of("polars")
        names = list(self.columns)
        return polars.DataFrame(self.rows, schema=names, orient="row", infer_schema_length=None)


@dataclass(frozen=True, slots=True)
class TransactionResult:
    """The results of a transaction's statements, in order."""

    results: list[Result]
    affected_rows: int
    version: int | None
    retries: int
    timings: Mapping[str, int]
    diff: list[dict[str, Any]] | None = None
    replayed: bool = False
    """Whether an earlier request with the same idempotency_key got this answer."""
    database: str | None = None
    """The branch that has the changes, with `branch=True`."""
    diff_truncated: bool = False
    """Whether `diff` has only the first `max_rows` changes."""


def success_of(status: int, headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """The JSON object of a successful answer; raises every failure."""
    if status == 204:
        return {}
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise unexpected_answer(status, body) from None
    match answer:
        case {"success": True} if status < 300:
            replayed = headers.get("idempotency-replayed") == "true"
            return {**answer, "replayed": True} if replayed else dict(answer)
        case {"error": dict() as fields}:
            raise error_from(fields, status, headers.get("retry-after"))
        case _:
            raise unexpected_answer(status, body)


def result_of(answer: Mapping[str, Any], values: Values = "json") -> Result:
    columns, types = tuple(answer.get("columns", ())), tuple(answer.get("types", ()))
    rows = [row_of(row, columns) for row in answer.get("rows", ())]
    if rows and values == "python" and (converted := row_converter(types)) is not None:
        rows = list(map(converted, rows))
    return Result(
        columns,
        types,
        rows,
        int(answer.get("affected_rows", 0)),
        answer.get("version"),
        int(answer.get("retries", 0)),
        bool(answer.get("truncated", False)),
        answer.get("timings", {}),
        answer.get("diff"),
        bool(answer.get("replayed", False)),
        bool(answer.get("unchanged", False)),
        bool(answer.get("diff_truncated", False)),
    )


def transaction_of(answer: Mapping[str, Any], values: Values = "json") -> TransactionResult:
    return TransactionResult(
        [result_of(each, values) for each in answer.get("results", ())],
        int(answer.get("affected_rows", 0)),
        answer.get("version"),
        int(answer.get("retries", 0)),
        answer.get("timings", {}),
        answer.get("diff"),
        bool(answer.get("replayed", False)),
        answer.get("database"),
        bool(answer.get("diff_truncated", False)),
    )


def row_of(row: Any, columns: tuple[str, ...]) -> Row:
    return tuple(map(row.__getitem__, columns)) if isinstance(row, dict) else tuple(row)


def record_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A record of the control plane: the answer without its `success`."""
    return {field: value for field, value in answer.items() if field != "success"}
