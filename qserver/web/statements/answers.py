"""Renders the bodies of answers: results as JSON, and one error object for all failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, time
from typing import Any, Final

from qserver.engine.yielding import yield_to_others
from qserver.errors import QserverError, SerializationFailure
from qserver.limits import ANSWER_BYTES_WHOLE, ANSWER_PART_BYTES
from qserver.query.sql_database import Result, TransactionResult
from qserver.sql import Rows
from qserver.storage.conflict import Conflict
from qserver.storage.page import Key
from qserver.values.keys import NULL_KEY, TOP, Descending
from qserver.web.description.shapes import ErrorAnswer, ErrorObject, Timings
from qserver.web.statements.json_values import encode_json
from qserver.web.statements.rows import ROWS_ENCODED_AT_ONCE, RowEncoder

Write = Callable[[RowEncoder, Rows], bytes]
WRITERS: Final[dict[str, Write]] = {"objects": RowEncoder.objects, "arrays": RowEncoder.arrays}

TRUNCATED: Final = b',"truncated":true'


Encoded = tuple[RowEncoder, Rows]
Sliced = tuple[RowEncoder, list[Rows]]


async def sliced(every: Sequence[Encoded]) -> tuple[list[Sliced], bool]:
    """The rows of each result in slices, and: are they too many for one whole answer?

    Raises if one row is too big to send at all.
    """
    results, total = [], 0
    for encoder, rows in every:
        slices = []
        for part, size in encoder.cut(rows):
            slices.append(part)
            total += size
            if len(rows) > len(part):
                await yield_to_others()
        results.append((encoder, slices))
    return results, total > ANSWER_BYTES_WHOLE


async def rows_json(encoder: RowEncoder, slices: Sequence[Rows], write: Write) -> bytes:
    """All rows as one JSON array; yields to other tasks after each slice."""
    if len(slices) == 1:
        return write(encoder, slices[0])
    parts = []
    for part in rows_in_parts(encoder, slices, write):
        parts.append(part)
        await yield_to_others()
    return b"".join(parts)


def rows_in_parts(encoder: RowEncoder, slices: Iterable[Rows], write: Write) -> Iterator[bytes]:
    """The same array in parts, each encoded on demand."""
    between = b"["
    for part in slices:
        yield b"".join((between, memoryview(write(encoder, part))[1:-1]))
        between = b","
    yield b"[]" if between == b"[" else b"]"


_TO_VERSION: Final = (
    b',"affected_rows":%d,"timings":{"total_us":%d,"exec_us":%d},"types":%b,"version":'
)
_FROM_RETRIES: Final = b',"retries":%d%b}'
_QUERY_TAIL: Final = _TO_VERSION + b"%d" + _FROM_RETRIES


def query_tail(
    outcome: TransactionResult, encoder: RowEncoder, seconds: float, exec_seconds: float
) -> bytes:
    """The fields after the rows of a query's answer, `seconds` after its request."""
    (result,) = outcome.results
    return _QUERY_TAIL % (
        result.affected_rows,
        seconds * 1e6,
        exec_seconds * 1e6,
        encoder.types_json,
        outcome.version,
        outcome.retries,
        TRUNCATED if result.truncated else b"",
    )


def query_around_version(
    result: Result, encoder: RowEncoder, rows: bytes, retries: int, total_us: int, exec_us: int
) -> tuple[bytes, bytes]:
    """A query's answer before and after its version."""
    head = _TO_VERSION % (result.affected_rows, total_us, exec_us, encoder.types_json)
    tail = _FROM_RETRIES % (retries, TRUNCATED if result.truncated else b"")
    return encoder.query_head + rows + head, tail


def result_tail(result: Result, encoder: RowEncoder) -> bytes:
    """The fields after the rows of one result of a transaction."""
    exec_us = result.seconds * 1e6
    return b',"affected_rows":%d,"timings":{"total_us":%d,"exec_us":%d},"types":%b%b}' % (
        result.affected_rows,
        exec_us,
        exec_us,
        encoder.types_json,
        TRUNCATED if result.truncated else b"",
    )


def transaction_tail(outcome: TransactionResult, total_us: float, run_us: float) -> bytes:
    """The fields after all results; `run_us` includes the commit."""
    head, tail = _tail_around_version(outcome.results, outcome.retries, total_us, run_us)
    return b"%b%d%b" % (head, outcome.version, tail)


def _tail_around_version(
    results: Sequence[Result], retries: int, total_us: float, run_us: float
) -> tuple[bytes, bytes]:
    affected_rows, seconds = 0, 0.0
    for result in results:
        affected_rows += result.affected_rows
        seconds += result.seconds
    exec_us = min(run_us, seconds * 1e6)
    return (
        b'],"affected_rows":%d,"version":' % affected_rows,
        b',"retries":%d,"timings":{"total_us":%d,"exec_us":%d,"commit_us":%d}}'
        % (retries, total_us, exec_us, run_us - exec_us),
    )


TRANSACTION_HEAD: Final = b'{"success":true,"results":['


def transaction_around_version(
    results: Sequence[Result],
    encoders: Sequence[RowEncoder],
    rows: Sequence[bytes],
    retries: int,
    total_us: float,
    run_us: float,
) -> tuple[bytes, bytes]:
    """A transaction's answer before and after its version."""
    head, tail = _tail_around_version(results, retries, total_us, run_us)
    return _results_json(results, encoders, rows) + head, tail


def transaction_body(
    outcome: TransactionResult,
    encoders: Sequence[RowEncoder],
    rows: Sequence[bytes],
    total_us: float,
    run_us: float,
) -> bytes:
    """The body of a transaction's answer; `rows` holds the rows of each result, in JSON."""
    tail = transaction_tail(outcome, total_us, run_us)
    return _results_json(outcome.results, encoders, rows) + tail


def _results_json(
    results: Sequence[Result], encoders: Sequence[RowEncoder], rows: Sequence[bytes]
) -> bytes:
    """The results of a transaction, without `transaction_tail`."""
    bodies = [
        b'{"columns":%b,"rows":%b%b' % (encoder.columns_json, json, result_tail(result, encoder))
        for result, encoder, json in zip(results, encoders, rows, strict=True)
    ]
    return TRANSACTION_HEAD + b",".join(bodies)


def transaction_in_parts(
    outcome: TransactionResult, every: Sequence[Sliced], write: Write
) -> Iterator[bytes]:
    """The results of a transaction in parts, without `transaction_tail`."""
    between = TRANSACTION_HEAD
    for result, (encoder, slices) in zip(outcome.results, every, strict=True):
        yield b'%b{"columns":%b,"rows":' % (between, encoder.columns_json)
        yield from rows_in_parts(encoder, slices, write)
        yield result_tail(result, encoder)
        between = b","


def error_object(error: QserverError, request_id: str) -> ErrorObject:
    fields: dict[str, Any] = {}
    if isinstance(error, SerializationFailure) and isinstance(error.conflict, Conflict):
        fields["conflict"] = describe_conflict(error.conflict)
    if error.row is not None:
        fields["row"] = error.row
    if error.where is not None:
        fields["where"] = error.where
    return ErrorObject(
        code=error.code,
        name=error.name,
        message=error.message,
        detail=error.detail,
        hint=error.hint,
        position=error.position,
        statement=error.statement,
        table=error.table,
        column=error.column,
        constraint=error.constraint,
        retryable=error.retryable,
        request_id=request_id,
        **fields,
    )


def error_event(error: QserverError, request_id: str) -> bytes:
    """The event that ends a stream which failed."""
    body = encode_json({"success": False, "error": error_object(error, request_id)})
    return b"event: error\ndata: %b\n\n" % body


def error_body(
    error: QserverError,
    request_id: str,
    total_us: int,
    exec_us: int = 0,
    *,
    results: Sequence[Any] | None = None,
) -> bytes:
    """The body of a failed request's answer; a transaction's has an empty `results`."""
    fields: dict[str, Any] = {} if results is None else {"results": list(results)}
    answer = ErrorAnswer(
        success=False,
        columns=[],
        rows=[],
        affected_rows=0,
        timings=Timings(total_us, exec_us),
        error=error_object(error, request_id),
        **fields,
    )
    return encode_json(answer)


def describe_conflict(conflict: Conflict) -> dict[str, Any]:
    """The read that no longer holds: a key, or a range of keys, and the versions of both states."""
    scanned, columns = conflict.scanned, conflict.columns
    if scanned is None:
        where = {"key": key_object(columns, conflict.key)}
    else:
        ends = {
            "from": key_object(columns, scanned.low),
            "to": key_object(columns, scanned.high),
        }
        where = {"range": ends}
    changed_by = None if conflict.changed_by is None else {"request_id": conflict.changed_by}
    return {
        "reason": conflict.reason,
        "table": conflict.table,
        **where,
        "statement": conflict.statement,
        "read_version": conflict.version_read,
        "changed_version": conflict.version_found,
        "changed_by": changed_by,
    }


def key_object(columns: Sequence[str], key: Key | None) -> dict[str, Any] | None:
    """A key as an object; what follows its last column, or a table without a key, has none."""
    if key is None or not columns:
        return None
    return {name: _plain(each) for name, each in zip(columns, key, strict=False) if each is not TOP}


def _plain(element: object) -> object:
    """An element of a key, which is a value in most cases."""
    if isinstance(element, Descending):
        element = element.value
    if element is NULL_KEY:
        return None
    if isinstance(element, date | time):
        return element.isoformat()
    return element if isinstance(element, bool | int | float | str) else str(element)


def are_short(every: Sequence[Encoded]) -> bool:
    """Whether the rows are few enough to encode without yielding."""
    count = size = 0
    for encoder, rows in every:
        if rows:
            count += len(rows)
            if count > ROWS_ENCODED_AT_ONCE:
                return False
            size += encoder.size_about(rows)
    return size <= ANSWER_PART_BYTES
