"""For how long a node may answer, and from when on others know that it does not."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from qserver.control.nodes.lease import Lease, NodeFacts, Seen

FACTS = NodeFacts("a", 0, "http://a", "a:1", "folder", "life 1", 10.0)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_counts_from_when_its_renewal_was_sent() -> None:
    clock = Clock()
    lease = Lease(clock, 10.0)
    assert not lease.holds(), "nobody has answered yet"
    clock.now = 105.0
    lease.extend(100.0)
    assert lease.holds()
    clock.now = 109.9
    assert lease.holds()
    clock.now = 110.0
    assert not lease.holds()
    lease.extend(101.0)
    assert lease.holds(), "nobody had ended it"


def test_an_older_renewal_shortens_nothing() -> None:
    clock = Clock()
    lease = Lease(clock, 10.0)
    lease.extend(100.0)
    lease.extend(95.0)
    clock.now = 109.0
    assert lease.holds()


def test_what_was_dropped_never_holds_again() -> None:
    lease = Lease(Clock(), 10.0)
    lease.extend(100.0)
    lease.drop()
    assert not lease.holds()
    lease.extend(100.0)
    assert not lease.holds()


@given(st.floats(0.957, 1.045), st.floats(0.957, 1.045), st.floats(0.0, 3.0), st.floats(0.0, 30.0))
def test_nobody_ends_a_lease_that_holds(
    holder: float, challenger: float, way: float, later: float
) -> None:
    """Clocks run at these speeds; a renewal is seen some time after it was sent."""
    theirs, ours = Clock(), Clock()
    lease = Lease(theirs, 10.0)
    sent = 50.0
    lease.extend(sent * holder)
    seen = Seen(FACTS, 1, (sent + way) * challenger)
    theirs.now, ours.now = (sent + way + later) * holder, (sent + way + later) * challenger
    if seen.is_over(ours.now):
        assert not lease.holds()


def test_a_lease_is_over_a_tenth_later_than_its_time() -> None:
    seen = Seen(FACTS, 1, 100.0)
    assert not seen.is_over(111.0)
    assert seen.is_over(111.01)


def test_facts_are_what_they_were_when_they_are_read() -> None:
    ended = msgspec.structs.replace(FACTS, is_ended=True, beat=7)
    assert msgspec.json.decode(msgspec.json.encode(ended), type=NodeFacts) == ended
