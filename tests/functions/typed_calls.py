"""Calls of operators and functions on typed texts, by way of the resolver, without a statement.

`called("+", (DATE, "2020-01-31"), (INTERVAL, "1 month"))` is the text of what PostgreSQL would
answer to `date '2020-01-31' + interval '1 month'`, or `error 22008: …`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random
from typing import Any

from qserver.errors import QserverError
from qserver.functions.context import Context
from qserver.functions.resolve import (
    resolve_aggregate,
    resolve_function,
    resolve_operator,
    resolve_table_function,
)
from qserver.values.text_output import text_function
from qserver.values.types import TEXT, UNKNOWN, SqlType
from tests.values.making import cast

NOW = datetime(2024, 2, 29, 13, 14, 15, 678_901, tzinfo=UTC)

Argument = tuple[SqlType, str | None]


def context() -> Context:
    return Context(NOW, Random(0), lambda: None, 2**30, lambda: 1)


def called(name: str, *arguments: Argument) -> str | None:
    """The result as text, NULL as None, an error as its code and message."""
    try:
        return _result(name, arguments)
    except QserverError as error:
        return f"error {error.code}: {error.message}"


def _result(name: str, arguments: tuple[Argument, ...]) -> str | None:
    types = [sql_type for sql_type, _ in arguments]
    if name.isidentifier():
        resolved = resolve_function(name, types)
    else:
        resolved = resolve_operator(name, types[0] if len(types) == 2 else None, types[-1])
    function = resolved.function
    values = _values(arguments, resolved.parameters)
    if function.strict and None in values:
        return None
    if function.takes_context:
        values = [context(), *values]
    result = function.call(*values)
    assert result is not None or function.gives_null, f"{name} says that it gives no NULL"
    if function.inline is not None and result is not None:
        assert _inlined(function.inline, function.names, values) == result
    return None if result is None else text_function(resolved.returns)(result)


def _values(arguments: tuple[Argument, ...], parameters: tuple[SqlType, ...]) -> list[Any]:
    return [value_of(each, wanted) for each, wanted in zip(arguments, parameters, strict=True)]


def value_of(argument: Argument, wanted: SqlType) -> Any:
    """A typed text as a value of the type that a function wants."""
    sql_type, text = argument
    if text is None:
        return None
    value = text if sql_type == UNKNOWN else cast(text, TEXT, sql_type)
    return cast(value, sql_type, wanted)


def _inlined(template: str, names: Any, values: list[Any]) -> Any:
    """The result of a template, which must be that of the call."""
    places = [f"x{at}" for at in range(len(values))]
    source = template.format(*places, v="v", w="w")
    return eval(source, {**names, **dict(zip(places, values, strict=True))})


def rows_of(name: str, *arguments: Argument) -> list[tuple[str | None, ...]] | str:
    """The rows of a table function as texts, or the error."""
    try:
        resolved = resolve_table_function(name, [sql_type for sql_type, _ in arguments])
        values = _values(arguments, resolved.parameters)
        if resolved.function.strict and None in values:
            return []
        shows = [text_function(sql_type) for _, sql_type in resolved.function.columns]
        return [
            tuple(
                None if value is None else show(value)
                for show, value in zip(shows, row, strict=True)
            )
            for row in resolved.function.call(*values)
        ]
    except QserverError as error:
        return f"error {error.code}: {error.message}"


def aggregated(name: str, *columns: tuple[SqlType, list[str | None]]) -> str | None:
    """An aggregate over columns of typed texts."""
    resolved = resolve_aggregate(name, [sql_type for sql_type, _ in columns])
    aggregate = resolved.aggregate
    names: dict[str, Any] = dict(aggregate.names)
    slots = {f"s{at}": f"state{at}" for at in range(len(aggregate.initial))}
    for slot, initial in zip(slots.values(), aggregate.initial, strict=True):
        names[slot] = eval(initial, names)
    places = [f"x{at}" for at in range(len(columns))]
    step = compile(aggregate.step.format(*places, **slots, v="v", w="w"), "step", "exec")
    for row in zip(*(texts for _, texts in columns), strict=True):
        for place, (sql_type, _), text, wanted in zip(
            places, columns, row, resolved.parameters, strict=True
        ):
            names[place] = value_of((sql_type, text), wanted)
        if not aggregate.strict or all(names[place] is not None for place in places):
            exec(step, names)
    result = eval(aggregate.finish.format(**slots, v="v", w="w"), names)
    return None if result is None else text_function(resolved.returns)(result)
