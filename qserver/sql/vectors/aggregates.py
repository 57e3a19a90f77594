"""Aggregates a chunk, and adds the result to the states of its groups.

    count                 the rows of a group
    sum, avg              exact: integers of 64 bits, in two halves where their sum may be longer
    sum, avg of doubles   added to the state in the order of the rows, as row code adds them
    min, max              of numbers, dates, and positions of words
    bool_and, bool_or

Everything is computed first, and may be refused; merging it into the states, which row code uses
too, cannot fail. A `Partial` is the result of one aggregate call for each group of the chunk.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from qserver.functions.aggregates.basic import AVERAGED
from qserver.functions.numbers.numeric_math import exact_add
from qserver.sql.vectors.grouping import Groups
from qserver.sql.vectors.operations import Refused, full
from qserver.sql.vectors.plans import Call
from qserver.values import vector_families as families
from qserver.values.vectors import Array, Vector, decimal_of, values_of

Sums = list[Any]

_HALF: Final = 28
"""The bits of the lower half of a long integer."""

_EXACT_FLOAT: Final = 2**53


class Partial(NamedTuple):
    """For each group the number of values, and their sum or extreme; None without a value."""

    counts: list[int]
    values: list[Any]


def partial(
    call: Call,
    argument: Vector | None,
    kept: Array | None,
    groups: Groups | None,
    length: int,
    states: list[Sums | None],
) -> Partial:
    """Compute one call over a chunk. `kept` are the rows that pass its FILTER."""
    valid = kept
    if argument is not None and argument.nulls is not None:
        valid = ~argument.nulls if kept is None else kept & ~argument.nulls
    if call.name == "count":
        return Partial(_counts(valid, groups, length), [])
    assert argument is not None
    values = full(argument, length)
    codes = None if groups is None else groups.codes
    if valid is not None:
        values = values[valid]
        codes = None if codes is None else codes[valid]
    counts = _counts(valid, groups, length)
    if call.name in ("sum", "avg"):
        if call.family == families.FLOAT:
            return Partial(counts, _float_sums(call, values, codes, groups, states))
        return Partial(counts, _sums(call, argument, values, codes, groups))
    if call.name in ("min", "max"):
        return Partial(counts, _extremes(call, argument, values, codes, groups, counts))
    return Partial(counts, _truths(call, values, codes, groups, counts))


def merge(call: Call, found: Partial, states: list[Sums]) -> None:
    """Add a partial result to the states of the groups."""
    at = call.state
    if call.name == "count":
        for state, count in zip(states, found.counts, strict=True):
            state[at] += count
        return
    step = _STEPS.get((call.name, call.family)) or _STEPS[call.name, ""]
    for state, count, value in zip(states, found.counts, found.values, strict=True):
        if count:
            step(state, at, count, value)


# --- counts --------------------------------------------------------------------------------------


def _counts(valid: Array | None, groups: Groups | None, length: int) -> list[int]:
    if groups is None:
        return [length if valid is None else int(np.count_nonzero(valid))]
    rows = groups.rows
    if valid is not None:
        rows = np.bincount(groups.codes[valid], minlength=groups.space)
    counts: list[int] = rows[groups.present].tolist()
    return counts


# --- sums ----------------------------------------------------------------------------------------


def _sums(
    call: Call, argument: Vector, values: Array, codes: Array | None, groups: Groups | None
) -> list[Any]:
    sums = _integer_sums(argument, values, codes, groups)
    if call.family == families.NUMERIC:
        return [decimal_of(each, argument.scale) for each in sums]
    return sums


def _integer_sums(
    argument: Vector, values: Array, codes: Array | None, groups: Groups | None
) -> list[int]:
    most = max(abs(argument.low), abs(argument.high)) * len(values)
    if groups is None:
        if most < 2**63:
            return [int(values.sum(dtype=np.int64))]
        return [(int((values >> _HALF).sum()) << _HALF) + int((values & _LOWER).sum())]
    if most < _EXACT_FLOAT:  # floats are exact so far
        return _grouped(values, codes, groups)
    upper = _grouped(values >> _HALF, codes, groups)
    lower = _grouped(values & _LOWER, codes, groups)
    return [(high << _HALF) + low for high, low in zip(upper, lower, strict=True)]


_LOWER: Final = (1 << _HALF) - 1


def _grouped(values: Array, codes: Array | None, groups: Groups) -> list[int]:
    assert codes is not None
    sums = np.bincount(codes, weights=values, minlength=groups.space)[groups.present]
    found: list[int] = sums.astype(np.int64).tolist()
    return found


def _float_sums(
    call: Call,
    values: Array,
    codes: Array | None,
    groups: Groups | None,
    states: list[Sums | None],
) -> list[float]:
    """Return the states with the values added one after the other, as row code adds them."""
    before = [0.0 if state is None else state[call.state] or 0.0 for state in states]
    if call.name == "avg" and not (_are_averaged(values) and _are_averaged(np.array(before))):
        raise Refused  # row code watches for the overflow that PostgreSQL has
    if groups is None:
        sums = np.add.accumulate(np.concatenate((before, values)))[-1:]
    else:
        assert codes is not None
        all_codes = np.concatenate((groups.present, codes))
        all_values = np.concatenate((before, values))
        sums = np.bincount(all_codes, weights=all_values, minlength=groups.space)
        sums = sums[groups.present]
    if not np.isfinite(sums).all():
        raise Refused
    if not sums.all() and np.signbit(values).any():
        raise Refused  # 0 or -0: that depends on the first
    found: list[float] = sums.tolist()
    return found


def _are_averaged(values: Array) -> bool:
    return not len(values) or bool(values.min() >= -AVERAGED and values.max() <= AVERAGED)


# --- extremes and truths -------------------------------------------------------------------------


def _extremes(
    call: Call,
    argument: Vector,
    values: Array,
    codes: Array | None,
    groups: Groups | None,
    counts: list[int],
) -> list[Any]:
    if values.dtype.kind == "f" and not values.all() and np.signbit(values[values == 0.0]).any():
        raise Refused  # of 0 and -0 the last wins
    if not len(values):
        return [None] * len(counts)
    if groups is None:
        found = [(values.min() if call.name == "min" else values.max()).item()]
    else:
        assert codes is not None
        found = _extremes_of_groups(call.name == "min", values, codes, groups)
    return values_of(found, call.family, argument.scale, argument.words)


def _extremes_of_groups(least: bool, values: Array, codes: Array, groups: Groups) -> list[Any]:
    best = np.full(groups.space, values.max() if least else values.min())
    (np.minimum if least else np.maximum).at(best, codes, values)
    found: list[Any] = best[groups.present].tolist()
    return found


def _truths(
    call: Call, values: Array, codes: Array | None, groups: Groups | None, counts: list[int]
) -> list[bool]:
    every = call.name != "bool_or"
    if groups is None:
        return [bool(values.all() if every else values.any())]
    assert codes is not None
    true = np.bincount(codes[values], minlength=groups.space)[groups.present].tolist()
    return [
        number == count if every else number > 0 for number, count in zip(true, counts, strict=True)
    ]


# --- merging -------------------------------------------------------------------------------------


def _add(state: Sums, at: int, count: int, value: Any) -> None:
    before = state[at]
    state[at] = value if before is None else before + value


def _add_numeric(state: Sums, at: int, count: int, value: Any) -> None:
    before = state[at]
    state[at] = value if before is None else exact_add(before, value)


def _replace(state: Sums, at: int, count: int, value: Any) -> None:
    state[at] = value


def _add_average(state: Sums, at: int, count: int, value: Any) -> None:
    state[at] += value
    state[at + 1] += count


def _add_numeric_average(state: Sums, at: int, count: int, value: Any) -> None:
    state[at] = exact_add(state[at], value)
    state[at + 1] += count


def _replace_average(state: Sums, at: int, count: int, value: Any) -> None:
    state[at] = value
    state[at + 1] += count


def _least(state: Sums, at: int, count: int, value: Any) -> None:
    if state[at] is None or value < state[at]:
        state[at] = value


def _greatest(state: Sums, at: int, count: int, value: Any) -> None:
    if state[at] is None or value > state[at]:
        state[at] = value


def _least_number(state: Sums, at: int, count: int, value: Any) -> None:
    """Of equal values the last wins, and NaN is the greatest: see `functions.aggregates.basic`."""
    before = state[at]
    if before is None or before != before or value <= before:
        state[at] = value


def _greatest_number(state: Sums, at: int, count: int, value: Any) -> None:
    before = state[at]
    if before is None or (before == before and value >= before):
        state[at] = value


def _every(state: Sums, at: int, count: int, value: Any) -> None:
    if state[at] is not False:
        state[at] = value


def _any(state: Sums, at: int, count: int, value: Any) -> None:
    if state[at] is not True:
        state[at] = value


_STEPS: Final = {
    ("sum", families.INTEGER): _add,
    ("sum", families.NUMERIC): _add_numeric,
    ("sum", families.FLOAT): _replace,
    ("avg", families.INTEGER): _add_average,
    ("avg", families.NUMERIC): _add_numeric_average,
    ("avg", families.FLOAT): _replace_average,
    ("min", families.NUMERIC): _least_number,
    ("min", families.FLOAT): _least_number,
    ("min", ""): _least,
    ("max", families.NUMERIC): _greatest_number,
    ("max", families.FLOAT): _greatest_number,
    ("max", ""): _greatest,
    ("bool_and", ""): _every,
    ("every", ""): _every,
    ("bool_or", ""): _any,
}
