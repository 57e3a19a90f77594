"""What EXPLAIN ANALYZE measures: the rows, loops, time and loaded pages of each node of a plan.

    Project      begin ─────────────────────────────────────► end
      Scan         begin ── row ┐         ┌─ back ── row …     end
                                └ consumer ┘

Compiled code is one nest of loops, so at each moment it works for one node. A `Profile` knows
which, and charges the time since the last change to it; what a node tells includes those below it.
The code that `codegen.measured` prints says when the work passes on. What is between two steps of
the statement belongs to nobody: other statements run there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from qserver.sql.plan import Change, Plan, Select, Vectors
from qserver.sql.plan_nodes import below
from qserver.sql.vectors.trees import Part, inputs_of_part


class Meter:
    """Counts for one node."""

    __slots__ = (
        "_started",
        "_under",
        "loads",
        "looked_at",
        "loops",
        "parent",
        "profile",
        "rows",
        "seconds",
        "startup",
    )

    def __init__(self, profile: Profile, parent: Meter | None) -> None:
        self.profile = profile
        self.parent = self if parent is None else parent
        self._under: list[Meter] = []
        if parent is not None:
            parent._under.append(self)
        self.rows = self.loops = self.looked_at = self.loads = 0
        self.seconds = self.startup = 0.0
        """Its own time; and the time up to the first row of each loop, with the nodes below it."""
        self._started: float | None = None
        """The time of it and the nodes below when its loop began, until it has a row."""

    def begin(self) -> None:
        self.profile.turn_to(self)
        self.loops += 1
        if self.profile.is_timed:
            self._started = self.total

    def row(self) -> None:
        self.add(1)
        self.profile.turn_to(self.parent)

    def back(self) -> None:
        self.profile.turn_to(self)

    def end(self) -> None:
        self.profile.turn_to(self.parent)
        self._first()

    def add(self, rows: int) -> None:
        """Count rows, the first of which end the start of the loop."""
        self.rows += rows
        if rows and self._started is not None:
            self.profile.turn_to(self)
            self._first()

    def _first(self) -> None:
        if self._started is not None:
            self.startup += self.total - self._started
            self._started = None

    @property
    def total(self) -> float:
        """Seconds, with those of the nodes below it."""
        return self.seconds + sum([each.total for each in self._under])

    @property
    def all_loads(self) -> int:
        """Loaded pages, with those of the nodes below it."""
        return self.loads + sum([each.all_loads for each in self._under])


class Profile:
    """The meters of a plan, and the node that the time is charged to."""

    def __init__(
        self,
        statement: Select | Change,
        clock: Callable[[], float],
        loads: Callable[[], int],
        is_timed: bool = True,
    ) -> None:
        self.is_timed = is_timed
        self._clock = clock if is_timed else _no_time
        self._loads = loads
        self.root: Final = Meter(self, None)
        """Of what is around the plan."""
        self._meters: dict[int, Meter] = {}
        self._trees: dict[int, Meter] = {}
        """By the ids of the nodes below a vector tree: the meter of the tree."""
        self._statement = statement  # keeps the nodes alive, whose ids are the keys
        top: Any = statement.plan if isinstance(statement, Select) else statement
        self._add(top, self.root)
        self._current = self.root
        self._time, self._loaded = self._clock(), loads()

    def _add(self, node: Plan | Change, parent: Meter, tree: Meter | None = None) -> None:
        if id(node) not in self._meters:
            meter = self._meters[id(node)] = Meter(self, parent)
            if tree is not None:
                self._trees[id(node)] = tree
            for inner in below(node):
                self._add(inner, meter, meter if isinstance(node, Vectors) else tree)
            if isinstance(node, Vectors):
                self._add_part(node.planned.tree.root, meter)

    def _add_part(self, part: Part, parent: Meter) -> None:
        meter = self._meters[id(part)] = Meter(self, parent)
        for inner in inputs_of_part(part):
            self._add_part(inner, meter)

    @property
    def meters(self) -> Mapping[int, Meter]:
        """By the ids of the nodes, and of the parts of vector trees."""
        return self._meters

    def of(self, node: Any) -> Meter | None:
        """Return the meter of a node; None of one whose rows a vector tree has computed."""
        meter, tree = self._meters.get(id(node)), self._trees.get(id(node))
        if tree is not None and tree.loops and meter is not None and not meter.loops:
            return None
        return meter

    def has_run_as_tree(self, node: Vectors) -> bool:
        """Whether the parts of a tree have computed its rows each time, and row code never."""
        return bool(self._meters[id(node)].loops) and not self._meters[id(node.input)].loops

    def turn_to(self, meter: Meter) -> None:
        """Charge what has passed to the current node, and go on with another."""
        current, time, loaded = self._current, self._clock(), self._loads()
        if time > self._time:  # a clock may be set back
            current.seconds += time - self._time
        current.loads += loaded - self._loaded
        self._current, self._time, self._loaded = meter, time, loaded

    def pause(self) -> None:
        self.turn_to(self._current)

    def go_on(self) -> None:
        """Forget what has passed since the pause."""
        self._time, self._loaded = self._clock(), self._loads()


def _no_time() -> float:
    return 0.0
