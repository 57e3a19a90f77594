"""Whether a text is the input of a type: pg_input_is_valid, and what would be the error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qserver.errors import QserverError
from qserver.functions.costs import cast_cost
from qserver.functions.objects import names_objects, naming_function
from qserver.functions.registry import Function, TableFunction
from qserver.values.admission import admitter
from qserver.values.casts import cast_function
from qserver.values.types import BOOLEAN, TEXT

if TYPE_CHECKING:
    from qserver.functions.context import Context

_SOFT: Final = frozenset({"22", "42", "3F"})
"""The classes of errors that tell of the text; others tell of the server or of its limits."""


def is_valid(context: Context, text: str, name: str) -> bool:
    return _error(context, "pg_input_is_valid", text, name) is None


def error_info(
    context: Context, text: str, name: str
) -> tuple[tuple[str | None, str | None, str | None, str | None]]:
    error = _error(context, "pg_input_error_info", text, name)
    if error is None:
        return ((None, None, None, None),)
    return ((str(error), error.detail, error.hint, error.code),)


def _error(context: Context, function: str, text: str, name: str) -> QserverError | None:
    """Return the error of reading a text as a type, which may have a length or a precision."""
    assert context.objects is not None
    target = context.objects.type_named(name)
    context.charge(function, cast_cost(TEXT, target)(text))
    try:
        if names_objects(target):
            naming_function(TEXT, target).call(context, text)
        else:
            admitter(target)(cast_function(TEXT, target.bare)(text))
    except QserverError as error:
        if error.code[:2] not in _SOFT:
            raise
        return error
    return None


FUNCTIONS: Final = (
    Function(
        "pg_input_is_valid",
        (TEXT, TEXT),
        BOOLEAN,
        is_valid,
        needs_context=True,
        reads_catalog=True,
    ),
)
TABLE_FUNCTIONS: Final = (
    TableFunction(
        "pg_input_error_info",
        (TEXT, TEXT),
        (("message", TEXT), ("detail", TEXT), ("hint", TEXT), ("sql_error_code", TEXT)),
        error_info,
        needs_context=True,
        reads_catalog=True,
    ),
)
