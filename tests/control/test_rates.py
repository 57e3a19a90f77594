"""The sliding log of requests: exact over every window, kind to those who wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.control.rates import UNLIMITED, Allowance, Rates, SignupRates, SlidingLogs
from qserver.control.tiers import TIERS, Tier
from qserver.errors import RateLimited
from qserver.limits import RATE_WINDOW_SECONDS, SIGNUP_WINDOW_SECONDS


class Clock:
    def __init__(self) -> None:
        self.microseconds = 0

    def __call__(self) -> float:
        return self.microseconds / 1_000_000


pauses = st.lists(
    st.one_of(
        st.integers(0, 5_000_000),
        st.sampled_from([0, 1, 59_999_999, 60_000_000, 60_000_001]),
        st.integers(0, 70_000_000),
    ),
    max_size=80,
)


@given(pauses, st.integers(1, 7))
def test_no_window_ever_has_more_requests_than_the_limit(steps: list[int], limit: int) -> None:
    clock = Clock()
    rates = Rates(SlidingLogs(clock, RATE_WINDOW_SECONDS))
    window = RATE_WINDOW_SECONDS * 1_000_000
    let_through: list[int] = []
    for step in steps:
        clock.microseconds += step
        inside = [each for each in let_through if each > clock.microseconds - window]
        try:
            allowance = rates.take("org", Tier("test", limit))
        except RateLimited:
            assert len(inside) == limit, "refused although there was room"
        else:
            let_through.append(clock.microseconds)
            assert allowance.remaining == limit - len(inside) - 1
    for begin in let_through:
        assert sum(begin <= each < begin + window for each in let_through) <= limit


@given(pauses, st.integers(1, 7))
def test_who_waits_as_long_as_was_said_gets_through(steps: list[int], limit: int) -> None:
    clock = Clock()
    rates = Rates(SlidingLogs(clock, RATE_WINDOW_SECONDS))
    for step in steps:
        clock.microseconds += step
        try:
            rates.take("org", Tier("test", limit))
        except RateLimited as refused:
            assert 1 <= refused.retry_after_seconds <= RATE_WINDOW_SECONDS
            clock.microseconds += refused.retry_after_seconds * 1_000_000
            rates.take("org", Tier("test", limit))


def test_the_free_tier_has_200_requests_a_minute() -> None:
    clock = Clock()
    rates = Rates(SlidingLogs(clock, RATE_WINDOW_SECONDS))
    for number in range(200):
        assert rates.take("org", TIERS["free"]) == Allowance("free", 200, 199 - number, 60)
    clock.microseconds += 12_500_000
    with pytest.raises(RateLimited, match="200 requests") as refused:
        rates.take("org", TIERS["free"])
    assert refused.value.retry_after_seconds == 48
    assert refused.value.retryable


def test_organizations_are_counted_apart() -> None:
    rates = Rates(SlidingLogs(Clock(), RATE_WINDOW_SECONDS))
    tier = Tier("test", 1)
    rates.take("one", tier)
    rates.take("other", tier)
    assert (rates.count("one"), rates.count("other"), rates.count("third")) == (1, 1, 0)


def test_who_has_no_limit_leaves_no_trace() -> None:
    rates = Rates(SlidingLogs(Clock(), RATE_WINDOW_SECONDS))
    for _ in range(1000):
        assert rates.take("org", TIERS["unlimited"]) is UNLIMITED
    assert rates.count("org") == 0
    assert repr(rates) == "the recent requests of 0 organizations"


def test_a_lower_tier_waits_until_enough_requests_have_left() -> None:
    clock = Clock()
    rates = Rates(SlidingLogs(clock, RATE_WINDOW_SECONDS))
    for _ in range(5):
        rates.take("org", Tier("high", 5))
        clock.microseconds += 1_000_000
    with pytest.raises(RateLimited) as refused:
        rates.take("org", Tier("low", 2))
    assert refused.value.retry_after_seconds == 58
    clock.microseconds += 58_000_000
    rates.take("org", Tier("low", 2))


def test_old_logs_are_forgotten_and_living_ones_kept() -> None:
    clock = Clock()
    rates = Rates(SlidingLogs(clock, RATE_WINDOW_SECONDS))
    rates.take("old", Tier("test", 5))
    clock.microseconds += 30_000_000
    rates.take("young", Tier("test", 5))
    clock.microseconds += 30_000_000
    rates.forget_old()
    assert repr(rates) == "the recent requests of 1 organizations"
    assert rates.count("young") == 1


@given(pauses, st.lists(st.integers(1, 5), min_size=80, max_size=80), st.integers(5, 12))
def test_a_request_may_count_as_several_and_no_window_has_more_than_the_limit(
    steps: list[int], costs: list[int], limit: int
) -> None:
    clock = Clock()
    rates = Rates(SlidingLogs(clock, RATE_WINDOW_SECONDS))
    window = RATE_WINDOW_SECONDS * 1_000_000
    counted: list[tuple[int, int]] = []
    for step, cost in zip(steps, costs, strict=False):
        clock.microseconds += step
        inside = sum(each for at, each in counted if at > clock.microseconds - window)
        try:
            rates.take("org", Tier("test", limit), cost)
        except RateLimited as refused:
            assert inside + cost > limit, "refused although there was room"
            clock.microseconds += refused.retry_after_seconds * 1_000_000
            rates.take("org", Tier("test", limit), cost)
        counted.append((clock.microseconds, cost))
    for begin, _ in counted:
        assert sum(cost for at, cost in counted if begin <= at < begin + window) <= limit


def test_what_is_given_back_was_counted_within_the_last_second() -> None:
    clock = Clock()
    rates = Rates(SlidingLogs(clock, RATE_WINDOW_SECONDS))
    tier = Tier("test", 5)
    rates.take("org", tier)
    clock.microseconds += 1_500_000
    rates.take("org", tier, 3)
    rates.give_back("org", tier, 2)
    assert rates.count("org") == 2
    clock.microseconds += 1_500_000
    rates.give_back("org", tier, 2)
    assert rates.count("org") == 2, "it is too late"
    rates.give_back("nobody", tier)
    rates.give_back("org", TIERS["unlimited"])
    clock.microseconds += 58_000_000
    assert rates.count("org") == 1, "the oldest has left, the later one counts"


def test_signups_are_counted_by_address_and_all_together() -> None:
    clock = Clock()
    signups = SignupRates(clock, 2, 3)
    signups.take("10.0.0.1")
    clock.microseconds += 1_000_000
    signups.take("10.0.0.1")
    with pytest.raises(RateLimited, match="2 signups an hour from this address") as refused:
        signups.take("10.0.0.1")
    assert refused.value.retry_after_seconds == SIGNUP_WINDOW_SECONDS - 1
    signups.take("10.0.0.2")
    with pytest.raises(RateLimited, match="3 signups an hour on this server"):
        signups.take("10.0.0.3")
    clock.microseconds += (SIGNUP_WINDOW_SECONDS - 1) * 1_000_000
    signups.take("10.0.0.3")
    assert repr(signups) == "the recent signups of 3 addresses"
    clock.microseconds += SIGNUP_WINDOW_SECONDS * 1_000_000
    signups.forget_old()
    assert repr(signups) == "the recent signups of 0 addresses"
