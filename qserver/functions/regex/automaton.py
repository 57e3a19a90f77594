"""Regular expressions without backtracking: time is linear in the text, whatever the pattern.

    state = the atoms that could come next, and the kind of the last character
    step(state, character) = can the match end before the character?, next state

The tree becomes a nondeterministic automaton (one state per atom), and lazily a deterministic one.
Steps are cached in a dict. Conditions on the place (^ $ \\m \\y) are decided when both neighbours
are known, by their kinds: edge, newline, word, other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from qserver.functions.regex.syntax import (
    Back,
    Choice,
    Group,
    Node,
    One,
    Place,
    Repeat,
    Sequence,
    too_long,
)

STEPS_MOST: Final = 20_000
"""The limit of cached steps; beyond it the cache is cleared."""

WORK_MOST: Final = 300_000
"""The cost limit of one query: 1 per character, and 30 + states per uncached step."""

_EDGE, _NEWLINE, _WORD, _OTHER = range(4)

_PLACES: Final[dict[str, Callable[[int, int], bool]]] = {
    "start": lambda before, after: before == _EDGE,
    "end": lambda before, after: after == _EDGE,
    "line start": lambda before, after: before in (_EDGE, _NEWLINE),
    "line end": lambda before, after: after in (_EDGE, _NEWLINE),
    "word start": lambda before, after: before != _WORD and after == _WORD,
    "word end": lambda before, after: before == _WORD and after != _WORD,
    "boundary": lambda before, after: (before == _WORD) != (after == _WORD),
    "no boundary": lambda before, after: (before == _WORD) == (after == _WORD),
}

NfaState = tuple[frozenset[int], int]


def _kind(character: str) -> int:
    if character == "\n":
        return _NEWLINE
    return _WORD if character.isalnum() or character == "_" else _OTHER


class _Net:
    """The nondeterministic automaton: the transitions of each state, by an atom or empty."""

    def __init__(self, tree: Node, flags: int) -> None:
        self.flags = flags
        self.in_reference = False
        self.atoms: list[tuple[re.Pattern[str], int] | None] = []
        self.free: list[list[tuple[str | None, int]]] = []
        self.end = self.new()
        self.start = self.add(tree, self.end)

    def new(self) -> int:
        self.atoms.append(None)
        self.free.append([])
        return len(self.atoms) - 1

    def add(self, node: Node, follow: int) -> int:
        """Add states that match the node and continue at `follow`; return the first of them."""
        match node:
            case One(source):
                state = self.new()
                self.atoms[state] = (re.compile(source, self.flags), follow)
                return state
            case Place(kind):
                state = self.new()
                self.free[state].append((None if self.in_reference else kind, follow))
                return state
            case Sequence(parts):
                for part in reversed(parts):
                    follow = self.add(part, follow)
                return follow
            case Choice(options):
                state = self.new()
                self.free[state] += [(None, self.add(option, follow)) for option in options]
                return state
            case Group(_, part):
                return self.add(part, follow)
            case Back(_, part):
                return self.add_reference(part, follow)
            case Repeat(part, least, most, _):
                return self.add_repeat(part, least, most, follow)
        raise AssertionError(f"an automaton has no {node}")

    def add_reference(self, part: Node, follow: int) -> int:
        """Add what the group matches, at any place: the text there is compared later."""
        was_in_reference, self.in_reference = self.in_reference, True
        first = self.add(part, follow)
        self.in_reference = was_in_reference
        return first

    def add_repeat(self, part: Node, least: int, most: int | None, follow: int) -> int:
        if most is None:
            loop = self.new()
            self.free[loop] += [(None, self.add(part, loop)), (None, follow)]
            follow = loop
        else:
            after = follow
            for _ in range(most - least):
                state = self.new()
                self.free[state] += [(None, self.add(part, follow)), (None, after)]
                follow = state
        for _ in range(least):
            follow = self.add(part, follow)
        return follow


class Automaton:
    """Decides whether and where a text matches. Refuses queries that would take too long."""

    def __init__(self, tree: Node, flags: int) -> None:
        self._net = _Net(tree, flags)
        self.size = len(self._net.atoms)
        self.worked = 0
        """The cost of all queries so far."""
        self._worked_most = 0
        self._searching: dict[tuple[NfaState, str], tuple[bool, NfaState]] = {}
        self._anchored: dict[tuple[NfaState, str], tuple[bool, NfaState]] = {}

    def matches(self, text: str, start: int = 0) -> bool:
        """Tell whether there is a match that begins at `start` or later."""
        return self.first_end(text, start) is not None

    def first_end(self, text: str, start: int) -> int | None:
        """Return the first place where a match ends that begins at `start` or later."""
        steps = self._searching
        state = self._first(text, start)
        self._begin(len(text) - start)
        for at in range(start, len(text)):
            character = text[at]
            step = steps.get((state, character))
            if step is None:
                step = self._work_out(steps, state, character, again=True)
            if step[0]:
                self.worked += at - len(text)
                return at
            state = step[1]
        return len(text) if self._ends(state, _EDGE) else None

    def end_of_match(self, text: str, start: int, short: bool) -> int | None:
        """Return the end of the shortest or longest match that begins at `start`."""
        steps = self._anchored
        state, found = self._first(text, start), None
        for at in range(start, len(text)):
            self.worked += 1
            character = text[at]
            step = steps.get((state, character))
            if step is None:
                step = self._work_out(steps, state, character, again=False)
            if step[0]:
                found = at
                if short:
                    return found
            state = step[1]
            if not state[0]:
                return found
        return len(text) if self._ends(state, _EDGE) else found

    def ends(self, text: str, start: int, last: int) -> list[int]:
        """Return all places up to `last` where a match that begins at `start` can end, in order."""
        steps = self._anchored
        state = self._first(text, start)
        found: list[int] = []
        self._begin(0)
        for at in range(start, last):
            self.worked += 1
            character = text[at]
            step = steps.get((state, character))
            if step is None:
                step = self._work_out(steps, state, character, again=False)
            if step[0]:
                found.append(at)
            state = step[1]
            if not state[0]:
                return found
        if self._ends(state, _kind(text[last]) if last < len(text) else _EDGE):
            found.append(last)
        return found

    def search(self, text: str, start: int, short: bool) -> tuple[int, int] | None:
        """Return the first match, and of those that begin there the shortest or longest."""
        if not self.matches(text, start):
            return None
        self._begin(0)
        for first in range(start, len(text) + 1):
            end = self.end_of_match(text, first, short)
            if self.worked > self._worked_most:
                raise too_long(len(text))
            if end is not None:
                return first, end
        raise AssertionError("a match that is there has a beginning")

    def _begin(self, length: int) -> None:
        """Begin a query that visits this many characters."""
        if length > WORK_MOST:
            raise too_long(length)
        self.worked += length
        self._worked_most = self.worked + WORK_MOST

    def _first(self, text: str, start: int) -> NfaState:
        before = _kind(text[start - 1]) if start > 0 else _EDGE
        return frozenset((self._net.start,)), before

    def _work_out(
        self,
        steps: dict[tuple[NfaState, str], tuple[bool, NfaState]],
        state: NfaState,
        character: str,
        again: bool,
    ) -> tuple[bool, NfaState]:
        self.worked += len(state[0]) + 30
        if self.worked > self._worked_most:
            raise too_long(self.worked)
        reached = self._reached(state[0], state[1], _kind(character))
        following = set()
        for each in reached:
            atom = self._net.atoms[each]
            if atom is not None and atom[0].match(character) is not None:
                following.add(atom[1])
        if again:  # a search may begin at every character
            following.add(self._net.start)
        if len(steps) >= STEPS_MOST:
            steps.clear()
        step = self._net.end in reached, (frozenset(following), _kind(character))
        steps[state, character] = step
        return step

    def _ends(self, state: NfaState, after: int) -> bool:
        return self._net.end in self._reached(state[0], state[1], after)

    def _reached(self, states: Iterable[int], before: int, after: int) -> set[int]:
        """Return the states reachable by empty transitions between two kinds of characters."""
        reached = set(states)
        waiting = list(reached)
        while waiting:
            for place, follow in self._net.free[waiting.pop()]:
                if follow not in reached and (place is None or _PLACES[place](before, after)):
                    reached.add(follow)
                    waiting.append(follow)
        return reached
