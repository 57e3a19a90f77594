"""nextval, currval, lastval, setval: numbers from outside of the transaction.

The execution's context provides the numbers, the same ones when the transaction is retried. A
sequence is named by text; PostgreSQL's `regclass` is text here.
"""

from __future__ import annotations

from typing import Final

from qserver.functions.context import Context, SequencePort
from qserver.functions.registry import Function
from qserver.values.types import BIGINT, BOOLEAN, TEXT, SqlType


def _sequences(context: Context) -> SequencePort:
    assert context.sequences is not None, "an execution that may use sequences has them"
    return context.sequences


def next_value(context: Context, name: str) -> int:
    return _sequences(context).next(name)


def current_value(context: Context, name: str) -> int:
    return _sequences(context).current(name)


def last_value(context: Context) -> int:
    return _sequences(context).last()


def set_value(context: Context, name: str, value: int, called: bool = True) -> int:
    return _sequences(context).set(name, value, called)


def _function(name: str, parameters: tuple[SqlType, ...], call: object) -> Function:
    return Function(
        name,
        parameters,
        BIGINT,
        call,  # type: ignore[arg-type]
        volatile=True,
        needs_context=True,
    )


FUNCTIONS: Final = (
    _function("nextval", (TEXT,), next_value),
    _function("currval", (TEXT,), current_value),
    _function("lastval", (), last_value),
    _function("setval", (TEXT, BIGINT), set_value),
    _function("setval", (TEXT, BIGINT, BOOLEAN), set_value),
)
