"""Reads of registers against the versions they report: what is caught, and what must not be.

A history is written one attempt to a line, `T3 v6 x=2 x:=3`: number, version, then its operations
(`x=2` found that value, `x=` found none, `x:=3` wrote). `failed` and `unknown` stand where the
version would. All attempts run at once, so that only values and versions count.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from simulations.checkers.anomaly import Anomaly
from simulations.checkers.registers import check_versions
from simulations.history import Attempt, Get, Key, Operation, Status, Value, Write
from tests.sampling import examples

# How fast examples are made and judged depends on what else the machine does.
ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def history(text: str) -> list[Attempt]:
    return [_attempt(*line.split()) for line in text.strip().splitlines()]


def _attempt(number: str, outcome: str, *words: str) -> Attempt:
    status = {"failed": Status.FAILED, "unknown": Status.UNKNOWN}.get(outcome, Status.OK)
    version = int(outcome[1:]) if status is Status.OK else None
    completed = None if status is Status.UNKNOWN else 1000
    operations = tuple(_operation(word) for word in words)
    return Attempt(int(number[1:]), "client", operations, 0, completed, status, version)


def _operation(word: str) -> Operation:
    if ":=" in word:
        key, _, value = word.partition(":=")
        return Write(key, int(value))
    key, _, value = word.partition("=")
    return Get(key, int(value) if value else None)


def kinds(anomalies: Sequence[Anomaly]) -> list[str]:
    return [anomaly.kind for anomaly in anomalies]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("stale-read", "T0 v1 x:=1\nT1 v2 x:=2\nT2 v2 x=1"),
        ("stale-read", "T0 v1 x:=1\nT1 v1 x="),
        ("stale-read", "T0 v1 x:=1\nT1 v2 x:=2\nT2 v3 x=1 y:=3"),
        ("stale-read", "T0 v1 x:=1\nT1 unknown x:=2\nT2 v2 x=2\nT3 v3 x:=3\nT4 v4 x=2"),
        ("future-read", "T0 v1 x:=1\nT1 v3 x:=2\nT2 v2 x=2"),
        ("future-read", "T0 v5 x:=1\nT1 v4 x=1 y:=2"),
        ("disagreement", "T0 v1 x:=1\nT1 v1 x:=2\nT2 v1 x=1\nT3 v2 x=2"),
        ("disagreement", "T0 v1 x:=1\nT1 unknown x:=2\nT2 v1 x=2\nT3 v2 x=1"),
        ("lost-update", "T0 v1 x= x:=1\nT1 v1 x= x:=2"),
        ("lost-update", "T0 v1 x:=1\nT1 v2 x=1 x:=2\nT2 v2 x=1 x:=3"),
        ("G1a", "T0 failed x:=1\nT1 v1 x=1"),
        ("G1b", "T0 v1 x:=1 x:=2\nT1 v1 x=1"),
        ("garbage", "T0 v1 x:=1\nT1 v1 x=9"),
        ("internal", "T0 v1 x:=1 x="),
        ("internal", "T0 v1 x= x:=1 x="),
        ("internal", "T0 v1 x=1 x:=1"),
        ("internal", "T0 v1 x:=1\nT1 v2 x:=2\nT2 v2 x=2 x=1"),
    ],
)
def test_exactly_this_anomaly_is_found(kind: str, text: str) -> None:
    assert kinds(check_versions(history(text))) == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "T0 v0 x=\nT1 v1 x:=1\nT2 v1 x=1\nT3 v2 y:=1\nT4 v2 x=1",
        "T0 v1 x= x:=1\nT1 v1 x=1 x:=2\nT2 v1 x=2",  # one after the other in a group
        "T0 v1 x:=1\nT1 v1 x= y:=1\nT2 v1 x=1 z:=1",  # before and after another in a group
        "T0 v1 x:=1\nT1 v1 x:=2\nT2 v1 x=1\nT3 v1 x=2 y:=1",  # between two others in a group
        "T0 v1 x:=1\nT1 unknown x:=2\nT2 v1 x=1\nT3 v2 x=2\nT4 v3 x:=3\nT5 v3 x=3",
        "T0 unknown x:=1\nT1 v5 x=",
        "T0 failed x:=1 y=9\nT1 v5 x=",
        "T0 v1 x:=1 x=1 x:=2 x=2\nT1 v1 x=2",
    ],
)
def test_nothing_is_found_where_an_order_inside_the_versions_explains_it(text: str) -> None:
    attempts = history(text)
    assert explained(attempts)
    assert check_versions(attempts) == []


def test_a_stale_read_names_all_who_took_part() -> None:
    [anomaly] = check_versions(history("T0 v1 x:=1\nT1 v2 x:=2\nT2 v3 x=1"))
    assert str(anomaly) == (
        "stale-read: T2 at version 3 read 1 of key x which T0 wrote at version 1, "
        "but T1 wrote at version 2"
    )


def test_versions_that_run_backwards_in_real_time_are_found() -> None:
    attempts = [
        Attempt(0, "client", (Get("x", None),), 0, 1, Status.OK, 5),
        Attempt(1, "client", (Get("x", None),), 2, 3, Status.OK, 4),
    ]
    assert kinds(check_versions(attempts)) == ["versions-not-monotone"]


@st.composite
def runs(draw: st.DrawFn, groups: bool, tampered: bool) -> list[Attempt]:
    """Groups of commits, each with a version, and readers of the snapshots between them."""
    state: dict[Key, Value] = {}
    attempts: list[Attempt] = []
    version = 0
    for number in range(draw(st.integers(1, 7))):
        seen = dict(state)
        operations: list[Operation] = []
        for place in range(draw(st.integers(1, 3))):
            key = draw(st.sampled_from("xy"))
            if draw(st.booleans()):
                seen[key] = 10 * number + place
                operations.append(Write(key, seen[key]))
            else:
                found = seen.get(key)
                if tampered and draw(st.integers(0, 3)) == 0:
                    found = draw(st.sampled_from([None, *_written(attempts, key)]))
                operations.append(Get(key, found))
        wrote = any(isinstance(operation, Write) for operation in operations)
        after_reader = bool(attempts) and not _wrote(attempts[-1])
        if wrote and (after_reader or not groups or draw(st.booleans())):
            version += 1
        status = draw(st.sampled_from([Status.OK] * 5 + [Status.UNKNOWN])) if groups else Status.OK
        if status is Status.UNKNOWN:
            operations = [each for each in operations if isinstance(each, Write)]
            applied, completed, reported = draw(st.booleans()), None, None
        else:
            applied, completed, reported = True, 1000, version
        state = seen if applied else state
        attempts.append(
            Attempt(number, "client", tuple(operations), 0, completed, status, reported)
        )
    return attempts


def _written(attempts: Sequence[Attempt], key: Key) -> list[Value]:
    operations = (operation for attempt in attempts for operation in attempt.operations)
    return [each.value for each in operations if isinstance(each, Write) and each.key == key]


def _wrote(attempt: Attempt) -> bool:
    return any(isinstance(operation, Write) for operation in attempt.operations)


@settings(ANY_SPEED, max_examples=examples(60))
@given(runs(groups=True, tampered=False))
def test_a_serial_run_in_groups_is_clean(attempts: list[Attempt]) -> None:
    assert check_versions(attempts) == []


@settings(ANY_SPEED, max_examples=examples(150))
@given(runs(groups=True, tampered=True))
def test_nothing_that_an_order_inside_the_groups_explains_is_reported(
    attempts: list[Attempt],
) -> None:
    if explained(attempts):
        assert check_versions(attempts) == []


@settings(ANY_SPEED, max_examples=examples(150))
@given(runs(groups=False, tampered=True))
def test_without_groups_everything_that_no_order_explains_is_reported(
    attempts: list[Attempt],
) -> None:
    assert (check_versions(attempts) == []) == explained(attempts)


def explained(attempts: Sequence[Attempt]) -> bool:
    """The oracle: tries all orders that agree with the versions; a snapshot comes after its group.

    What is unknown took effect in some group too, so not between two looks at the same snapshot.
    """

    def rank(attempt: Attempt) -> tuple[int, bool]:
        assert attempt.version is not None
        return attempt.version, not _wrote(attempt)

    def search(
        remaining: tuple[Attempt, ...], state: dict[Key, Value], last: tuple[int, bool]
    ) -> bool:
        known = [rank(each) for each in remaining if each.status is Status.OK]
        if not known:
            return True
        now = min(known)
        snapshot_is_fixed = last == now and now[1]
        for chosen in remaining:
            unknown = chosen.status is Status.UNKNOWN
            if snapshot_is_fixed if unknown else rank(chosen) != now:
                continue
            after = _apply(chosen, state)
            if after is None:
                continue
            rest = tuple(each for each in remaining if each is not chosen)
            if search(rest, after, last if unknown else now):
                return True
        return False

    every = tuple(each for each in attempts if each.status is not Status.FAILED)
    return search(every, {}, (-1, False))


def _apply(attempt: Attempt, state: dict[Key, Value]) -> dict[Key, Value] | None:
    state = dict(state)
    for operation in attempt.operations:
        if isinstance(operation, Write):
            state[operation.key] = operation.value
        elif isinstance(operation, Get) and operation.value != state.get(operation.key):
            return None
    return state
