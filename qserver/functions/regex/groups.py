"""Finds the groups of a match, and whether its back references hold, as PostgreSQL does.

An automaton knows where a part can end, but neither groups nor back references: for it, a back
reference is anything that its group could match. So a match is divided from the outside in. Each
part of a sequence, and each repetition, ends at the last place (the first, if the part is lazy)
from which the rest still reaches the end; where a back reference does not hold, the place before
is tried. Of alternatives the first that fits is taken. A repetition forgets the groups of the one
before it.

    (a|ab)(b?)\\1   Row(Group 1(Choice(Plain, Plain)), Group 2(Plain), Reference 1)

No part is divided in a second way if what follows it fails: neither does PostgreSQL. Without back
references the time is at most quadratic in the match's length. The work is counted, and too much is
refused.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from qserver.functions.regex.automaton import WORK_MOST, Automaton
from qserver.functions.regex.source import prefers_short, wishes
from qserver.functions.regex.syntax import Back, Choice, Group, Node, Repeat, Sequence, too_long

STATE_WORK: Final = 30
"""What a new state of an automaton costs, in steps."""

MATCH_WORK: Final = 100
"""What a match costs that may turn out to be none."""

TAIL_LENGTH: Final = 1000

Span = tuple[int, int]
Match = tuple[Span | None, ...]


class Dissection:
    """Divides matches of one pattern; caches the automata of its parts."""

    def __init__(self, tree: Node, groups: int, flags: int) -> None:
        self._whole = _piece(tree, flags)
        self._groups = groups

    def groups_of(self, text: str, start: int, end: int) -> list[Span | None]:
        """Return the groups of a match of a pattern without back references."""
        attempt = Attempt(text, self._groups)
        fits = self._whole.fits(attempt, start, end)
        assert fits, "a match can be taken apart"
        return attempt.found

    def match_at(self, attempt: Attempt, start: int) -> Match | None:
        """Return the match that begins here; the longest, or the shortest if that is wanted."""
        attempt.spend(MATCH_WORK)
        for end in self._whole.cuts(attempt, start, len(attempt.text)):
            if self._whole.fits(attempt, start, end):
                return ((start, end), *attempt.found)
        return None

    def tries_the_end(self, text: str, start: int) -> bool:
        """Tell whether a search from `start` that finds nothing before tries the text's end.

        PostgreSQL looks where a match could end first, tries all beginnings up to that place, and
        goes on one character later; but not at the end of the text. Of a long text, only the last
        part is looked at.
        """
        end: int | None = max(start, len(text) - TAIL_LENGTH) - 1
        while end is not None and end < len(text):
            if end + 1 == len(text) and end >= start:
                return False
            end = self._whole.automaton.first_end(text, end + 1)
        return True


class Attempt:
    """One text, the groups that were found in it, and how much work is left."""

    def __init__(self, text: str, groups: int) -> None:
        self.text = text
        self.found: list[Span | None] = [None] * groups
        self._work_left = WORK_MOST

    def spend(self, work: int) -> None:
        self._work_left -= work
        if self._work_left < 0:
            raise too_long(len(self.text))

    def forget(self, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            self.found[number - 1] = None


class _Plain:
    """A part without groups and back references: what the automaton says is so."""

    numbers: tuple[int, ...] = ()
    """The groups inside."""

    refers = False
    """Whether there is a back reference inside."""

    @property
    def is_plain(self) -> bool:
        return not self.numbers and not self.refers

    def __init__(self, node: Node, flags: int) -> None:
        self.node = node
        self.flags = flags

    @cached_property
    def _is_short(self) -> bool:
        return bool(prefers_short(self.node))

    @cached_property
    def automaton(self) -> Automaton:
        return Automaton(self.node, self.flags)

    def cuts(self, attempt: Attempt, start: int, end: int) -> Iterator[int]:
        """Yield where the part can end, the preferred place first."""
        ends = self._ends(attempt, start, end)
        return iter(ends) if self._is_short else reversed(ends)

    def reaches(self, attempt: Attempt, start: int, end: int) -> bool:
        return self._ends(attempt, start, end)[-1:] == [end]

    def _ends(self, attempt: Attempt, start: int, end: int) -> list[int]:
        if "automaton" not in self.__dict__:
            attempt.spend(self.automaton.size * STATE_WORK)
        before = self.automaton.worked
        ends = self.automaton.ends(attempt.text, start, end)
        attempt.spend(self.automaton.worked - before + 15)
        return ends

    def fits(self, attempt: Attempt, start: int, end: int) -> bool:
        """Tell whether the back references hold, and note the groups; forget them if not.

        The automaton matches from `start` to `end`, and the groups inside are not set."""
        return True


class _Reference(_Plain):
    """A back reference, with the bounds of its repetition."""

    refers = True

    def __init__(self, node: Node, flags: int, number: int, bounds: tuple[int, int | None]) -> None:
        super().__init__(node, flags)
        self._number = number
        self._least, self._most = bounds

    def fits(self, attempt: Attempt, start: int, end: int) -> bool:
        place = attempt.found[self._number - 1]
        if place is None:
            return False
        wanted, there = attempt.text[slice(*place)], attempt.text[start:end]
        if not wanted or not there:
            return not there and (not wanted or self._least == 0)
        times, rest = divmod(len(there), len(wanted))
        if rest or times < self._least or (self._most is not None and times > self._most):
            return False
        if self.flags:
            return there.lower() == (wanted * times).lower()
        return there == wanted * times


class _Group(_Plain):
    def __init__(self, node: Group, flags: int) -> None:
        super().__init__(node, flags)
        self._number = node.number
        self._inside = _piece(node.part, flags)
        self.numbers = (node.number, *self._inside.numbers)
        self.refers = self._inside.refers

    def fits(self, attempt: Attempt, start: int, end: int) -> bool:
        if not self._inside.fits(attempt, start, end):
            return False
        attempt.found[self._number - 1] = (start, end)
        return True


class _Parts(_Plain):
    def __init__(self, node: Node, flags: int, parts: list[_Plain]) -> None:
        super().__init__(node, flags)
        self._parts = parts
        self.numbers = tuple(number for part in parts for number in part.numbers)
        self.refers = any(part.refers for part in parts)


class _Choice(_Parts):
    def fits(self, attempt: Attempt, start: int, end: int) -> bool:
        return any(
            option.reaches(attempt, start, end) and option.fits(attempt, start, end)
            for option in self._parts
        )


class _Divided(_Parts, ABC):
    """A part that is divided into steps, one after the other."""

    def fits(self, attempt: Attempt, start: int, end: int) -> bool:
        if start == end and self._begins_absent:
            return True
        steps = [self._step(attempt, 1, start, end)]
        while steps:
            cut = next(steps[-1], None)
            if cut is None:
                steps.pop()
            elif self._is_last(len(steps), cut == end):
                return True
            else:
                steps.append(self._step(attempt, len(steps) + 1, cut, end))
        attempt.forget(self.numbers)
        return self._may_be_absent and start == end

    _may_be_absent = False
    _begins_absent = False

    @abstractmethod
    def _step(self, attempt: Attempt, number: int, start: int, end: int) -> Iterator[int]:
        """Yield where this step can end, and the others still reach the end."""

    @abstractmethod
    def _is_last(self, number: int, at_end: bool) -> bool: ...


class _Row(_Divided):
    """A sequence; its plain parts are one, unless some are lazy and some are not."""

    def __init__(self, node: Node, flags: int, parts: list[_Plain]) -> None:
        super().__init__(node, flags, parts)
        self._rests: dict[int, _Plain] = {}

    def _step(self, attempt: Attempt, number: int, start: int, end: int) -> Iterator[int]:
        part = self._parts[number - 1]
        is_last = number == len(self._parts)
        for cut in (end,) if is_last else part.cuts(attempt, start, end):
            if is_last or self._rest(number).reaches(attempt, cut, end):
                attempt.forget(part.numbers)
                if part.fits(attempt, start, cut):
                    yield cut

    def _rest(self, number: int) -> _Plain:
        if number not in self._rests:
            rest = Sequence(tuple(part.node for part in self._parts[number:]))
            self._rests[number] = _Plain(rest, self.flags)
        return self._rests[number]

    def _is_last(self, number: int, at_end: bool) -> bool:
        return number == len(self._parts)


class _Repeated(_Divided):
    """Repetitions; only as many empty ones as are needed. None at all is the last resort, or the
    first choice of a lazy part."""

    def __init__(self, node: Repeat, flags: int, part: _Plain) -> None:
        super().__init__(node, flags, [part])
        self._part = part
        self._node = node
        self._least = max(node.least, 1)
        self._may_be_absent = node.least == 0
        self._begins_absent = self._may_be_absent and bool(prefers_short(node.part))
        self._rests: dict[tuple[int, int | None], _Plain] = {}

    def _step(self, attempt: Attempt, number: int, start: int, end: int) -> Iterator[int]:
        for cut in self._part.cuts(attempt, start, end):
            if self._goes_on(attempt, number, start, cut, end):
                attempt.forget(self.numbers)
                if self._part.fits(attempt, start, cut):
                    yield cut

    def _goes_on(self, attempt: Attempt, number: int, start: int, cut: int, end: int) -> bool:
        missing = self._least - number
        if cut == end:
            return missing <= 0
        is_needed = 0 < missing >= end - cut
        if number == self._node.most or (cut == start and not is_needed):
            return False
        return self._rest(number).reaches(attempt, cut, end)

    def _rest(self, number: int) -> _Plain:
        most = self._node.most
        bounds = max(self._least - number, 0), None if most is None else most - number
        if bounds not in self._rests:
            self._rests[bounds] = _Plain(Repeat(self._node.part, *bounds, True), self.flags)
        return self._rests[bounds]

    def _is_last(self, number: int, at_end: bool) -> bool:
        return at_end and number >= self._least


def _piece(node: Node, flags: int) -> _Plain:
    match node:
        case Group():
            return _Group(node, flags)
        case Back(number):
            return _Reference(node, flags, number, (1, 1))
        case Choice(parts) | Sequence(parts):
            pieces = [_piece(part, flags) for part in parts]
            if all(piece.is_plain for piece in pieces):
                return _Plain(node, flags)
            if isinstance(node, Choice):
                return _Choice(node, flags, pieces)
            pieces = _merged(pieces, flags)
            return pieces[0] if len(pieces) == 1 else _Row(node, flags, pieces)
        case Repeat():
            return _repeated(node, flags)
        case _:
            return _Plain(node, flags)


def _repeated(node: Repeat, flags: int) -> _Plain:
    least, most = node.least, node.most
    if most == 0:
        return _Plain(node, flags)
    if isinstance(node.part, Back):
        return _Reference(node, flags, node.part.number, (least, most))
    part = _piece(node.part, flags)
    if part.is_plain:
        return _Plain(node, flags)
    if least == 0 or part.refers:
        return _Repeated(node, flags, part)
    # Only the last repetition's groups are wanted: all others are one plain part.
    before = Repeat(node.part, least - 1, None if most is None else most - 1, node.greedy)
    return _Row(node, flags, [_Plain(before, flags), part])


def _merged(pieces: list[_Plain], flags: int) -> list[_Plain]:
    """Make one of plain parts side by side, as long as not some are lazy and some greedy."""
    runs: list[list[_Plain]] = []
    wanted: set[bool] | None = None
    """What the parts of the last run want; None if nothing may be added to it."""
    for piece in pieces:
        joined = wishes(piece.node) | (wanted or set()) if piece.is_plain else None
        if joined is not None and len(joined) > 1:
            joined = None
        if joined is None or wanted is None:
            runs.append([piece])
        else:
            runs[-1].append(piece)
        wanted = joined
    return [
        run[0] if len(run) == 1 else _Plain(Sequence(tuple(each.node for each in run)), flags)
        for run in runs
    ]
