"""= <> < <= > >= for JSONB, TIMETZ, arrays and records.

Their values do not compare natively in SQL's order, or may be equal with different texts, so they
compare by key element (see `values.keys`). Within an array or a record NULL equals itself and is
above everything, as in keys.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, Final

from qserver.functions.registry import Aggregate, Function
from qserver.functions.signatures import Generic
from qserver.values.keys import canonical
from qserver.values.types import (
    ANYARRAY,
    BOOLEAN,
    CAREFUL_KINDS,
    JSONB,
    RECORD,
    TIMETZ,
    SqlType,
)

_SIGNS: Final = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _by_key(symbol: str, sql_type: SqlType) -> Function:
    compare = _COMPARE[symbol]
    return Function(
        symbol,
        (sql_type, sql_type),
        BOOLEAN,
        lambda left, right: compare(canonical(left), canonical(right)),
        inline=f"(canonical({{0}}) {_SIGNS[symbol]} canonical({{1}}))",
        names={"canonical": canonical},
        symbol=symbol,
    )


def _of_arrays(symbol: str) -> Callable[[tuple[SqlType, ...]], Function]:
    def make(types: tuple[SqlType, ...]) -> Function:
        (array, _), element = types, types[0].element
        if element is None or element.kind in CAREFUL_KINDS or symbol not in ("=", "<>"):
            return _by_key(symbol, array)
        # Tuples of values that are their own keys; NULL is None, which equals itself.
        inline = f"({{0}} {_SIGNS[symbol]} {{1}})"
        call = _COMPARE[symbol]
        return Function(symbol, (array, array), BOOLEAN, call, inline=inline, symbol=symbol)

    return make


def _announced() -> Iterator[Function | Generic]:
    for symbol in _SIGNS:
        for sql_type in (TIMETZ, JSONB, RECORD):
            yield _by_key(symbol, sql_type)
        yield Generic(symbol, (ANYARRAY, ANYARRAY), _of_arrays(symbol))


OPERATORS: Final = tuple(_announced())


# --- min and max ---------------------------------------------------------------------------------


def _extreme(name: str) -> Callable[[tuple[SqlType, ...]], Aggregate]:
    sign = "<" if name == "min" else ">"
    better = f"canonical({{0}}) {sign} canonical({{s0}})"
    step = f"if {{s0}} is None or {better}: {{s0}} = {{0}}"
    names = {"canonical": canonical}
    return lambda types: Aggregate(name, types, types[0], ("None",), step, "{s0}", names)


AGGREGATES: Final = tuple(Generic(name, (ANYARRAY,), _extreme(name)) for name in ("min", "max"))
