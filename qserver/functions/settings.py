"""current_setting and set_config, and the schemas of search_path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from qserver.errors import NullValueNotAllowed
from qserver.functions.registry import Function
from qserver.values.arrays import Array
from qserver.values.types import BOOLEAN, NAME, TEXT, array_of

if TYPE_CHECKING:
    from qserver.functions.context import Context

_IMPLICIT: Final = "pg_catalog"
"""The schema that is searched whether or not search_path names it."""


def current_setting(context: Context, name: str, missing_ok: bool = False) -> str | None:
    return context.setting(name, missing_ok)


def set_config(
    context: Context, name: str | None, value: str | None, is_local: bool | None
) -> str | None:
    if name is None:
        raise NullValueNotAllowed("SET requires parameter name")
    return context.set_setting(name, value, bool(is_local))


def current_schema(context: Context) -> str | None:
    return next(iter(context.schemas()), None)


def current_schemas(context: Context, implicit: bool) -> Array:
    found = context.schemas()
    if implicit and _IMPLICIT not in found:
        return (_IMPLICIT, *found)
    return found


FUNCTIONS: Final = (
    Function(
        "current_setting", (TEXT,), TEXT, current_setting, needs_context=True, gives_null=True
    ),
    Function(
        "current_setting",
        (TEXT, BOOLEAN),
        TEXT,
        current_setting,
        needs_context=True,
        gives_null=True,
    ),
    Function(
        "set_config",
        (TEXT, TEXT, BOOLEAN),
        TEXT,
        set_config,
        strict=False,
        volatile=True,
        needs_context=True,
        gives_null=True,
    ),
    Function("current_schema", (), NAME, current_schema, needs_context=True, gives_null=True),
    Function("current_schemas", (BOOLEAN,), array_of(NAME), current_schemas, needs_context=True),
)
