"""Planted bugs in keys that can only run named statements."""

from __future__ import annotations

from typing import Any, Final

from qserver.control.records import Grant
from qserver.query.sql_database import Statement
from qserver.sql.described import Described
from qserver.web.description.shapes import StatementRequest
from qserver.web.statements import named
from qserver.web.statements.named import Named
from qserver.web.statements.query_calls import TextCall
from qserver.web.statements.requests import statement_of
from simulations.mutants.mutant import Mutant, edited


def _share_by_statements(original: Any) -> Any:
    bound: dict[int, Any] = {}

    def init(self: Named, grant: Grant) -> None:
        original(self, grant)
        self._bound = bound.setdefault(id(grant.statements), grant.bound)

    return init


def _let_sent_parameters_win(original: Any) -> Any:
    def merged(self: Named, statement: Described, params: Any) -> Any:
        bound = self._bound
        sent = params if isinstance(params, dict) else {}
        self._bound = {name: value for name, value in bound.items() if name not in sent}
        try:
            return original(self, statement, params)
        finally:
            self._bound = bound

    return merged


def _bind_the_first_alone(original: Any) -> Any:
    def statement(self: Named, index: int, given: Any) -> Statement:
        if index == 0 or not isinstance(given, dict) or "owner" not in (given.get("params") or {}):
            made: Statement = original(self, index, given)
            return made
        found = self.find(given["statement"])
        return statement_of(index, StatementRequest(found.sql, given["params"]))

    return statement


def _take_text(original: Any) -> Any:
    def limit(self: TextCall, grant: Grant) -> None:
        self._named = Named(grant)

    return limit


def _check_nothing(original: Any) -> Any:
    return lambda self, request, statements: None


UNCHECKED: Final = (Named, "check", _check_nothing)
"""Two checks stand behind each other, so a leak takes two mistakes."""

MUTANTS: Final = (
    Mutant(
        "share_bound_parameters_of_a_key",
        "sessions of one key run with the parameters of the one that came first",
        ("sql_owners",),
        ((Named, "__init__", _share_by_statements),),
    ),
    Mutant(
        "let_sent_parameters_win",
        "a bound parameter that is sent replaces the bound value",
        ("sql_owners",),
        ((Named, "_merged", _let_sent_parameters_win), UNCHECKED),
    ),
    Mutant(
        "bind_the_first_statement_alone",
        "in a transaction only the first statement cannot send a bound parameter",
        ("sql_owners",),
        ((Named, "_statement", _bind_the_first_alone), UNCHECKED),
    ),
    Mutant(
        "take_text_of_a_session",
        "a statement that is sent as text is not compared with those of the key",
        ("sql_owners",),
        ((TextCall, "limit", _take_text), UNCHECKED),
    ),
    Mutant(
        "run_sql_beside_a_name",
        "SQL text that comes beside the name of a statement is run instead",
        ("sql_owners",),
        (
            edited(named._sent, "for name in REFUSED:", "for name in REFUSED[1:]:"),
            edited(
                Named._ordinary,
                '{**options, "sql": statement.sql}',
                '{"sql": statement.sql, **options}',
            ),
            UNCHECKED,
        ),
    ),
    Mutant(
        "leave_long_requests_unbound",
        "parameters are not bound in a request that is decoded in steps",
        ("sql_owners",),
        (
            edited(
                Named.read_query,
                'self._complete(statement, await read_query_request(b"", ordinary, limits))',
                'await read_query_request(b"", ordinary, limits)',
            ),
        ),
    ),
)
