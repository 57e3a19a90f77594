"""nextval, currval, lastval, setval: numbers from outside of the transaction.

The execution's context provides the numbers, the same ones when the transaction is retried. A
sequence is named by text, or by its regclass, which is its name in the catalog.
"""

from __future__ import annotations

from typing import Final

from qserver.functions.context import Context, SequencePort
from qserver.functions.registry import Function
from qserver.values.object_names import ObjectName
from qserver.values.types import BIGINT, BOOLEAN, REGCLASS, TEXT, SqlType


def _sequences(context: Context) -> SequencePort:
    assert context.sequences is not None, "an execution that may use sequences has them"
    return context.sequences


def _name(sequence: str | ObjectName) -> str:
    return sequence.text if isinstance(sequence, ObjectName) else sequence


def next_value(context: Context, name: str | ObjectName) -> int:
    return _sequences(context).next(_name(name))


def current_value(context: Context, name: str | ObjectName) -> int:
    return _sequences(context).current(_name(name))


def last_value(context: Context) -> int:
    return _sequences(context).last()


def set_value(context: Context, name: str | ObjectName, value: int, called: bool = True) -> int:
    return _sequences(context).set(_name(name), value, called)


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
    *(_function("nextval", (name,), next_value) for name in (TEXT, REGCLASS)),
    *(_function("currval", (name,), current_value) for name in (TEXT, REGCLASS)),
    _function("lastval", (), last_value),
    *(_function("setval", (name, BIGINT), set_value) for name in (TEXT, REGCLASS)),
    *(_function("setval", (name, BIGINT, BOOLEAN), set_value) for name in (TEXT, REGCLASS)),
)
