"""The steps of programs over texts: what depends on one text is computed once for each word.

    words    AIR MAIL SHIP          l_shipmode LIKE '%I%'  is a table of three truths,
    codes    0 2 2 1 0 …            which the codes of the rows choose from

A vector without words has its texts as they are, one for each row: those of a column of many texts
(`texts`). What depends on a text is computed for each row then.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Any, Final

import numpy as np

from qserver.errors import QserverError
from qserver.functions.registry import Function
from qserver.sql.vectors.operations import COMPARE, Refused, truth_of
from qserver.values.types import INTEGER_KINDS, Kind
from qserver.values.vectors import Array, Vector, integers

CALLS_MAX: Final = 8192
"""More calls of a function at once would take too long: some are left to row code."""


def compare_text(symbol: str, left: Vector, right: str) -> Vector:
    words = left.words
    if words is None:
        return truth_of(COMPARE[symbol](left.values, right), left.nulls)
    first, last = bisect_left(words, right), bisect_right(words, right)
    codes = left.values
    if symbol in ("=", "<>"):
        same = codes == first if first < last else False
        return truth_of(same if symbol == "=" else ~same if first < last else True, left.nulls)
    if symbol in ("<", ">="):
        less = codes < first if first < len(words) else True
        wanted = symbol == "<"
    else:
        less = codes < last if last < len(words) else True
        wanted = symbol == "<="
    if less is True:
        return truth_of(wanted, left.nulls)
    return truth_of(less if wanted else ~less, left.nulls)


def compare_texts(symbol: str, left: Vector, right: Vector) -> Vector:
    """Compare texts of two columns: by their places among the words of both."""
    nulls = left.nulls
    if right.nulls is not None:
        nulls = right.nulls if nulls is None else nulls | right.nulls
    compare = COMPARE[symbol]
    if left.words is None or right.words is None:
        return truth_of(compare(texts(left), texts(right)), nulls)
    if left.words == right.words:
        return truth_of(compare(left.values, right.values), nulls)
    words = sorted({*left.words, *right.words})
    place = dict(zip(words, range(len(words)), strict=True))
    one, other = (
        np.array([place[word] for word in side.words or ()], np.int32)[side.values]
        for side in (left, right)
    )
    return truth_of(compare(one, other), nulls)


def texts(vector: Vector) -> Array:
    """Return the texts of a vector, each as it is."""
    if vector.words is None:
        values: Array = vector.values
        return values
    table = np.empty(len(vector.words), object)
    table[:] = vector.words
    found: Array = table[vector.values]
    return found


def by_word(detail: tuple[Function, int], *inputs: Any) -> Vector:
    """Call a function of one text; its other arguments are constants."""
    function, place = detail
    operand: Vector = inputs[place]
    words, codes = operand.words, operand.values
    if words is None:
        words, codes = codes.tolist(), None
    elif len(words) > len(codes):
        used, codes = np.unique(codes, return_inverse=True)
        words = [words[at] for at in used.tolist()]
    if len(words) > CALLS_MAX:
        raise Refused
    others = [each if isinstance(each, str) else each.values for each in inputs]
    try:
        found = _results(function, place, others, words)
    except QserverError as error:  # row code raises the same, if a row needs it
        raise Refused from error
    if function.returns.kind is Kind.BOOLEAN:
        truths = np.array(found, np.bool_)
        return truth_of(truths if codes is None else truths[codes], operand.nulls)
    if function.returns.kind in INTEGER_KINDS:
        numbers = np.array(found or [0], np.int64)
        return integers(numbers if codes is None else numbers[codes], operand.nulls)
    return _numbered(found, codes, operand.nulls)


def _results(function: Function, place: int, others: list[Any], words: list[str]) -> list[Any]:
    if place == 0 and len(others) == 2:
        if function.prepare_all is not None:
            return function.prepare_all(others[1])(words)
        if function.prepare is not None:
            return list(map(function.prepare(others[1]), words))
    before, after, call = others[:place], others[place + 1 :], function.call
    return [call(*before, word, *after) for word in words]


def _numbered(found: list[str], codes: Array | None, nulls: Array | None) -> Vector:
    """Return texts as a vector with words; `codes` are their places for each row."""
    distinct = sorted(set(found))
    place = dict(zip(distinct, range(len(distinct)), strict=True))
    table = np.array([place[text] for text in found], np.int32)
    return Vector(
        table if codes is None else table[codes], nulls, 0, len(distinct) - 1, 0, distinct
    )
