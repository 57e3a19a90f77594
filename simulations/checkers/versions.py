"""Checks that versions do not run backwards for any client that can tell.

Every answer names the version of the database that it saw or made. A request that begins after an
answer has left may know of it, so its own answer must have that version or a later one. Equal is
fine: one group of commits makes one version, and readers make none.
"""

from __future__ import annotations

from collections.abc import Iterable

from simulations.checkers.anomaly import Anomaly, Step, describe_cycle, name
from simulations.history import Attempt, Status


def version_regressions(attempts: Iterable[Attempt]) -> list[Anomaly]:
    """Return one anomaly for each attempt that reports less than one completed before it began."""
    events: list[tuple[int, bool, Attempt]] = []
    for attempt in attempts:
        if attempt.status is Status.OK and attempt.version is not None:
            assert attempt.completed is not None
            events.append((attempt.invoked, False, attempt))
            events.append((attempt.completed, True, attempt))
    # At one position the invocations come first: only strictly before is before.
    events.sort(key=lambda event: event[:2])
    newest: tuple[int, Attempt] | None = None
    found: list[Anomaly] = []
    for _, is_completion, attempt in events:
        version = attempt.version
        assert version is not None
        if is_completion:
            if newest is None or version > newest[0]:
                newest = version, attempt
        elif newest is not None and version < newest[0]:
            found.append(_regression(newest[1], attempt))
    return found


def _regression(earlier: Attempt, later: Attempt) -> Anomaly:
    versions = f"version {later.version}, {name(earlier.number)} version {earlier.version}"
    steps = (
        Step(earlier.number, "realtime", "", later.number),
        Step(later.number, "version", versions, earlier.number),
    )
    return Anomaly("versions-not-monotone", describe_cycle(steps), steps)
