"""Decodes requests of a key that can only run its stored statements.

    {"statement": "my_todos", "params": {"done": false}}      of a session that binds user = 42
    ──► {"sql": "SELECT … WHERE owner = :user …", "params": {"done": false, "user": 42}}

A request names a statement; the name is replaced by its text. The rest is read as for any other
key, with the same options and errors. Options that could show more than the statement does are
refused: SQL text, dry runs, older versions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, Final

import msgspec
from msgspec.structs import fields, replace

from qserver.control.records import Grant
from qserver.control.tiers import Limits
from qserver.errors import DataError, Forbidden, InvalidRequest, ProtocolViolation, QserverError
from qserver.query.sql_database import Statement
from qserver.sql import Described
from qserver.web.description.shapes import (
    NAMED_REFUSED,
    QueryRequest,
    StatementRequest,
    TransactionRequest,
)
from qserver.web.statements.requests import (
    BODY_BYTES_SHORT,
    JSON_TYPES,
    check_count,
    check_media_type,
    check_params,
    decode,
    decode_value,
    decode_value_in_steps,
    decoder_of,
    query_request,
    read_query_request,
    statement_of,
    transaction_request,
)

REFUSED: Final = ("sql", *NAMED_REFUSED)
"""Fields that such a key may not send."""

_ABSENT: Final = msgspec.Raw()


def _undecoded(name: str, shape: type[msgspec.Struct], *more: str) -> Any:
    """Return a struct of the fields that a request may have, each as undecoded JSON."""
    names = dict.fromkeys([*more, *(each.name for each in fields(shape)), *REFUSED])
    raw = [(each, msgspec.Raw, _ABSENT) for each in names]
    return msgspec.defstruct(name, raw, frozen=True, forbid_unknown_fields=True)


_query_decoder: Final[msgspec.json.Decoder[Any]] = decoder_of(
    _undecoded("NamedQuery", QueryRequest, "statement")
)
_transaction_decoder: Final[msgspec.json.Decoder[Any]] = decoder_of(
    _undecoded("NamedTransaction", TransactionRequest)
)
_encode: Final = msgspec.json.Encoder().encode


class Named:
    """Decodes the requests of one grant."""

    def __init__(self, grant: Grant) -> None:
        assert grant.statements is not None, "it is limited to statements"
        self._statements = grant.statements
        self._bound = grant.bound
        self._limits = grant.limits

    def query(self, content_type: bytes, body: bytes) -> QueryRequest:
        statement, ordinary = self._ordinary(content_type, body)
        return self._complete(statement, query_request(b"", ordinary))

    async def read_query(self, content_type: bytes, body: bytes, limits: Limits) -> QueryRequest:
        """The same; other tasks run while a long body is decoded."""
        statement, ordinary = self._ordinary(content_type, body)
        return self._complete(statement, await read_query_request(b"", ordinary, limits))

    def find(self, name: str) -> Described:
        found = self._statements.get(name)
        if found is None:
            raise Forbidden(f"this key has no statement {name!r}")
        return found

    def check(self, request: msgspec.Struct, statements: Sequence[Statement]) -> None:
        """Check again, where every request passes, that its statement is one of this grant's.

        A decoder that forgot about such grants would otherwise run any SQL.
        """
        refuse_options(request)
        texts = {each.sql: each for each in self._statements.values()}
        for statement in statements:
            known = texts.get(statement.sql)
            given = statement.parameters or {}
            if known is None or not isinstance(given, Mapping):
                raise _refused("sql")
            for name in known.parameters:
                if name in self._bound and given.get(name, _ABSENT) != self._bound[name]:
                    raise Forbidden(f"the session binds the parameter :{name}")

    async def transaction(
        self, content_type: bytes, body: bytes
    ) -> tuple[TransactionRequest, list[Statement]]:
        """POST /v1/transaction, long or short."""
        began = perf_counter()
        check_media_type(content_type, JSON_TYPES, "application/json")
        asked = decode(_transaction_decoder, body)
        options = _sent(asked)
        if "statements" not in options:
            raise InvalidRequest("the request lacks the field statements")
        raw = bytes(options.pop("statements"))
        request, _ = transaction_request(b"", _encode({**options, "statements": ["-"]}))
        if len(body) <= BODY_BYTES_SHORT:
            given = decode_value(raw)
        else:
            given, left = await decode_value_in_steps(raw, began, request.timeout_ms, self._limits)
            request = replace(request, timeout_ms=left)
        if not isinstance(given, list):
            raise InvalidRequest("statements is not an array")
        check_count(given)
        return request, [self._statement(at, each) for at, each in enumerate(given)]

    def _ordinary(self, content_type: bytes, body: bytes) -> tuple[Described, bytes]:
        """Return the named statement, and the request with its text instead."""
        check_media_type(content_type, JSON_TYPES, "application/json")
        asked = decode(_query_decoder, body)
        options = _sent(asked)
        if "statement" not in options:
            raise InvalidRequest("the request lacks the field statement")
        statement = self.find(_text(decode_value(bytes(options.pop("statement")))))
        return statement, _encode({**options, "sql": statement.sql})

    def _complete(self, statement: Described, request: QueryRequest) -> QueryRequest:
        return replace(request, params=self._merged(statement, request.params))

    def _statement(self, index: int, given: Any) -> Statement:
        try:
            if isinstance(given, str) or (isinstance(given, dict) and "sql" in given):
                raise _refused("sql")
            known = {"statement", "params"}
            if not (isinstance(given, dict) and known.issuperset(given)):
                raise InvalidRequest(
                    "a statement of a transaction has the fields statement, params"
                )
            found = self.find(_text(given.get("statement")))
            params = self._merged(found, given.get("params"))
            return statement_of(index, StatementRequest(found.sql, params))
        except QserverError as error:
            error.statement = index
            raise

    def _merged(self, statement: Described, params: Any) -> dict[str, Any] | None:
        if params is None:
            params = {}
        if not isinstance(params, dict):
            raise InvalidRequest("the parameters of a named statement have names: send an object")
        check_params(params)
        for name in self._bound:
            if name in params:
                raise Forbidden(f"the session binds the parameter :{name}, it cannot be sent")
        bound = {name: self._bound[name] for name in statement.parameters if name in self._bound}
        return {**params, **bound} or None


def _sent(asked: Any) -> dict[str, Any]:
    """Return the fields that were sent; raise Forbidden for a refused one."""
    sent = {
        each.name: value
        for each in fields(asked)
        if (value := getattr(asked, each.name)) is not _ABSENT
    }
    for name in REFUSED:
        if name in sent:
            raise _refused(name)
    return sent


def refuse_options(request: msgspec.Struct) -> None:
    """Raise Forbidden for a decoded request with a refused option."""
    for name in NAMED_REFUSED:
        value = getattr(request, name, None)
        if not (value is None or value is False):  # the version 0 is not False
            raise _refused(name)


def _text(name: Any) -> str:
    if not isinstance(name, str):
        raise InvalidRequest("the name of a statement is a text")
    return name


def _refused(name: str) -> Forbidden:
    return Forbidden(
        f"this key can only run its statements: it may not send {name}",
        hint='Send {"statement": …, "params": {…}}.',
    )


def hide_rows(error: QserverError) -> None:
    """Remove from an error rows, columns or texts that its statement does not show."""
    if error.code.startswith("QS") or isinstance(error, ProtocolViolation):
        return
    if isinstance(error, DataError):  # its message quotes the value, which may be another row's
        error.message = error.name.replace("_", " ")
    error.detail = error.hint = error.position = None
    if hasattr(error, "conflict"):
        error.conflict = None
