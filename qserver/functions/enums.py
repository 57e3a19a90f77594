"""Enums: enum_first, enum_last, enum_range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from qserver.functions.registry import Function
from qserver.functions.signatures import Generic
from qserver.values.enumeration import Enumeration, Label
from qserver.values.types import ANYENUM, SqlType, array_of


def _of_enum(
    name: str, make: Callable[[Enumeration], Callable[..., Any]], array: bool = False
) -> Callable[[tuple[SqlType, ...]], Function]:
    """Return the factory of a function of the type alone: its arguments may be NULL."""

    def function(types: tuple[SqlType, ...]) -> Function:
        enum = types[0].enum
        assert enum is not None, "an enum has labels"
        returns = array_of(types[0]) if array else types[0]
        return Function(name, types, returns, make(enum), strict=False)

    return function


def _first(enum: Enumeration) -> Callable[[Label | None], Label]:
    return lambda _: enum.labels[0]


def _last(enum: Enumeration) -> Callable[[Label | None], Label]:
    return lambda _: enum.labels[-1]


def _all(enum: Enumeration) -> Callable[[Label | None], tuple[Label, ...]]:
    return lambda _: enum.labels


def _between(enum: Enumeration) -> Callable[[Label | None, Label | None], tuple[Label, ...]]:
    """Return the labels between two, inclusive; NULL is the first or the last one."""
    return lambda low, high: tuple(
        label
        for label in enum.labels
        if (low is None or low <= label) and (high is None or label <= high)
    )


FUNCTIONS: Final = (
    Generic("enum_first", (ANYENUM,), _of_enum("enum_first", _first)),
    Generic("enum_last", (ANYENUM,), _of_enum("enum_last", _last)),
    Generic("enum_range", (ANYENUM,), _of_enum("enum_range", _all, array=True)),
    Generic("enum_range", (ANYENUM, ANYENUM), _of_enum("enum_range", _between, array=True)),
)
