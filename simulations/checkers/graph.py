"""A graph of which node must come before which, and the algorithms that find circles in it.

Nodes are small integers, edges have a kind. Three kinds come from values and carry their evidence:

    ww   the target's append stands behind the source's          A appends 1, B appends 2:  [1 2]
    wr   the target has read what the source appended            A appends 1, B reads [1]
    rw   the target appended what the source has not yet read    A reads [1], B appends 2:  [1 2]

The fourth, `realtime`, comes from the clients' clock: the source was completed before the target
was invoked. Writing all of those down would be quadratic, so there are two replacements:

  * for strongly connected components time itself becomes a chain of nodes, the *moments*: an
    attempt that completes leads to the present moment, which leads to the attempts invoked during
    it and to the next moment. Fewer than three edges for each attempt, however many run at once:

        T0 --.        .--> T2
              moment 0 ----> moment 1 --> T3
        T1 --'        T2 ----'

  * a search for a short path does not use these edges at all. It keeps the nodes sorted by
    invocation and, coming to a node, takes all that were invoked after its completion from the end
    of that row. Each is taken once, so it is linear, and a path shows one long real-time edge where
    the reduced graph would lead through hundreds of bystanders.

A *hub* is a node that stands for no attempt: it turns n × m edges into n + m (see
serializability.py). It takes no part in real time.

Nothing here recurses, as histories are deeper than Python's stack; and everything is kept in lists
and dicts, whose order is that of insertion, so the same history leads to the same circle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from simulations.history import Key, Value

Adjacency = Mapping[int, Sequence[int]]


class EdgeKind(StrEnum):
    """Why one node must come before another."""

    WW = "ww"
    WR = "wr"
    RW = "rw"
    REALTIME = "realtime"


class Evidence(NamedTuple):
    """The values behind an edge: the list that was read (or the value before), and the append."""

    key: Key
    values: tuple[Value, ...]
    value: Value


class Interval(NamedTuple):
    """When an attempt was under way; one without completion precedes nothing."""

    invoked: int
    completed: int | None


class Graph:
    """Nodes 0 … n-1 with an interval each (None takes no part in real time), then the hubs."""

    def __init__(self, intervals: Sequence[Interval | None]) -> None:
        self._intervals = intervals
        self._hubs = 0
        self.evidence: dict[EdgeKind, dict[tuple[int, int], Evidence]] = {
            EdgeKind.WW: {},
            EdgeKind.WR: {},
            EdgeKind.RW: {},
        }

    def add(self, kind: EdgeKind, source: int, target: int, evidence: Evidence) -> None:
        """Add an edge; the first evidence for it is kept."""
        assert source != target
        self.evidence[kind].setdefault((source, target), evidence)

    def add_hub(self) -> int:
        self._hubs += 1
        return len(self._intervals) + self._hubs - 1

    def is_hub(self, node: int) -> bool:
        return node >= len(self._intervals)

    def nodes(self) -> range:
        return range(len(self._intervals) + self._hubs)

    def precedes(self, source: int, target: int) -> bool:
        before, after = self._interval(source), self._interval(target)
        if before is None or after is None or before.completed is None:
            return False
        return before.completed < after.invoked

    def adjacency(
        self, kinds: Collection[EdgeKind], within: Collection[int] | None = None
    ) -> dict[int, list[int]]:
        """Return successors along edges of these kinds between these nodes.

        Real time goes through moments, which are numbered behind all `nodes()`.
        """
        inside = None if within is None else frozenset(within)
        successors: dict[int, list[int]] = {}
        for kind in EdgeKind:
            if kind not in kinds:
                continue
            first_moment = len(self.nodes())
            edges = self._through_moments() if kind is EdgeKind.REALTIME else self.evidence[kind]
            for source, target in edges:
                if inside is None or (
                    (source in inside or source >= first_moment)
                    and (target in inside or target >= first_moment)
                ):
                    successors.setdefault(source, []).append(target)
        return successors

    def shortest_path(
        self, start: int, goal: int, successors: Adjacency, realtime_among: Collection[int]
    ) -> list[int]:
        """Return the nodes of a shortest path of at least one edge; if `goal` = `start`, a circle.

        Edges are those of `successors`, and real time between the nodes of `realtime_among`. The
        caller knows from the components that there is a path.
        """
        parents: dict[int, int] = {}
        queue = deque([start])
        waiting = self._by_invocation(realtime_among)
        while queue:
            node = queue.popleft()
            for successor in (*successors.get(node, ()), *self._take_later(node, waiting)):
                if successor in parents:
                    continue
                parents[successor] = node
                if successor == goal:
                    return _path_back(parents, start, goal)
                queue.append(successor)
        raise AssertionError(f"no way from {start} to {goal}")

    def _interval(self, node: int) -> Interval | None:
        return None if self.is_hub(node) else self._intervals[node]

    def _by_invocation(self, nodes: Collection[int]) -> list[tuple[int, int]]:
        timed = ((self._interval(node), node) for node in nodes)
        return sorted((interval.invoked, node) for interval, node in timed if interval is not None)

    def _take_later(self, node: int, waiting: list[tuple[int, int]]) -> Iterator[int]:
        """Take from the end of `waiting` all nodes invoked after this node was completed."""
        interval = self._interval(node)
        if interval is not None and interval.completed is not None:
            while waiting and waiting[-1][0] > interval.completed:
                yield waiting.pop()[1]

    def _through_moments(self) -> Iterator[tuple[int, int]]:
        """Yield the chain of moments: the first completion after an invocation begins a new one."""
        events: list[tuple[int, bool, int]] = []
        for node, interval in enumerate(self._intervals):
            if interval is not None:
                events.append((interval.invoked, False, node))
                if interval.completed is not None:
                    events.append((interval.completed, True, node))
        events.sort()  # at one position invocations come first: only strictly before is before
        moment = len(self.nodes())
        entered = left = False  # was any node completed; was any invoked in this moment
        for _, is_completion, node in events:
            if is_completion:
                if left:
                    yield moment, moment + 1
                    moment, left = moment + 1, False
                yield node, moment
                entered = True
            elif entered:
                yield moment, node
                left = True


def strongly_connected(nodes: Collection[int], successors: Adjacency) -> list[list[int]]:
    """Return the components by Tarjan's algorithm, each after all those that it leads to."""
    components: list[list[int]] = []
    number: dict[int, int] = {}  # node → when it was first visited
    lowest: dict[int, int] = {}  # node → the earliest still open node known to be reachable from it
    still_open: dict[int, None] = {}  # the stack of nodes without a component, fit for `in`
    for root in nodes:
        if root in number:
            continue
        number[root] = lowest[root] = len(number)
        still_open[root] = None
        trail = [(root, iter(successors.get(root, ())))]
        while trail:
            node, remaining = trail[-1]
            for successor in remaining:
                if successor not in number:
                    number[successor] = lowest[successor] = len(number)
                    still_open[successor] = None
                    trail.append((successor, iter(successors.get(successor, ()))))
                    break
                if successor in still_open and number[successor] < lowest[node]:
                    lowest[node] = number[successor]
            else:
                trail.pop()
                if trail:
                    parent = trail[-1][0]
                    lowest[parent] = min(lowest[parent], lowest[node])
                if lowest[node] == number[node]:
                    components.append(_close(node, still_open))
    return components


def _close(root: int, still_open: dict[int, None]) -> list[int]:
    """Take the component of this root from the stack; its nodes are in ascending order."""
    component: list[int] = []
    while not component or component[-1] != root:
        component.append(still_open.popitem()[0])
    return sorted(component)


def _path_back(parents: Mapping[int, int], start: int, goal: int) -> list[int]:
    path = [goal, parents[goal]]
    while path[-1] != start:
        path.append(parents[path[-1]])
    return path[::-1]
