"""What a list-append history says about each key: the appends, the reads, and their order.

A list remembers everything that was appended to it, so one read shows a whole past:

    T0 appends 1        T1 reads [1]      T2 appends 2        T3 reads [1 2]

The longest list that was read is the *order* of the key; every other read must be a beginning of
it. Each place of the order belongs to the attempt that appended the value there. Plain registers do
not show which of two writes came first.

This module also reports what reads show to be wrong without any graph: values from nowhere, values
twice, values of a failed attempt, two reads that contradict each other, and a transaction that does
not see its own appends. A place with such a value belongs to no attempt (None), and the rest of the
order is used as if the place were not there: one fault is then one report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from simulations.checkers.anomaly import Anomaly, describe_list, name
from simulations.history import Append, Attempt, Key, Read, Status, Value


class Observation(NamedTuple):
    """A list as an attempt read it; behind `foreign` values come its own appends."""

    reader: int
    values: tuple[Value, ...]
    foreign: int


@dataclass(slots=True)
class KeyEvents:
    """All that happened to one key. Attempts are given by their place in the history."""

    writer: dict[Value, int] = field(default_factory=dict)
    appended_by: dict[int, list[Value]] = field(default_factory=dict)
    reads: list[Observation] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Order:
    """The order of a key: the values, the attempt of each, and the reads that agree with it."""

    values: tuple[Value, ...]
    writers: tuple[int | None, ...]
    reads: tuple[Observation, ...]
    stray: dict[Value, int]  # seen only by a read that contradicts the order → its writer

    def places_before(self) -> list[int]:
        """Return, for each length of a read, the last owned place inside it, or -1."""
        places = [-1]
        for place, writer in enumerate(self.writers):
            places.append(places[-1] if writer is None else place)
        return places

    def places_after(self) -> list[int]:
        """Return, for each length of a read, the first owned place behind it, or n."""
        places = [len(self.writers)]
        for place in range(len(self.writers) - 1, -1, -1):
            places.append(places[-1] if self.writers[place] is None else place)
        return places[::-1]


def collect(attempts: Sequence[Attempt]) -> dict[Key, KeyEvents]:
    """Sort a history by key. Only answered attempts have reads that count."""
    keys: dict[Key, KeyEvents] = {}
    for index, attempt in enumerate(attempts):
        answered = attempt.status is Status.OK
        for operation in attempt.operations:
            events = keys.get(operation.key)
            if events is None:
                events = keys[operation.key] = KeyEvents()
            if isinstance(operation, Append):
                assert operation.value not in events.writer, f"appended twice: {operation}"
                events.writer[operation.value] = index
                events.appended_by.setdefault(index, []).append(operation.value)
            elif answered:
                assert isinstance(operation, Read), f"not of a list: {operation}"
                mine = events.appended_by.get(index, ())
                foreign = _foreign(operation.values, mine)
                events.reads.append(Observation(index, operation.values, foreign))
    return keys


def internal_anomalies(attempt: Attempt) -> Iterator[Anomaly]:
    """Yield where a transaction contradicts itself: it sees its own appends and no later ones."""
    first: dict[Key, tuple[Value, ...]] = {}  # what others had appended, by this one's first read
    mine: dict[Key, tuple[Value, ...]] = {}
    for operation in attempt.operations:
        key = operation.key
        own = mine.get(key, ())
        if isinstance(operation, Append):
            mine[key] = (*own, operation.value)
            if operation.value in first.get(key, ()):
                what = f"{name(attempt.number)} read {operation.value} of key {key}"
                yield Anomaly("internal", f"{what} before it appended that itself")
            continue
        assert isinstance(operation, Read)
        if key in first:
            expected = first[key] + own
            if operation.values != expected:
                rule = f"where it had to see {describe_list(expected)}"
                yield _contradicts_itself(attempt, operation, rule)
            continue
        others = len(operation.values) - len(own)
        if others < 0 or operation.values[others:] != own:
            rule = f"after it had appended {describe_list(own)}"
            yield _contradicts_itself(attempt, operation, rule)
        else:
            first[key] = operation.values[:others]


class OrderFinder:
    """Finds the order of one key, and notes on the way what is wrong with its values."""

    def __init__(self, attempts: Sequence[Attempt], key: Key, events: KeyEvents) -> None:
        self._attempts = attempts
        self._key = key
        self._events = events
        self._complaints: dict[tuple[str, Value], Anomaly] = {}

    @property
    def anomalies(self) -> list[Anomaly]:
        return list(self._complaints.values())

    def order(self) -> Order:
        reads = self._events.reads
        if not reads:
            return Order((), (), (), {})
        longest = max(reads, key=lambda read: len(read.values))  # the first of several
        agreeing: list[Observation] = []
        stray: dict[Value, int] = {}
        writers = self._writers(longest)
        for read in reads:
            if read.values == longest.values[: len(read.values)]:
                agreeing.append(read)
                continue
            self._complain_of_contradiction(read, longest)
            for value, writer in zip(read.values, self._writers(read), strict=True):
                if writer is not None:
                    stray[value] = writer
        self._hold_to_program_order(longest)
        return Order(longest.values, writers, tuple(agreeing), stray)

    def _writers(self, read: Observation) -> tuple[int | None, ...]:
        """Return the writer of each place of a list; None where the value should not be there."""
        writers: list[int | None] = []
        seen: set[Value] = set()
        for place, value in enumerate(read.values):
            writer = self._events.writer.get(value)
            if writer is None:
                self._complain("garbage", value, f"read {value}, which nobody appended", place)
            elif value in seen:
                self._complain("duplicate", value, f"read {value} twice", place)
                writer = None
            elif self._attempts[writer].status is Status.FAILED:
                what = f"read {value}, which {self._name(writer)} appended that failed"
                self._complain("G1a", value, what, place)
                writer = None
            writers.append(writer)
            seen.add(value)
        return tuple(writers)

    def _complain(self, kind: str, value: Value, deed: str, place: int) -> None:
        """Report once for each value, in the name of the first reader that read that far."""
        if (kind, value) in self._complaints:
            return
        reader = next(
            read
            for read in self._events.reads
            if len(read.values) > place and read.values[place] == value
        )
        shown = f"of key {self._key}: {describe_list(reader.values)}"
        what = f"{self._name(reader.reader)} {deed} {shown}"
        self._complaints[kind, value] = Anomaly(kind, what)

    def _complain_of_contradiction(self, read: Observation, longest: Observation) -> None:
        """Report once for each list that contradicts the longest one."""
        one, other = (
            f"{self._name(each.reader)} read {describe_list(each.values)}"
            for each in (read, longest)
        )
        what = f"of key {self._key}, {one} and {other}: neither begins with the other"
        self._complaints.setdefault(
            ("incompatible-order", read.values), Anomaly("incompatible-order", what)
        )

    def _hold_to_program_order(self, longest: Observation) -> None:
        """Report appends of one attempt that are not in the order in which it made them."""
        several = {who: made for who, made in self._events.appended_by.items() if len(made) > 1}
        place_of = {value: place for place, value in enumerate(longest.values)} if several else {}
        for writer, values in several.items():
            present = [value for value in values if value in place_of]
            places = [place_of[value] for value in present]
            if places != sorted(places) and self._attempts[writer].status is not Status.FAILED:
                shown = f"{self._name(longest.reader)} read {describe_list(longest.values)}"
                made = f"{self._name(writer)} appended {describe_list(present)}"
                what = f"to key {self._key}, {made} in this order, but {shown}"
                self._complaints["program-order", writer] = Anomaly("incompatible-order", what)

    def _name(self, index: int) -> str:
        return name(self._attempts[index].number)


def _foreign(values: Sequence[Value], mine: Sequence[Value]) -> int:
    """Return the length of the list without the reader's own appends at its end."""
    length = len(values)
    if mine:
        while length and values[length - 1] in mine:
            length -= 1
    return length


def _contradicts_itself(attempt: Attempt, read: Read, rule: str) -> Anomaly:
    what = f"{name(attempt.number)} read {describe_list(read.values)} of key {read.key}"
    return Anomaly("internal", f"{what} {rule}")
