"""Prints a tree of `syntax` as a Python regular expression, and estimates its cost.

`ways` bounds the time of Python's backtracking, which may try all of them.
"""

from __future__ import annotations

from typing import Final

from qserver.functions.regex.syntax import (
    Back,
    Choice,
    Group,
    Look,
    Node,
    One,
    Place,
    Repeat,
    Sequence,
    bad,
)

_PLACES: Final = {
    "start": r"\A",
    "end": r"\Z",
    "line start": r"(?:\A|(?<=\n))",
    "line end": r"(?:\Z|(?=\n))",
    "word start": r"(?:(?<!\w)(?=\w))",
    "word end": r"(?:(?<=\w)(?!\w))",
    "boundary": r"\b",
    "no boundary": r"\B",
}
WAYS_MOST: Final = 1 << 40
"""The limit of the count of ways."""

_WAYS_BITS: Final = 64


def python_source(node: Node, lazy: bool = False) -> str:
    """Print a tree; `lazy` makes greedy repetitions lazy, as inside of (…){1,1}?."""
    match node:
        case One(source):
            return source
        case Place(kind):
            return _PLACES[kind]
        case Sequence(parts):
            return "".join(_inside(part, lazy) for part in parts)
        case Choice(options):
            return "|".join(python_source(option, lazy) for option in options)
        case Group(_, part):
            return f"({python_source(part, lazy)})"
        case Look(opening, part):
            return f"({opening}{python_source(part)})"
        case Back(number):
            return f"(?:\\{number})"
        case Repeat(part, 1, 1, greedy):
            return _inside(part, lazy if greedy is None else not greedy)
        case Repeat(part, least, most, greedy):
            bounds = _bounds(least, most)
            reluctant = "" if greedy is not False and not lazy else "?"
            return f"(?:{python_source(part, lazy)}){bounds}{reluctant}"
    raise AssertionError(f"no such node: {node}")


def _inside(part: Node, lazy: bool) -> str:
    source = python_source(part, lazy)
    return f"(?:{source})" if isinstance(part, Choice) else source


def _bounds(least: int, most: int | None) -> str:
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    return "?" if (least, most) == (0, 1) else f"{{{least},{most}}}"


def ways(node: Node, length: int) -> int:
    """Return how many ways Python may try from one place of a text of that length, at most.

    The ways of a sequence multiply: x?x?x? has eight, and .*.*.* the cube of the length.
    """
    match node:
        case Sequence(parts):
            total = 1
            for part in parts:
                total = min(total * ways(part, length), WAYS_MOST)
            return total
        case Choice(options):
            return min(sum(ways(option, length) for option in options), WAYS_MOST)
        case Group(_, part) | Look(_, part):
            return ways(part, length)
        case Repeat(part, least, most, _):
            most = length if most is None else min(most, length)
            return _ways_of_repeat(ways(part, length), least, max(most, least))
        case _:
            return 1


def _ways_of_repeat(each: int, least: int, most: int) -> int:
    """Return the ways of a repetition whose part matches in `each` ways."""
    if each == 1:
        return most - least + 1
    total = 0
    for times in range(most, least - 1, -1):
        if total >= WAYS_MOST or each.bit_length() * times > _WAYS_BITS:
            return WAYS_MOST
        total += each**times
    return min(total, WAYS_MOST)


def holds(node: Node, kind: type[Back | Look]) -> bool:
    """Tell whether there is such a part, which an automaton cannot decide."""
    match node:
        case Sequence(parts) | Choice(parts):
            return any(holds(part, kind) for part in parts)
        case Repeat(_, _, 0):
            return False
        case Group(_, part) | Repeat(part):
            return holds(part, kind)
        case _:
            return isinstance(node, kind)


def agrees_on_length(node: Node) -> bool:
    """Tell whether Python's first match is as long as PostgreSQL's.

    True without alternatives, lazy repetitions, and repetitions of several characters that could
    begin inside another one: of ab, Python takes a alone for a?(ab)?.
    """
    repeats = _repeats(node)
    if repeats is None or any(each.greedy is False for each in repeats):
        return False
    return len(repeats) < 2 or all(isinstance(each.part, One) for each in repeats)


def _repeats(node: Node) -> list[Repeat] | None:
    """Return all repetitions of a varying number; None if there are alternatives."""
    match node:
        case Choice():
            return None
        case Sequence(parts):
            found: list[Repeat] = []
            for part in parts:
                inside = _repeats(part)
                if inside is None:
                    return None
                found += inside
            return found
        case Group(_, part) | Look(_, part):
            return _repeats(part)
        case Repeat(part, least, most, greedy):
            inside = _repeats(part)
            if not inside and (inside is None or (least == most and greedy is not False)):
                return inside
            return [node, *inside]
        case _:
            return []


def prefers_short(node: Node) -> bool | None:
    """Tell whether the shortest match is wanted: the first repetition with a preference decides.

    None: there is no preference, because the length is fixed.
    """
    match node:
        case Choice():
            return False
        case Sequence(parts):
            wishes = (prefers_short(part) for part in parts)
            return next((wish for wish in wishes if wish is not None), None)
        case Repeat(_, _, 0):
            return None
        case Group(_, part) | Repeat(part, _, _, None):
            return prefers_short(part)
        case Repeat(_, _, _, greedy):
            return not greedy
        case _:
            return None


def wishes(node: Node) -> set[bool]:
    """Return whether parts of it are greedy, lazy, or both. A choice wants to be long."""
    match node:
        case Choice(options):
            return {True}.union(*map(wishes, options))
        case Sequence(parts):
            return set[bool]().union(*map(wishes, parts))
        case Repeat(_, _, 0):
            return set()
        case Group(_, part) | Repeat(part, _, _, None):
            return wishes(part)
        case Repeat(part, _, _, greedy):
            return {greedy is True} | wishes(part)
        case _:
            return set()


def check_size(node: Node, most: int) -> int:
    """Count the atoms after expansion of counted repetitions; refuse too many."""
    match node:
        case Sequence(parts) | Choice(parts):
            size = 1
            for part in parts:
                size += check_size(part, most)
                if size > most:
                    break
        case Group(_, part) | Look(_, part) | Back(_, part):
            size = 1 + check_size(part, most)
        case Repeat(part, least, upper, _):
            size = 1 + check_size(part, most) * max(least + 1 if upper is None else upper, 1)
        case _:
            size = 1
    if size > most:
        raise bad("regular expression is too complex")
    return size
