"""regclass, regtype and their kin: from a text or a number to an object of the catalog.

`'users'::regclass` and `16384::regclass` are calls, not casts, because the name of an object is
what the catalog of the statement says. The other way, to a number or a text, is an ordinary cast.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from qserver.errors import CannotCoerce
from qserver.functions.registry import Function
from qserver.values.arrays import mapped
from qserver.values.casts import cast_function, context_between
from qserver.values.types import (
    OID,
    REG_KINDS,
    STRING_KINDS,
    TEXT,
    Kind,
    SqlType,
    array_of,
)

if TYPE_CHECKING:
    from qserver.functions.context import Context
    from qserver.values.object_names import ObjectName


def names_objects(sql_type: SqlType) -> bool:
    return (sql_type.element or sql_type).kind in REG_KINDS


@lru_cache(maxsize=256)
def naming_function(source: SqlType, target: SqlType) -> Function:
    """Return the cast to such a type, or to an array of them; one object for each pair."""
    if context_between(source, target) is None:
        raise CannotCoerce(f"cannot cast type {source.bare} to {target.bare}")
    kind = (target.element or target).kind
    from_text = (source.element or source).kind in STRING_KINDS
    one = _read if from_text else _named
    split = cast_function(source, array_of(TEXT if from_text else OID)) if target.element else None

    def name(context: Context, value: Any) -> Any:
        if split is None:
            return one(context, kind, value)
        return mapped(lambda each: one(context, kind, each), split(value))

    return Function(kind.value, (source,), target, name, needs_context=True, reads_catalog=True)


def _read(context: Context, kind: Kind, text: str) -> ObjectName:
    assert context.objects is not None
    return context.objects.read(kind, text)


def _named(context: Context, kind: Kind, oid: int) -> ObjectName:
    assert context.objects is not None
    return context.objects.named(kind, int(oid))


def _finder(kind: Kind) -> Any:
    def find(context: Context, text: str) -> ObjectName | None:
        assert context.objects is not None
        return context.objects.find(kind, text)

    return find


FUNCTIONS: Final = tuple(
    Function(
        f"to_{kind.value}",
        (TEXT,),
        SqlType(kind),
        _finder(kind),
        gives_null=True,
        needs_context=True,
        reads_catalog=True,
    )
    for kind in REG_KINDS
    if kind not in (Kind.REGCONFIG, Kind.REGDICTIONARY)
)
