"""Rate windows in shared memory: never above the limit, whoever counts and whoever dies."""

from __future__ import annotations

import fcntl
import os
import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from mmap import mmap
from struct import Struct
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.cluster import SharedWindows, shared_windows
from qserver.control.rates import Allowance, Rates
from qserver.control.tiers import Tier
from qserver.errors import DatabaseUnavailable, RateLimited, TooManyRequests
from qserver.limits import RATE_LOCK_SECONDS_MAX, RATE_SLOTS_PROBED, RATE_WINDOW_SECONDS
from tests.children import fork, wait
from tests.patience import eventually
from tests.sampling import NIGHTLY, SEED

SECOND = 1_000_000
WINDOW = RATE_WINDOW_SECONDS * SECOND
STRICTER = WINDOW + SECOND // 4
"""So long a request may count."""


class Clock:
    def __init__(self) -> None:
        self.microseconds = 0

    def __call__(self) -> float:
        return self.microseconds / SECOND


pauses = st.lists(
    st.one_of(
        st.integers(0, 5 * SECOND),
        st.sampled_from([0, 1, 249_999, 250_000, WINDOW - 1, WINDOW, WINDOW + 1, STRICTER]),
        st.integers(0, 70 * SECOND),
    ),
    max_size=80,
)
costs = st.lists(st.integers(1, 5), min_size=80, max_size=80)


class Windows(SharedWindows):
    """Of a test: ends with it."""

    def __del__(self) -> None:
        self.close()


def most_in_a_window(counted: list[tuple[int, int]]) -> int:
    """The most that counted in a window, with its beginning and without its end."""
    most = total = begin = 0
    for at, cost in counted:
        total += cost
        while counted[begin][0] <= at - WINDOW:
            total -= counted[begin][1]
            begin += 1
        most = max(most, total)
    return most


@given(pauses, costs, st.integers(5, 12), st.sampled_from([0, 59 * SECOND, 10**12 + 7]))
def test_no_window_has_more_than_the_limit_and_who_waits_gets_through(
    steps: list[int], costs: list[int], limit: int, begin: int
) -> None:
    clock = Clock()
    clock.microseconds = begin
    windows = Windows(clock, slots=4)
    counted: list[tuple[int, int]] = []
    for step, cost in zip(steps, costs, strict=False):
        clock.microseconds += step
        inside = sum(each for at, each in counted if at > clock.microseconds - STRICTER)
        wait, count, reset = windows.take("org", limit, cost)
        if wait:
            assert inside + cost > limit, "refused although there was room"
            assert count <= inside and 1 <= wait <= RATE_WINDOW_SECONDS + 1
            assert windows.seconds_until_room("org", limit, cost) == wait
            clock.microseconds += wait * SECOND
            wait, count, reset = windows.take("org", limit, cost)
            assert wait == 0
        counted.append((clock.microseconds, cost))
        assert count == windows.count("org") <= limit
        assert 1 <= reset == windows.seconds_until_first_ends("org") <= RATE_WINDOW_SECONDS + 1
    assert most_in_a_window(counted) <= limit


@given(pauses, costs, st.integers(5, 12))
def test_what_is_given_back_makes_room_and_lets_no_other_go_early(
    steps: list[int], costs: list[int], limit: int
) -> None:
    """Each second request moves away soon, after others were counted."""
    clock = Clock()
    windows = Windows(clock, slots=4)
    counted: list[tuple[int, int]] = []
    for number, (step, cost) in enumerate(zip(steps, costs, strict=False)):
        clock.microseconds += step
        is_counted = not windows.take("org", limit, cost)[0]
        if is_counted and number % 2:
            clock.microseconds += SECOND // 2
            if not windows.take("org", limit)[0]:
                counted.append((clock.microseconds, 1))
            clock.microseconds += SECOND // 2
            before = windows.count("org")
            windows.give_back("org", cost)
            assert windows.count("org") == before - cost
        elif is_counted:
            counted.append((clock.microseconds, cost))
    assert most_in_a_window(counted) <= limit


def test_of_what_is_given_back_the_oldest_of_the_last_second_goes() -> None:
    clock = Clock()
    windows = Windows(clock, slots=4)
    windows.add("org")
    clock.microseconds += 2 * SECOND
    windows.add("org", 2)
    clock.microseconds += 3 * SECOND // 4
    windows.add("org", 2)
    windows.give_back("org", 2)
    assert windows.count("org") == 3
    clock.microseconds = STRICTER
    assert windows.count("org") == 2
    clock.microseconds = STRICTER + 2 * SECOND + SECOND // 2
    assert windows.count("org") == 2
    windows.give_back("org", 2)
    windows.give_back("nobody", 2)
    assert windows.count("org") == 2, "it is too late"


def test_names_are_counted_apart_and_slots_are_used_again() -> None:
    clock = Clock()
    windows = Windows(clock, slots=1)
    for number in range(RATE_SLOTS_PROBED):
        assert windows.take(f"org {number}", 5, number % 5 + 1)[0] == 0
    assert len(windows) == RATE_SLOTS_PROBED
    assert [windows.count(f"org {number}") for number in range(7)] == [1, 2, 3, 4, 5, 1, 2]
    with pytest.raises(TooManyRequests):
        windows.take("one more", 5)
    clock.microseconds += STRICTER
    windows.forget_old()
    assert len(windows) == 0
    assert windows.take("one more", 5) == (0, 1, 61)
    assert [windows.count(f"org {number}") for number in range(7)] == [0] * 7
    assert windows.count("one more") == 1


def test_a_name_that_has_lost_its_slot_gets_another() -> None:
    clock = Clock()
    one = Windows(clock, slots=1)
    one.add("org", 5)
    clock.microseconds += STRICTER
    for number in range(RATE_SLOTS_PROBED - 1):
        one.add(f"other {number}", 3)
    assert one.count("org") == 0
    one.add("org", 2)
    assert one.count("org") == 2
    assert [one.count(f"other {number}") for number in range(RATE_SLOTS_PROBED - 1)] == [3] * 31


def test_rates_take_it_as_they_take_their_own() -> None:
    clock = Clock()
    rates = Rates(Windows(clock, slots=4))
    for number in range(3):
        assert rates.take("org", Tier("test", 3)) == Allowance("test", 3, 2 - number, 60)
    with pytest.raises(RateLimited) as refused:
        rates.take("org", Tier("test", 3))
    assert refused.value.retry_after_seconds == 60
    rates.give_back("org", Tier("test", 3))
    assert (rates.count("org"), repr(rates)) == (2, "the recent requests of 1 organizations")


def locked_for_others(windows: SharedWindows) -> int:
    """How many slots another process would have to wait for."""

    def count() -> int:
        locked = 0
        for slot in range(RATE_SLOTS_PROBED):
            try:
                fcntl.lockf(windows._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, slot)
            except OSError:
                locked += 1
        return locked

    return wait(fork(count))


def test_who_looks_for_a_slot_locks_all_that_it_may_take() -> None:
    windows = Windows(Clock(), slots=1)
    for expected in (RATE_SLOTS_PROBED, 1):
        with windows._window("org"):
            assert locked_for_others(windows) == expected
        assert locked_for_others(windows) == 0


@contextmanager
def standing_still(windows: SharedWindows, name: str) -> Iterator[None]:
    """Another process has locked the slot of a name, and is stopped."""

    def stand_still() -> None:
        with windows._window(name):
            os.kill(os.getpid(), signal.SIGSTOP)

    pid = fork(stand_still)
    try:
        assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        wait(pid)


@pytest.mark.parametrize("is_known", [True, False])
def test_who_cannot_count_because_another_process_stands_still_refuses(
    is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(shared_windows, "sleep", pauses.append)
    clock = Clock()
    windows = Windows(clock, slots=1)
    if is_known:
        windows.add("org", 3)
    with standing_still(windows, "org"):
        with pytest.raises(DatabaseUnavailable, match="stands still"):
            windows.take("org", 9)
        assert RATE_LOCK_SECONDS_MAX <= sum(pauses) < 2 * RATE_LOCK_SECONDS_MAX
        pauses.clear()
        for _ in range(9):
            with pytest.raises(DatabaseUnavailable):
                windows.take("org", 9)
            windows.give_back("org")
        assert pauses == [], "it is known by now: nobody else has to wait for that"
        clock.microseconds += SECOND
        with pytest.raises(DatabaseUnavailable):
            windows.take("org", 9)
        assert pauses, "it may go on soon"
    assert windows.take("org", 9)[:2] == (0, 4 if is_known else 1)


def test_who_waits_for_a_moment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    windows = Windows(Clock(), slots=1)
    with ExitStack() as stopped:
        stopped.enter_context(standing_still(windows, "org"))
        monkeypatch.setattr(shared_windows, "sleep", lambda seconds: stopped.close())
        assert windows.take("org", 9)[:2] == (0, 1)


# --- real processes ------------------------------------------------------------------------------

LIMITS = (200, *[2] * 24)
"""Of organizations, by their number: most requests are of the first."""
PROCESSES = 4
ROUNDS = 100 if NIGHTLY else 30
STEPS = (0, 50_000, 250_000, 20 * SECOND, 61 * SECOND, 61 * SECOND, 61 * SECOND)
RECORD = Struct("=qqq")


class SharedClock:
    """One time for all processes, which one of them sets; it remembers what it has said last."""

    def __init__(self) -> None:
        self._shared = memoryview(mmap(-1, 8)).cast("q")
        self.said = 0

    def __call__(self) -> float:
        self.said = self._shared[0]
        return self.said / SECOND

    def advance(self, microseconds: int) -> None:
        self._shared[0] += microseconds


class Hammer:
    """Processes that all send requests of the same organizations, as fast as they can."""

    def __init__(self) -> None:
        self.clock = SharedClock()
        self.attempts = memoryview(mmap(-1, 8 * PROCESSES)).cast("q")
        self.windows = Windows(self.clock, slots=8)
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._reading, False)
        self._pids = [self._fork(number) for number in range(PROCESSES)]
        self._data = b""

    def replace(self, number: int) -> None:
        """Kill a process wherever it is, and start another."""
        os.kill(self._pids[number], signal.SIGKILL)
        wait(self._pids[number])
        self._pids[number] = self._fork(number)

    def let_all_try(self, times: int) -> None:
        begun = self.attempts.tolist()

        def all_have() -> bool:
            self._read()
            return all(now >= then + times for now, then in zip(self.attempts, begun, strict=True))

        eventually(all_have, "a process does not get on")

    def stop(self) -> list[tuple[int, int, int]]:
        """End all, and return what they let through: moments, costs and organizations."""
        for pid in self._pids:
            os.kill(pid, signal.SIGKILL)
            wait(pid)
        self._read()
        os.close(self._reading)
        os.close(self._writing)
        return sorted(RECORD.iter_unpack(self._data))

    def _read(self) -> None:
        while True:
            try:
                self._data += os.read(self._reading, 1 << 16)
            except BlockingIOError:
                return

    def _fork(self, number: int) -> int:
        return fork(partial(self._work, number))

    def _work(self, number: int) -> NoReturn:
        chance = random.Random(os.getpid())
        while True:
            organization = chance.choice((0, 0, 0, chance.randrange(len(LIMITS))))
            cost = chance.choice((1, 1, 2))
            if not self.windows.take(str(organization), LIMITS[organization], cost)[0]:
                os.write(self._writing, RECORD.pack(self.clock.said, cost, organization))
            self.attempts[number] += 1


@pytest.mark.long
def test_processes_that_are_killed_never_let_more_than_the_limit_through_together() -> None:
    chance = random.Random(SEED)
    hammer = Hammer()
    try:
        for _ in range(ROUNDS):
            hammer.let_all_try(100)
            hammer.clock.advance(chance.choice(STEPS))
            if chance.random() < 0.5:
                hammer.replace(chance.randrange(PROCESSES))
    finally:
        records = hammer.stop()
    for organization, limit in enumerate(LIMITS):
        counted = [(at, cost) for at, cost, whose in records if whose == organization]
        assert most_in_a_window(counted) <= limit, f"organization {organization}"
        if organization == 0:
            windows = int(hammer.clock() * SECOND) // STRICTER
            assert sum(cost for _, cost in counted) > limit * windows // 4, "they get through"
