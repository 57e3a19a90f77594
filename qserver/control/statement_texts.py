"""Keys that can only run statements stored with them, and the parameters that sessions bind.

    POST /v1/keys ─► checked, described in each database ─► keys.statements, JSON
                                                            keys.bound: what sessions must bind
    POST /v1/session {"bind"} ─► names checked           ─► sessions.bound, JSON

A statement is described when the key is made or changed (`describing`): it is parsed and bound, its
stars are expanded, and the scopes that it needs are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from qserver.control.records import Grant
from qserver.errors import InvalidRequest, RequestTooLarge, Unauthorized
from qserver.limits import (
    BOUND_BYTES_MAX,
    STATEMENT_NAME_LENGTH_MAX,
    STATEMENTS_OF_KEY_BYTES_MAX,
    STATEMENTS_OF_KEY_MAX,
)
from qserver.sql import Described, json_of

Statements = Mapping[str, Described]

_NAME: Final = re.compile(rf"[A-Za-z_][A-Za-z0-9_.-]{{0,{STATEMENT_NAME_LENGTH_MAX - 1}}}")
_BIND: Final = 'Send {"bind": {"name": value}}, with the value that belongs to this user.'
_encode: Final = msgspec.json.Encoder().encode
_statements_decoder: Final = msgspec.json.Decoder(dict[str, Described])
_bound_decoder: Final = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal)


def stored(statements: Statements) -> str:
    return _encode(statements).decode()


def read_statements(text: str) -> Statements:
    return _statements_decoder.decode(text)


def read_bound(text: str | None) -> Mapping[str, Any]:
    return {} if text is None else _bound_decoder.decode(text)


def needed_scopes(statements: Statements) -> tuple[str, ...]:
    """Return the scopes that the statements need."""
    writes = {each.writes for each in statements.values()}
    return tuple(("data:read", "data:write")[each] for each in sorted(writes))


def parameters_of(statements: Statements) -> frozenset[str]:
    return frozenset(name for each in statements.values() for name in each.parameters)


def lacks_one_of(statements: Statements, before: Statements) -> bool:
    """Return whether a text that was there before is gone."""
    texts = {each.sql for each in statements.values()}
    return any(each.sql not in texts for each in before.values())


def lost_parameters(before: Statements, statements: Statements) -> frozenset[str]:
    """Return the parameters that a statement of the same name had before.

    A session that binds one of them ends. Otherwise the client could choose the value of a
    parameter that was renamed, and see the rows of others.
    """
    return frozenset(
        name
        for each in before.keys() & statements.keys()
        for name in before[each].parameters
        if name not in statements[each].parameters
    )


def check_texts(statements: Mapping[str, str]) -> None:
    """Check names and sizes."""
    if not statements:
        raise InvalidRequest("a key that is limited to statements needs at least one")
    if len(statements) > STATEMENTS_OF_KEY_MAX:
        raise InvalidRequest(f"a key has at most {STATEMENTS_OF_KEY_MAX} statements")
    for name in statements:
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"{name!r} cannot be the name of a statement",
                detail=f"A name has 1 to {STATEMENT_NAME_LENGTH_MAX} characters: a letter or _,"
                " then letters, digits, _, . or -.",
            )
    size = sum(len(text.encode("utf-8", "replace")) for text in statements.values())
    if size > STATEMENTS_OF_KEY_BYTES_MAX:
        raise RequestTooLarge(
            f"the statements of a key have at most {STATEMENTS_OF_KEY_BYTES_MAX} bytes"
        )


def checked_must_bind(statements: Statements | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the parameters that every session of a key must bind, or raise."""
    if statements is None:
        raise InvalidRequest("only a key that is limited to statements can name bound parameters")
    unknown = sorted(set(names) - parameters_of(statements))
    if unknown:
        raise InvalidRequest(
            f"no statement of the key has a parameter :{unknown[0]}",
            hint="Send the parameters in `bound` that every session has to bind.",
        )
    return tuple(sorted(set(names)))


def checked_bound(
    grant: Grant, bind: Mapping[str, Any] | None, allow_null: bool = False
) -> tuple[Mapping[str, Any], str]:
    """Check the parameters that a session binds; return them and their JSON."""
    bind = bind or {}
    for name in grant.must_bind:
        if name not in bind:
            raise InvalidRequest(f"a session of this key has to bind :{name}", hint=_BIND)
        if bind[name] is None and not allow_null:
            raise InvalidRequest(
                f"a session of this key cannot bind :{name} to null",
                hint='If that is meant, say so: "allow_null": true.',
            )
    if bind and grant.statements is None:
        raise InvalidRequest(
            "only a key that is limited to statements can bind their parameters",
            hint="Make a key with statements.",
        )
    unknown = sorted(set(bind) - parameters_of(grant.statements or {}))
    if unknown:
        raise InvalidRequest(f"no statement of the key has a parameter :{unknown[0]}")
    text = json_of(bind)
    if len(text.encode()) > BOUND_BYTES_MAX:
        raise InvalidRequest(f"the parameters of a session have at most {BOUND_BYTES_MAX} bytes")
    return bind, text


def check_bound(statements: Statements, bound: Mapping[str, Any], must_bind: Iterable[str]) -> None:
    """Refuse a session that binds parameters which the statements no longer have, or lacks one
    that it must bind."""
    if not bound.keys() >= set(must_bind):
        raise Unauthorized(
            "the key has changed, and a session has to bind a parameter that this one does not",
            hint="Make a new session with the key.",
        )
    if not parameters_of(statements).issuperset(bound):
        raise Unauthorized(
            "the key's statements have changed, and lack a parameter that this session binds",
            hint="Make a new session with the key.",
        )
