"""Runs by the hundred: good ones are clean, and of broken ones the judge says what the oracle says.

Then two of a size that matters, and the same verdict in every process.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from simulations.checkers.serializability import check
from simulations.history import Append, Attempt, Operation, Read, Status, Value
from tests.sampling import examples
from tests.simulations.list_histories import State, explained, kinds

ROOT = Path(__file__).parent.parent.parent

# How fast examples are made and judged depends on what else the machine does.
ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def serial_runs(
    draw: st.DrawFn, attempts_max: int = 12, keys: str = "xyz"
) -> tuple[list[Attempt], State]:
    """A database that does one transaction after the other, seen through impatient clients.

    Each attempt takes effect at a moment of its own inside of the time in which it is under way,
    or later if its outcome is unknown; so attempts overlap, but an order explains them all.
    """
    state: State = {}
    attempts: list[Attempt] = []
    count = draw(st.integers(1, attempts_max))
    for number in range(count):
        status = draw(st.sampled_from([Status.OK] * 6 + [Status.UNKNOWN, Status.FAILED]))
        applied = status is Status.OK or (status is Status.UNKNOWN and draw(st.booleans()))
        seen = dict(state)
        operations: list[Operation] = []
        for place in range(draw(st.integers(1, 4))):
            key = draw(st.sampled_from(keys))
            if draw(st.booleans()):
                operations.append(Append(key, 10 * number + place))
                seen[key] = (*seen.get(key, ()), 10 * number + place)
            elif status is not Status.UNKNOWN:
                operations.append(Read(key, seen.get(key, ())))
        if applied:
            state = seen
        invoked = max(0, 10 * number - draw(st.integers(0, 25)))
        completed = 10 * number + draw(st.integers(1, 25))
        end = None if status is Status.UNKNOWN else completed
        version = number if status is Status.OK and completed - invoked <= 10 else None
        attempts.append(Attempt(number, "client", tuple(operations), invoked, end, status, version))
    return attempts, state


@settings(ANY_SPEED, max_examples=examples(60))
@given(serial_runs(attempts_max=20))
def test_a_serial_run_is_clean(run: tuple[list[Attempt], State]) -> None:
    attempts, state = run
    assert check(attempts) == []
    assert check(attempts, state) == []


@st.composite
def tampered_runs(draw: st.DrawFn) -> tuple[list[Attempt], State]:
    """A small serial run in which some reads were given another answer."""
    attempts, state = draw(serial_runs(attempts_max=6, keys="xy"))
    for _ in range(draw(st.integers(1, 2))):
        reads = [
            (index, place)
            for index, attempt in enumerate(attempts)
            for place, operation in enumerate(attempt.operations)
            if isinstance(operation, Read) and attempt.status is Status.OK
        ]
        assume(reads)
        index, place = draw(st.sampled_from(reads))
        operations = list(attempts[index].operations)
        read = operations[place]
        assert isinstance(read, Read)
        operations[place] = Read(read.key, draw(_other_answers(attempts, read)))
        attempts[index] = replace(attempts[index], operations=tuple(operations), version=None)
    return [replace(attempt, version=None) for attempt in attempts], state


@st.composite
def _other_answers(draw: st.DrawFn, attempts: list[Attempt], read: Read) -> tuple[Value, ...]:
    """A stale, a future, a scrambled or an invented list."""
    values = list(read.values)
    appended = [
        operation.value
        for attempt in attempts
        for operation in attempt.operations
        if isinstance(operation, Append) and operation.key == read.key
    ]
    change = draw(st.sampled_from(["drop", "drop", "future", "future", "swap", "lose", "invent"]))
    if change == "drop":
        values = values[: draw(st.integers(0, len(values)))]
    elif change == "future":
        unseen = [value for value in appended if value not in values]
        values += unseen[: draw(st.integers(0, len(unseen)))]
    elif change == "swap":
        values = draw(st.permutations(values))
    elif change == "lose" and values:
        values.pop(draw(st.integers(0, len(values) - 1)))
    elif change == "invent":
        values.insert(draw(st.integers(0, len(values))), 999)
    return tuple(values)


@settings(ANY_SPEED, max_examples=examples(250))
@given(tampered_runs(), st.booleans())
def test_something_is_found_exactly_where_no_order_explains_the_run(
    run: tuple[list[Attempt], State], with_end: bool
) -> None:
    attempts, state = run
    final = state if with_end else None
    assert (check(attempts, final) == []) == explained(attempts, final)


@settings(ANY_SPEED, max_examples=examples(150))
@given(tampered_runs())
def test_a_circle_is_named_after_its_edges_and_real_time_only_where_it_is_needed(
    run: tuple[list[Attempt], State],
) -> None:
    attempts, _ = run
    found = check(attempts)
    for anomaly in found:
        edges = [step.kind for step in anomaly.cycle]
        if edges:
            assert anomaly.kind == _name_of(edges)
            following = [*anomaly.cycle[1:], anomaly.cycle[0]]
            assert all(a.target == b.source for a, b in zip(anomaly.cycle, following, strict=True))
    all_at_once = [
        each if each.completed is None else replace(each, invoked=0, completed=1000)
        for each in attempts
    ]
    without_clock = kinds(check(all_at_once))
    assert without_clock == [kind for kind in kinds(found) if not kind.endswith("-realtime")]


def _name_of(edges: list[str]) -> str:
    count = edges.count("rw")
    plain = "G2" if count > 1 else "G-single" if count else "G1c" if "wr" in edges else "G0"
    return f"{plain}-realtime" if "realtime" in edges else plain


@settings(ANY_SPEED, max_examples=examples(60))
@given(serial_runs(), st.data())
def test_an_answer_that_hides_a_completed_append_is_found(
    run: tuple[list[Attempt], State], data: st.DataObject
) -> None:
    attempts, _ = run
    completed_of = {
        (operation.key, operation.value): attempt.completed
        for attempt in attempts
        for operation in attempt.operations
        if isinstance(operation, Append) and attempt.completed is not None
    }
    visible = [
        (index, place)
        for index, attempt in enumerate(attempts)
        for place, operation in enumerate(attempt.operations)
        if isinstance(operation, Read) and attempt.status is Status.OK and operation.values
        if completed_of.get((operation.key, operation.values[-1]), 10**9) < attempt.invoked
    ]
    assume(visible)
    index, place = data.draw(st.sampled_from(visible))
    operations = list(attempts[index].operations)
    read = operations[place]
    assert isinstance(read, Read)
    operations[place] = Read(read.key, read.values[:-1])
    attempts[index] = replace(attempts[index], operations=tuple(operations))
    assert check(attempts) != []


def long_run(count: int, clients: int, names: Sequence[str]) -> tuple[list[Attempt], State]:
    """Clients in turn, each transaction reading two lists and appending to one of them."""
    state: State = {}
    attempts: list[Attempt] = []
    for number in range(count):
        generation = number // 500  # lists must not grow for ever
        first, second = (f"{names[number * step % len(names)]}{generation}" for step in (7, 11))
        reads = (Read(first, state.get(first, ())), Read(second, state.get(second, ())))
        state[first] = (*state.get(first, ()), number)
        operations = (*reads, Append(first, number))
        invoked, completed = 10 * number, 10 * (number + clients - 1)
        attempts.append(
            Attempt(
                number,
                f"client {number % clients}",
                operations,
                invoked,
                completed,
                Status.OK,
                number,
            )
        )
    return attempts, state


@pytest.mark.long
def test_ten_thousand_transactions_are_clean_and_one_lost_append_among_them_is_found() -> None:
    attempts, state = long_run(10_000, 8, "abcdefgh")
    assert check(attempts, state) == []
    lost = Attempt(10_000, "client", (Append("a3", -1),), 5, 6, Status.OK, None)
    [anomaly] = check([*attempts, lost])
    assert anomaly.kind == "G-single-realtime"
    assert len(anomaly.cycle) == 2


def test_a_history_in_which_every_update_is_lost_needs_no_quadratic_graph() -> None:
    attempts = [
        Attempt(n, "client", (Read("x", ()), Append("x", n)), n, n + 100_000, Status.OK, None)
        for n in range(5_000)
    ]
    [anomaly] = check(attempts)
    assert anomaly.kind == "G2"
    assert len(anomaly.cycle) == 2


PROGRAM = """
from simulations.checkers.serializability import check
from simulations.history import Append, Attempt, Read, Status
names = ["ada", "bob", "cyd", "dan", "eve"]
attempts = []
for n in range(60):
    a, b = names[n % 5], names[n * 3 % 4]
    operations = (Read(a, ()), Append(b, f"v{n}"), Read(b, (f"v{n // 2}", f"v{n}")))
    attempts.append(Attempt(n, "c", operations, n, n + 4, Status.OK, n % 7))
print(*check(attempts, {"ada": ("v0", "v3"), "new": ("v1",)}), sep="\\n")
"""


def test_the_verdict_is_the_same_in_every_process() -> None:
    verdicts = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("0", "1", "2")
    ]
    assert len(verdicts[0].splitlines()) > 20
    assert "G" in verdicts[0]
    assert verdicts == verdicts[:1] * 3
