"""What a checker reports: the anomaly, its kind, and the circle of attempts that proves it.

The kinds are those of Adya's thesis where he has a name for it. G0, G1c, G-single and G2 are
circles that differ in the edges they need: only ww; also wr; exactly one rw; several rw. The suffix
`-realtime` says that the values alone would allow some serial order, but none that agrees with the
order in which the clients saw things happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from simulations.history import Value

# Worst first: what makes the data themselves nonsense, then what breaks isolation, then order.
SEVERITY: Final = (
    "garbage",
    "duplicate",
    "incompatible-order",
    "lost-write",
    "internal",
    "G1a",
    "G1b",
    "G0",
    "G1c",
    "lost-update",
    "G-single",
    "G2",
    "future-read",
    "stale-read",
    "disagreement",
    "G0-realtime",
    "G1c-realtime",
    "G-single-realtime",
    "G2-realtime",
    "versions-not-monotone",
)

# The number of the attempt that stands for reading everything at the end of a run.
FINAL: Final = -1

# Longer lists are shown by their ends: the end of a list shows which appends were seen.
SHOWN_VALUES_MAX: Final = 12
SHOWN_FIRST: Final = 2


@dataclass(frozen=True, slots=True)
class Step:
    """One edge of a circle: why `source` must come before `target`."""

    source: int
    kind: str
    reason: str
    target: int

    def __str__(self) -> str:
        reason = f"({self.reason})" if self.reason else ""
        return f"{name(self.source)} -{self.kind}{reason}-> {name(self.target)}"


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Something that no strictly serializable database would have shown."""

    kind: str
    explanation: str
    cycle: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        assert self.kind in SEVERITY, self.kind

    def __str__(self) -> str:
        return f"{self.kind}: {self.explanation}"


def name(number: int) -> str:
    """Return the name of an attempt in explanations, the same as in a trace."""
    return "final" if number == FINAL else f"T{number}"


def describe_cycle(steps: Sequence[Step]) -> str:
    """Return the circle on one line: `T3 -rw(…)-> T7 -realtime-> T3`."""
    assert steps and steps[-1].target == steps[0].source
    links = (str(step).partition(" ")[2] for step in steps)
    return " ".join([name(steps[0].source), *links])


def describe_list(values: Sequence[Value]) -> str:
    """Return `[1 2 3]`, or only the ends of a list that is too long to be read."""
    if len(values) <= SHOWN_VALUES_MAX:
        return f"[{' '.join(map(str, values))}]"
    last = values[SHOWN_FIRST - SHOWN_VALUES_MAX :]
    return f"[{' '.join(map(str, (*values[:SHOWN_FIRST], '…', *last)))}]"


def by_severity(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """Return the worst first; those of one kind stay in the order in which they were found."""
    rank = {kind: place for place, kind in enumerate(SEVERITY)}
    return sorted(anomalies, key=lambda anomaly: rank[anomaly.kind])
