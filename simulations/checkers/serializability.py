"""Decides whether a run was strictly serializable, from a list-append history, as Elle does.

Every transaction that took effect is a node. If the database was strictly serializable there is one
order of all of them that explains every read and agrees with real time; so edges from each
transaction to those that must follow it form no circle. The test looks for circles.

    T3 reads [1 2] of key 5        T7 appends 3 to key 5, and was completed before T3 began

    T3 -rw(key 5: read [1 2], T7 appended 3)-> T7 -realtime-> T3

An OK attempt took effect. A FAILED one did not, and no read may show its values. An UNKNOWN one did
if any of its values was seen; then the same rules apply to it, so half of it is an anomaly. If it
was never seen it stays out: it may not have happened.

Appends that no read shows must stand behind everything that reads do show, because lists only grow.
This catches a lost append without the final state: each reader of the whole order has an rw edge to
each of those appends. They go through a hub, as there could be very many:

    readers of the whole order ---rw---> hub ------> writers of unseen appends

A reader that is also such a writer must not reach itself. So there are two hubs, one for the
writers that did not read (all readers lead there), one for those that did (only the pure readers
lead there). Those that did both have all missed each other's appends: it is enough to connect
neighbours.

`final`, the state at the end, is one more transaction that reads every key, after everything. What
it lacks of an OK attempt is called a lost write and gets no edge besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from simulations.checkers.anomaly import (
    FINAL,
    Anomaly,
    Step,
    by_severity,
    describe_cycle,
    describe_list,
    name,
)
from simulations.checkers.cycles import Cycle, Hop, find_cycles
from simulations.checkers.graph import EdgeKind, Evidence, Graph, Interval
from simulations.checkers.lists import (
    KeyEvents,
    Observation,
    Order,
    OrderFinder,
    collect,
    internal_anomalies,
)
from simulations.checkers.versions import version_regressions
from simulations.history import Attempt, Key, Read, Status, Value

__all__ = ["FINAL", "Anomaly", "Step", "check"]


def check(
    attempts: Iterable[Attempt], final: Mapping[Key, Sequence[Value]] | None = None
) -> list[Anomaly]:
    """Return all anomalies that the history proves, the worst first; none for a good run.

    `final` is the state at the end of the run, after the last attempt; a key that is missing from
    it holds the empty list. Without it, nothing is said about writes that were never read again.
    """
    return _Check(list(attempts), final).anomalies()


class _Check:
    """One judgement: the history, what was inferred from it, what was found."""

    def __init__(
        self, attempts: list[Attempt], final: Mapping[Key, Sequence[Value]] | None
    ) -> None:
        if final is not None:
            attempts.append(_final_reads(attempts, final))
        self._attempts = attempts
        self._keys = collect(attempts)
        self._found: list[Anomaly] = []
        self._orders: dict[Key, Order] = {}
        for key, events in self._keys.items():
            finder = OrderFinder(attempts, key, events)
            self._orders[key] = finder.order()
            self._found += finder.anomalies
        self._committed = self._who_took_effect()
        self._graph = Graph(
            [
                Interval(attempt.invoked, attempt.completed) if committed else None
                for attempt, committed in zip(attempts, self._committed, strict=True)
            ]
        )

    def anomalies(self) -> list[Anomaly]:
        for attempt in self._attempts:
            if attempt.status is Status.OK:
                self._found += internal_anomalies(attempt)
        for key, order in self._orders.items():
            events = self._keys[key]
            self._connect_appends(key, order)
            readers = self._connect_reads(key, events, order)
            self._connect_unseen(key, events, order, readers)
            self._find_lost_writes(key, events)
        for cycle in find_cycles(self._graph):
            steps = self._steps(cycle)
            self._found.append(Anomaly(cycle.name, describe_cycle(steps), steps))
        self._found += version_regressions(self._attempts)
        return by_severity(self._found)

    def _who_took_effect(self) -> list[bool]:
        committed = [attempt.status is Status.OK for attempt in self._attempts]
        for order in self._orders.values():
            for writer in (*order.writers, *order.stray.values()):
                if writer is not None:
                    committed[writer] = True
        return committed

    def _connect_appends(self, key: Key, order: Order) -> None:
        """Add ww edges: from each append of the order to the next one."""
        previous: tuple[int, Value] | None = None
        for value, writer in zip(order.values, order.writers, strict=True):
            if writer is None:
                continue
            if previous is not None and previous[0] != writer:
                self._add(EdgeKind.WW, previous[0], writer, key, (previous[1],), value)
            previous = writer, value

    def _connect_reads(self, key: Key, events: KeyEvents, order: Order) -> list[Observation]:
        """Add wr edges from the last append that was read, rw to the first that was not.

        Returns the reads behind which the order has nothing more.
        """
        before, after = order.places_before(), order.places_after()
        whole: list[Observation] = []
        intermediate: dict[Value, Anomaly] = {}
        for read in order.reads:
            last, following = before[read.foreign], after[read.foreign]
            writer = None if last < 0 else order.writers[last]
            if writer is not None and writer != read.reader:
                value = order.values[last]
                self._add(EdgeKind.WR, writer, read.reader, key, read.values, value)
                anomaly = self._intermediate(key, events, read, writer, value)
                if anomaly is not None:
                    intermediate.setdefault(value, anomaly)
                    continue  # the circle of wr and rw between the two says the same again
            if after[len(read.values)] == len(order.values):
                whole.append(read)
            if following == len(order.values):
                continue
            writer = order.writers[following]
            if writer is not None and writer != read.reader and self._may_miss(read, writer):
                value = order.values[following]
                self._add(EdgeKind.RW, read.reader, writer, key, read.values, value)
        self._found += intermediate.values()
        return whole

    def _intermediate(
        self, key: Key, events: KeyEvents, read: Observation, writer: int, value: Value
    ) -> Anomaly | None:
        """Return G1b, if the read ends inside the appends of another attempt."""
        last = events.appended_by[writer][-1]
        if value == last or last in read.values:
            return None
        shown = f"{self._name(read.reader)} read {describe_list(read.values)} of key {key}"
        return Anomaly("G1b", f"{shown}, but {self._name(writer)} appended {last} after {value}")

    def _connect_unseen(
        self, key: Key, events: KeyEvents, order: Order, readers: Sequence[Observation]
    ) -> None:
        """Add rw edges to the appends that took effect but that no read shows."""
        seen = {*order.values, *order.stray}
        unseen: dict[int, Value] = {}
        for value, writer in events.writer.items():
            if self._committed[writer] and value not in seen:
                unseen.setdefault(writer, value)
        if not unseen:
            return
        ordinary = [read for read in readers if not self._is_final(read)]
        self._connect_to_unseen(key, ordinary, unseen)
        if len(ordinary) < len(readers):
            final = readers[-1]
            for writer, value in unseen.items():
                if self._may_miss(final, writer):
                    self._add(EdgeKind.RW, final.reader, writer, key, final.values, value)

    def _connect_to_unseen(
        self, key: Key, readers: Sequence[Observation], unseen: Mapping[int, Value]
    ) -> None:
        """Add rw edges from each reader of the whole order to each unseen append of another."""
        once = {read.reader: read for read in readers}
        pure = [read for reader, read in once.items() if reader not in unseen]
        both = [read for reader, read in once.items() if reader in unseen]
        blind = {writer: value for writer, value in unseen.items() if writer not in once}
        self._connect_through_hub(key, [*pure, *both], blind)
        self._connect_through_hub(key, pure, {read.reader: unseen[read.reader] for read in both})
        for pair in pairwise(both):
            for read, other in (pair, pair[::-1]):
                value = unseen[other.reader]
                self._add(EdgeKind.RW, read.reader, other.reader, key, read.values, value)

    def _connect_through_hub(
        self, key: Key, readers: Sequence[Observation], writers: Mapping[int, Value]
    ) -> None:
        if not readers or not writers:
            return
        hub = self._graph.add_hub()
        for read in readers:
            self._add(EdgeKind.RW, read.reader, hub, key, read.values, None)
        for writer, value in writers.items():
            # Only rw leads into a hub, so this way out of it never counts as a ww of its own.
            self._add(EdgeKind.WW, hub, writer, key, (), value)

    def _find_lost_writes(self, key: Key, events: KeyEvents) -> None:
        last = events.reads[-1] if events.reads else None
        if last is None or not self._is_final(last):
            return
        kept = set(last.values)
        for value, writer in events.writer.items():
            if value not in kept and self._attempts[writer].status is Status.OK:
                what = f"{self._name(writer)} appended {value} to key {key}, in the end it holds"
                self._found.append(Anomaly("lost-write", f"{what} {describe_list(last.values)}"))

    def _may_miss(self, read: Observation, writer: int) -> bool:
        """Return False where an edge would only repeat a reported lost write."""
        return not self._is_final(read) or self._attempts[writer].status is not Status.OK

    def _is_final(self, read: Observation) -> bool:
        return self._attempts[read.reader].number == FINAL

    def _name(self, index: int) -> str:
        return name(self._attempts[index].number)

    def _add(
        self,
        kind: EdgeKind,
        source: int,
        target: int,
        key: Key,
        values: tuple[Value, ...],
        value: Value,
    ) -> None:
        self._graph.add(kind, source, target, Evidence(key, values, value))

    def _steps(self, cycle: Cycle) -> tuple[Step, ...]:
        return tuple(
            Step(
                self._attempts[hop.source].number,
                hop.kind.value,
                self._reason(hop),
                self._attempts[hop.target].number,
            )
            for hop in cycle.hops
        )

    def _reason(self, hop: Hop) -> str:
        if hop.evidence is None:
            return ""
        key, values, value = hop.evidence
        target = self._name(hop.target)
        if hop.kind is EdgeKind.WW:
            return f"key {key}: appended {values[0]}, then {target} {value}"
        if hop.kind is EdgeKind.WR:
            return f"key {key}: appended {value}, {target} read {describe_list(values)}"
        return f"key {key}: read {describe_list(values)}, {target} appended {value}"


def _final_reads(attempts: Sequence[Attempt], final: Mapping[Key, Sequence[Value]]) -> Attempt:
    """Return a transaction after all others that reads every key there is."""
    keys = dict.fromkeys(each.key for attempt in attempts for each in attempt.operations)
    keys.update(dict.fromkeys(final))
    reads = tuple(Read(key, tuple(final.get(key, ()))) for key in keys)
    end = max((max(each.invoked, each.completed or 0) for each in attempts), default=0)
    return Attempt(FINAL, "final", reads, end + 1, end + 2, Status.OK, None)
