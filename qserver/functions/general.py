"""Functions of no type: GREATEST and LEAST, random numbers, user and version."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from qserver.errors import InvalidParameterValue
from qserver.functions.registry import Function
from qserver.values.casts import cast_function
from qserver.values.types import DOUBLE, NAME, TEXT, UUID_TYPE, VOID, SqlType

if TYPE_CHECKING:
    from qserver.functions.context import Context

VERSION: Final = "PostgreSQL 15.0 (qserver)"
"""Clients read this to identify the dialect."""


def extreme(name: str, sql_type: SqlType, count: int, less: Callable[[Any, Any], bool]) -> Function:
    """Return GREATEST or LEAST of `count` values, ordered by `less`; NULLs are ignored."""
    better = less if name == "least" else lambda left, right: less(right, left)

    def choose(*values: Any) -> Any:
        best = None
        for value in values:
            if value is not None and (best is None or better(value, best)):
                best = value
        return best

    return Function(name, (sql_type,) * count, sql_type, choose, strict=False, gives_null=True)


# --- random numbers ------------------------------------------------------------------------------


def random(context: Context) -> float:
    return context.random.random()


def set_seed(context: Context, seed: float) -> None:
    if not -1.0 <= seed <= 1.0:
        raise InvalidParameterValue(f"setseed parameter {seed:g} is out of allowed range [-1,1]")
    context.random.seed(seed)


def random_uuid(context: Context) -> Any:
    """Return a UUID of version 4: 122 random bits."""
    bits = context.random.getrandbits(128)
    bits = bits & ~(0xF << 76) | 4 << 76
    bits = bits & ~(0x3 << 62) | 2 << 62
    return _read_uuid(f"{bits:032x}")


_read_uuid = cast_function(TEXT, UUID_TYPE)


# --- user and version ----------------------------------------------------------------------------

_user = operator.attrgetter("user")
_database = operator.attrgetter("database")


def _constant(name: str, value: str, sql_type: SqlType = NAME) -> Function:
    return Function(name, (), sql_type, lambda: value)


FUNCTIONS: Final = (
    Function("random", (), DOUBLE, random, volatile=True, needs_context=True),
    Function(
        "setseed",
        (DOUBLE,),
        VOID,
        set_seed,
        volatile=True,
        needs_context=True,
        gives_null=True,
    ),
    Function("gen_random_uuid", (), UUID_TYPE, random_uuid, volatile=True, needs_context=True),
    *(
        Function(name, (), NAME, _user, needs_context=True)
        for name in ("current_user", "session_user", "current_role", "user")
    ),
    *(
        Function(name, (), NAME, _database, needs_context=True)
        for name in ("current_database", "current_catalog")
    ),
    _constant("version", VERSION, TEXT),
)
