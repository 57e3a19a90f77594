"""How list-append histories are written in these tests, and an oracle that judges small ones.

A history is written one attempt to a line, `T1 2-5 x[1,2] y+3`: number, when it was invoked and
completed, then its operations (`x[1,2]` read that list, `y+3` appended). `2-?` is UNKNOWN, a word
`failed` or `v7` gives the status or the version. Attempts whose times overlap ran at once.

The oracle tries orders, one after the other, until one explains every read. It is too slow for
anything but small histories, and so simple that it is plainly right.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from simulations.checkers.serializability import Anomaly
from simulations.history import Append, Attempt, Key, Operation, Read, Status, Value

State = dict[Key, tuple[Value, ...]]


def history(text: str) -> list[Attempt]:
    return [_attempt(line.split()) for line in text.strip().splitlines()]


def _attempt(words: list[str]) -> Attempt:
    number, times, *rest = words
    invoked, _, completed = times.partition("-")
    status = Status.UNKNOWN if completed == "?" else Status.OK
    version: int | None = None
    operations: list[Operation] = []
    for word in rest:
        if word == "failed":
            status = Status.FAILED
        elif re.fullmatch(r"v\d+", word):
            version = int(word[1:])
        else:
            operations.append(_operation(word))
    end = None if completed == "?" else int(completed)
    return Attempt(int(number[1:]), "client", tuple(operations), int(invoked), end, status, version)


def _operation(word: str) -> Operation:
    if "+" in word:
        key, _, value = word.partition("+")
        return Append(key, int(value))
    key, _, values = word.rstrip("]").partition("[")
    return Read(key, tuple(int(value) for value in values.split(",") if value))


def kinds(anomalies: Sequence[Anomaly]) -> list[str]:
    return [anomaly.kind for anomaly in anomalies]


def explained(
    attempts: Sequence[Attempt], final: Mapping[Key, Sequence[Value]] | None = None
) -> bool:
    """The oracle: is there an order of the attempts that explains every read and the end?"""
    pending = tuple(each for each in attempts if each.status is not Status.FAILED)
    keys = {operation.key for attempt in attempts for operation in attempt.operations}
    tried: set[tuple[tuple[int, ...], str]] = set()

    def search(remaining: tuple[Attempt, ...], state: State) -> bool:
        situation = tuple(each.number for each in remaining), repr(sorted(state.items(), key=repr))
        if situation in tried:
            return False
        tried.add(situation)
        if all(each.status is Status.UNKNOWN for each in remaining) and (
            final is None or all(state.get(key, ()) == tuple(final.get(key, ())) for key in keys)
        ):
            return True  # attempts of unknown outcome need not have happened
        return any(
            search(tuple(each for each in remaining if each is not chosen), after)
            for chosen in remaining
            if not any(_before(other, chosen) for other in remaining)
            if (after := _apply(chosen, state)) is not None
        )

    return search(pending, {})


def _before(one: Attempt, other: Attempt) -> bool:
    return one.completed is not None and one.completed < other.invoked


def _apply(attempt: Attempt, state: State) -> State | None:
    """The state after this attempt, or None if it would have read something else."""
    state = dict(state)
    for operation in attempt.operations:
        values = state.get(operation.key, ())
        if isinstance(operation, Append):
            state[operation.key] = (*values, operation.value)
        elif isinstance(operation, Read) and operation.values != values:
            return None
    return state
