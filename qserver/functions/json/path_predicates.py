"""Predicates of SQL/JSON paths: true, false or unknown.

An error within a predicate makes it unknown. In lax mode the first pair of items that compares as
wanted decides; in strict mode all are looked at, because one that cannot be compared decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from qserver.functions.json.path_items import Comparison
from qserver.functions.json.path_run import Failure, Found, Item, Run, Sequence, Test, Walk
from qserver.functions.regex.regexes import regex

Attempt = Callable[[Run, Item], "Found | None"]
"""A sequence that may fail: None."""


def attempt(sequence: Sequence) -> Attempt:
    def attempted(run: Run, item: Item) -> Found | None:
        state = run.state()
        run.throws = False
        try:
            found = sequence(run, item)
        except Failure:
            run.restore(state)
            return None
        run.throws = state[0]
        return found

    return attempted


def of_pairs(compare: Comparison, left: Attempt, right: Attempt, lax: bool) -> Test:
    def test(run: Run, item: Item) -> bool | None:
        ones = left(run, item)
        if ones is None:
            return None
        others = right(run, item)
        if others is None:
            return None
        if len(ones) > 1 or len(others) > 1:
            run.spend(len(ones) * len(others))
        found = unknown = False
        for one in ones:
            for other in others:
                result = compare(run, one, other)
                if result:
                    if lax:
                        return True
                    found = True
                elif result is None:
                    if not lax:
                        return None
                    unknown = True
        return True if found else None if unknown else False

    return test


def like_regex(pattern: str, flags: str) -> Comparison:
    """Return the test of an item; the other of the pair is nothing."""
    expression = regex(pattern, _letters(flags))

    def matches(run: Run, item: Item, nothing: Item) -> bool | None:
        if type(item) is not str:
            return None
        run.spend(1 + len(item) // 16)
        return expression.matches(item)

    return matches


def _letters(flags: str) -> str:
    """Return the options of a regular expression in SQL, where a dot matches the end of a line."""
    letters = "i" if "i" in flags else ""
    if "q" in flags:
        return f"{letters}q"
    return letters + _LINES["s" in flags, "m" in flags]


_LINES: Final = {
    (False, False): "p",
    (False, True): "n",
    (True, False): "s",
    (True, True): "w",
}
"""The option by whether a dot matches the end of a line, and whether ^ and $ match there."""


def all_of(parts: list[Test]) -> Test:
    def test(run: Run, item: Item) -> bool | None:
        result: bool | None = True
        for part in parts:
            found = part(run, item)
            if found is False:
                return False
            result = found and result
        return result

    return test


def any_of(parts: list[Test]) -> Test:
    def test(run: Run, item: Item) -> bool | None:
        result: bool | None = False
        for part in parts:
            found = part(run, item)
            if found:
                return True
            if found is None:
                result = None
        return result

    return test


def negation(part: Test) -> Test:
    def test(run: Run, item: Item) -> bool | None:
        result = part(run, item)
        return None if result is None else not result

    return test


def is_unknown(part: Test) -> Test:
    return lambda run, item: part(run, item) is None


def exists(walk: Walk, lax: bool) -> Test:
    """In strict mode all items are made, to see whether one fails."""

    def test(run: Run, item: Item) -> bool | None:
        state = run.state()
        run.throws = False
        found: Found = []
        try:
            some = walk(run, item, None if lax else found)
        except Failure:
            run.restore(state)
            return None
        run.throws = state[0]
        return some if lax else bool(found)

    return test
