"""Checks that reads of plain registers agree with the versions that were reported.

Every OK attempt names a version: the one its commit made, or, if it wrote nothing, the one of the
snapshot it read. The versions are the commit order, so nothing has to be inferred; but commits of
one group share a version, and inside a group any order is possible. The rest is still sharp:

    version        3                  5                   6                   8
    writes of k    T1: a              T2: b   T3: c       T4: d

    an attempt that wrote nothing, at 5     b or c: a snapshot is whole; never a (stale), d (future)
    an attempt that made version 6          b or c, or d if T4 came before it in their group
    an attempt at 8                         d

  * stale-read: the reader misses a later write, at a version that it had to see;
  * future-read: the write has a higher version than the reader;
  * disagreement: after a group one value remains, so not one reader may find b and another c;
  * lost-update: two attempts read the same value of a register and both replaced it. The second
    cannot have found it there, whatever the versions say, also inside one group;
  * G1a, G1b, garbage and internal as for lists.

Invariant: only what no order inside the groups can explain is reported. An UNKNOWN write has no
version; it is not later than the first version at which it was seen, and a reader is blamed only
for contradicting this. Circles inside one group are not searched for: list-append histories show
those (see serializability.py).

Values are unique for each key, None is a register that was never written, nothing is deleted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from simulations.checkers.anomaly import Anomaly, by_severity, name
from simulations.checkers.versions import version_regressions
from simulations.history import Attempt, Get, Key, Status, Value, Write


@dataclass(frozen=True, slots=True)
class Look:
    """What one attempt found in a register before it wrote there itself."""

    reader: Attempt
    key: Key
    value: Value
    overwrites: bool

    @property
    def version(self) -> int:
        assert self.reader.version is not None, f"no version: {self.reader}"
        return self.reader.version

    @property
    def complete_up_to(self) -> int:
        """The last version of which the reader had to see everything."""
        wrote = any(isinstance(operation, Write) for operation in self.reader.operations)
        return self.version - 1 if wrote else self.version

    def __str__(self) -> str:
        shown = "nothing" if self.value is None else self.value
        return (
            f"{name(self.reader.number)} at version {self.version} read {shown} of key {self.key}"
        )


@dataclass(slots=True)
class Register:
    """The writers of one key, and what is known about their versions."""

    writer: dict[Value, Attempt] = field(default_factory=dict)
    last_of: dict[int, Value] = field(default_factory=dict)  # attempt → what it left behind
    committed: dict[int, Attempt] = field(default_factory=dict)  # version → one of its writers
    versions: list[int] = field(default_factory=list)  # those of `committed`, ascending
    first_seen: dict[Value, int] = field(default_factory=dict)
    remaining: dict[int, Look] = field(default_factory=dict)  # version → a look at what it left
    replaced: dict[Value, Look] = field(default_factory=dict)

    def latest(self, version: int) -> int | None:
        """Return the last version up to this one that is known to have written here, or None."""
        place = bisect_right(self.versions, version)
        return self.versions[place - 1] if place else None


def check_versions(attempts: Iterable[Attempt]) -> list[Anomaly]:
    """Return all reads that no order inside the versions can explain, the worst first."""
    history = list(attempts)
    registers = _collect(history)
    looks: list[Look] = []
    found: list[Anomaly] = []
    for attempt in history:
        if attempt.status is Status.OK:
            looks += _looks(attempt, found)
    for look in looks:
        seen = registers[look.key].first_seen
        seen[look.value] = min(look.version, seen.get(look.value, look.version))
    for look in looks:
        found += _judge(look, registers[look.key])
    return by_severity([*found, *version_regressions(history)])


def _collect(history: Sequence[Attempt]) -> dict[Key, Register]:
    registers: dict[Key, Register] = {}
    for attempt in history:
        for operation in attempt.operations:
            register = registers.setdefault(operation.key, Register())
            if not isinstance(operation, Write):
                assert isinstance(operation, Get), f"not of a register: {operation}"
                continue
            assert operation.value is not None, "None is what was never written"
            assert operation.value not in register.writer, f"written twice: {operation}"
            register.writer[operation.value] = attempt
            register.last_of[attempt.number] = operation.value
            if attempt.status is Status.OK:
                assert attempt.version is not None, f"no version: {attempt}"
                register.committed.setdefault(attempt.version, attempt)
    for register in registers.values():
        register.versions = sorted(register.committed)
    return registers


def _looks(attempt: Attempt, found: list[Anomaly]) -> list[Look]:
    """Return the first look at each key before a write; report later ones that disagree."""
    written = {each.key for each in attempt.operations if isinstance(each, Write)}
    expected: dict[Key, Value] = {}
    looks: list[Look] = []
    for operation in attempt.operations:
        assert isinstance(operation, Get | Write)
        key, value = operation.key, operation.value
        if isinstance(operation, Get):
            if key not in expected:
                looks.append(Look(attempt, key, value, key in written))
            elif value != expected[key]:
                what = f"{name(attempt.number)} read {value} of key {key}"
                found.append(Anomaly("internal", f"{what} where it had to see {expected[key]}"))
        expected.setdefault(key, value)
        if isinstance(operation, Write):
            expected[key] = value
    return looks


def _judge(look: Look, register: Register) -> Iterator[Anomaly]:
    writer = register.writer.get(look.value)
    if writer is None and look.value is not None:
        yield Anomaly("garbage", f"{look}, which nobody wrote")
        return
    if writer is not None:
        if writer.number == look.reader.number:
            yield Anomaly("internal", f"{look} before it wrote that itself")
            return
        if writer.status is Status.FAILED:
            yield Anomaly("G1a", f"{look}, which {name(writer.number)} wrote that failed")
            return
        if register.last_of[writer.number] != look.value:
            after = register.last_of[writer.number]
            yield Anomaly("G1b", f"{look}, but {name(writer.number)} wrote {after} after it")
            return
    if look.overwrites:
        first = register.replaced.setdefault(look.value, look)
        if first is not look:
            yield Anomaly("lost-update", f"{first}, and so did {look}, and both replaced it")
    yield from _judge_version(look, register, writer)


def _judge_version(look: Look, register: Register, writer: Attempt | None) -> Iterator[Anomaly]:
    written: int | None = None  # the version of the write; None is before all versions
    known = True
    if writer is not None:
        known = writer.version is not None
        written = writer.version if known else register.first_seen[look.value]
    source = "" if writer is None else f" which {name(writer.number)} wrote"
    if known and written is not None and written > look.version:
        yield Anomaly("future-read", f"{look}{source} at version {written}")
        return
    latest = register.latest(look.complete_up_to)
    if latest is None:
        return
    if written is None or written < latest:
        newer = name(register.committed[latest].number)
        when = "" if written is None else f" {'at' if known else 'by'} version {written}"
        what = f"{look}{source}{when}, but {newer} wrote at version {latest}"
        yield Anomaly("stale-read", what)
    elif written == latest:
        first = register.remaining.setdefault(latest, look)
        if first.value != look.value:
            what = f"{first}, but {look}: only one of the two is what version {latest} left"
            yield Anomaly("disagreement", what)
