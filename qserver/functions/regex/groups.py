"""Finds the groups of a match whose beginning and end are known.

The match is split from the outside in, as in PostgreSQL. A sequence is split after its first part:
at the last place (the first, if the part is lazy) from which the rest still reaches the end. Each
part has an automaton that finds where it can end, so no impossible split is tried, and the time is
at most quadratic in the match's length. The work is counted, and too much is refused.
"""

from __future__ import annotations

from qserver.functions.regex.automaton import WORK_MOST, Automaton
from qserver.functions.regex.source import prefers_short
from qserver.functions.regex.syntax import Choice, Group, Node, Repeat, Sequence, too_long

Span = tuple[int, int]


class Dissection:
    """Splits matches of one pattern; caches the automata of its parts."""

    def __init__(self, tree: Node, groups: int, flags: int) -> None:
        self._tree = tree
        self._groups = groups
        self._flags = flags
        self._work_left = 0
        self._automata: dict[Node, Automaton] = {}
        self._holding: dict[Node, bool] = {}

    def groups_of(self, text: str, start: int, end: int) -> list[Span | None]:
        found: list[Span | None] = [None] * self._groups
        self._work_left = WORK_MOST
        self._take_apart(self._tree, text, start, end, found)
        return found

    def _take_apart(
        self, node: Node, text: str, start: int, end: int, found: list[Span | None]
    ) -> None:
        if not self._holds_groups(node):
            return
        match node:
            case Group(number, part):
                found[number - 1] = (start, end)
                self._take_apart(part, text, start, end, found)
            case Choice(options):
                for option in options:
                    if self._reaches(option, text, start, end):
                        self._take_apart(option, text, start, end, found)
                        return
            case Sequence(parts):
                for at, part in enumerate(parts[:-1]):
                    rest = Sequence(parts[at + 1 :])
                    cut = self._cut(part, rest, text, start, end)
                    self._take_apart(part, text, start, cut, found)
                    start = cut
                self._take_apart(parts[-1], text, start, end, found)
            case Repeat(part, least, most, greedy):
                self._repetitions(Repeat(part, least, most, greedy), text, start, end, found)

    def _repetitions(
        self, node: Repeat, text: str, start: int, end: int, found: list[Span | None]
    ) -> None:
        """Split repetition by repetition; a group keeps its last match."""
        part, least, most, greedy = node.part, node.least, node.most, node.greedy
        while start < end or least > 0:
            least, most = max(least - 1, 0), None if most is None else most - 1
            rest = Repeat(part, least, most, greedy)
            cut = self._cut(part, rest, text, start, end)
            self._take_apart(part, text, start, cut, found)
            if cut == start:  # the part matched nothing, and so would all others
                return
            start = cut

    def _cut(self, part: Node, rest: Node, text: str, start: int, end: int) -> int:
        cuts = self._ends(part, text, start, end)
        for cut in cuts if prefers_short(part) else reversed(cuts):
            if self._reaches(rest, text, cut, end):
                return cut
        raise AssertionError("a match can be taken apart")

    def _reaches(self, node: Node, text: str, start: int, end: int) -> bool:
        return self._ends(node, text, start, end)[-1:] == [end]

    def _ends(self, node: Node, text: str, start: int, end: int) -> list[int]:
        automaton = self._automaton(node)
        before = automaton.worked
        ends = automaton.ends(text, start, end)
        self._work_left -= automaton.worked - before + 3
        if self._work_left < 0:
            raise too_long(end - start)
        return ends

    def _automaton(self, node: Node) -> Automaton:
        automaton = self._automata.get(node)
        if automaton is None:
            automaton = self._automata[node] = Automaton(node, self._flags)
        return automaton

    def _holds_groups(self, node: Node) -> bool:
        holds = self._holding.get(node)
        if holds is None:
            match node:
                case Group():
                    holds = True
                case Sequence(parts) | Choice(parts):
                    holds = any(map(self._holds_groups, parts))
                case Repeat(part):
                    holds = self._holds_groups(part)
                case _:
                    holds = False
            self._holding[node] = holds
        return holds
