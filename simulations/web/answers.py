"""Reads a response for checkers: results or the error, and whether its form is right.

    JSON ─┬─ success: the result of each statement, with the version
    SSE  ─┴─ no success: the error, by its code and name; whether anything was applied follows

A checker judges this alone, as a client would. A wrong form is a problem, too: a stream that goes
on behind its end, rows that are counted wrongly, a status that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

from qserver import errors
from qserver.errors import QserverError
from qserver.query.results import Result, TransactionResult
from qserver.web.statuses import status_of
from simulations.web.exchange import ConnectionLost, Reply

Complain = Callable[[str], None]


CLASSES: Final[Mapping[tuple[str, str], type[QserverError]]] = {
    (each.code, each.name): each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, QserverError)
}
"""The product's own errors. Tests derive others from them, and an answer never means those."""

decode: Final = msgspec.json.Decoder().decode


def read_answer(reply: Reply, complain: Complain) -> TransactionResult:
    """Return the results, one for each statement, or raise the error in the response."""
    kind = reply.headers[b"content-type"]
    if kind == b"text/event-stream":
        return _read_events(reply, complain)
    answer = decode(reply.body)
    if not answer["success"]:
        error = read_error(answer["error"], reply, complain)
        if reply.status != status_of(error):
            complain(f"{error!r} has the status {reply.status}")
        if answer["rows"] or answer.get("results") or answer["affected_rows"]:
            complain(f"{error!r} has results: {answer}")
        raise error
    if reply.status != 200:
        complain(f"a success has the status {reply.status}")
    version, retries = answer["version"], answer["retries"]
    single = "results" not in answer
    results = [
        _result(each["columns"], each["types"], each["rows"], each["affected_rows"], version)
        for each in ([answer] if single else answer["results"])
    ]
    if sum(each.affected_rows for each in results) != answer["affected_rows"]:
        complain(f"affected rows do not add up: {answer}")
    return TransactionResult(results, version, retries)


def _read_events(reply: Reply, complain: Complain) -> TransactionResult:
    events = [each.split(b"\n") for each in reply.body.split(b"\n\n")[:-1]]
    named = [each for each in events if not each[0].startswith(b":")]
    kinds = [lines[0].removeprefix(b"event: ") for lines in named]
    data = [decode(lines[-1].removeprefix(b"data: ")) for lines in named]
    rows = data[1:-1]
    if kinds[:1] != [b"columns"] or kinds[-1] not in (b"done", b"error"):
        complain(f"a stream begins with {kinds[:1]} and ends with {kinds[-1:]}")
        raise ConnectionLost("the stream has no beginning or no end")
    if any(kind != b"row" for kind in kinds[1:-1]):
        complain(f"a stream has {kinds} in its middle")
    heading, end = data[0], data[-1]
    version = heading["version"]
    ids = [lines[1] for lines in named[1:-1]]
    if ids != [b"id: %d:%d" % (version, number) for number in range(1, len(rows) + 1)]:
        complain(f"rows of a stream have the ids {ids}")
    if kinds[-1] == b"error":
        raise read_error(end["error"], reply, complain)
    if end["row_count"] != len(rows) or end["version"] != version or not end["success"]:
        complain(f"{len(rows)} rows of version {version} end with {end}")
    affected = end["affected_rows"]
    result = _result(heading["columns"], heading["types"], rows, affected, version)
    return TransactionResult([result], version)


def read_error(told: dict[str, Any], reply: Reply, complain: Complain) -> QserverError:
    kind = CLASSES.get((told["code"], told["name"]), QserverError)
    error = kind.__new__(kind)
    QserverError.__init__(error, told["message"], detail=told.get("detail"))
    error.row = told.get("row")
    if (told.get("conflict") or {}).get("reason") == "a table has changed":
        error.retryable = False  # the same request cannot succeed
    if (told["code"], told["name"], told["retryable"]) != (kind.code, kind.name, error.retryable):
        complain(f"an error is told as {told}, and is {error!r}")
    if told["request_id"] != reply.request_id:
        complain(f"the error of request {reply.request_id} names {told['request_id']}")
    return error


def _result(
    columns: list[str], types: list[str], rows: list[Any], affected: int, version: int
) -> Result:
    values = [list(row.values()) if isinstance(row, dict) else row for row in rows]
    exact = [at for at, each in enumerate(types) if each.startswith("numeric")]
    for row in values:
        for at in exact:
            row[at] = None if row[at] is None else Decimal(row[at])
    return Result(tuple(columns), (), [tuple(row) for row in values], affected, version)
