"""What is told of older versions is compared with what they held, and each wrong tale is found."""

from __future__ import annotations

from typing import Any

import pytest
from pyrsistent import pmap

from qserver.storage.catalog import Catalog
from qserver.storage.changes import Change
from qserver.storage.ranges import Trees
from qserver.values.schema import Column, Table
from qserver.values.types import INTEGER
from simulations.checkers.kept_history import KeptHistory
from simulations.checkers.past import Done, difference_problems, version_problems
from simulations.pages import Published

ITEMS = Table(1, "items", (Column("id", INTEGER, False), Column("v", INTEGER, False)), (0,))


def version(**values: int) -> Published:
    """A version with one table: `k1=7` is a row."""
    rows = {(int(key[1:]),): (int(key[1:]), value) for key, value in values.items()}
    catalog = Catalog(pmap({"items": ITEMS}))
    return Published(0.0, catalog, 1, Trees(), {1: rows})


VERSIONS = {
    1: version(k1=0, k2=0),
    2: version(k1=5, k2=0),
    3: version(k1=5, k2=7),
    4: version(k1=5, k2=0),
}
DONE = {2: [Done(1, {1: 5})], 3: [Done(2, {2: 7})], 4: [Done(3, restored=2)]}


def problems(**changed: Any) -> list[str]:
    given: dict[str, Any] = {"versions": VERSIONS, "done": DONE, "unknown": []} | changed
    return version_problems(given["versions"], given["done"], given["unknown"], "items")


def test_versions_that_follow_from_each_other_are_sound() -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("at", "found", "problem"),
    [
        (2, version(k1=4, k2=0), "4 was added to 1, not one of [5]"),
        (2, version(k1=5, k2=1), "1 was added to 2, not one of [0]"),
        (4, version(k1=5, k2=7), "version 4 restores 2"),
        (4, version(k1=5), "version 4 restores 2"),
        (4, version(k1=5, k2=0, k3=1), "version 4 restores 2"),
    ],
)
def test_a_version_that_does_not_follow_is_seen(at: int, found: Published, problem: str) -> None:
    seen = problems(versions=VERSIONS | {at: found})
    assert any(problem in each for each in seen), seen


def test_what_is_unknown_explains_what_it_can_and_no_more() -> None:
    nobody = {key: value for key, value in DONE.items() if key != 3}
    assert "nobody has made [3]" in problems(done=nobody)[0]
    assert problems(done=nobody, unknown=[Done(2, {2: 7})]) == []
    both = VERSIONS | {3: version(k1=5, k2=8)}
    assert problems(versions=both, unknown=[Done(9, {2: 1})]) == []
    assert problems(versions=both, unknown=[Done(9, {2: 2})]) != []


def test_a_difference_has_to_lead_from_one_version_to_the_other() -> None:
    change = ("items", (2,), Change(ITEMS, (2, 0), (2, 7)))
    assert difference_problems(VERSIONS[2], VERSIONS[3], [change]) == []
    assert difference_problems(VERSIONS[2], VERSIONS[3], []) != []
    assert difference_problems(VERSIONS[3], VERSIONS[2], [change]) != []
    other = ("items", (1,), Change(ITEMS, (1, 5), None))
    assert difference_problems(VERSIONS[2], VERSIONS[3], [change, other]) != []
    made = [
        ("items", None, Change("items")),
        ("items", (1,), Change(ITEMS, None, (1, 0))),
        ("items", (2,), Change(ITEMS, None, (2, 0))),
    ]
    assert difference_problems(None, VERSIONS[1], made) == []
    assert difference_problems(None, VERSIONS[1], made[1:]) != []
    assert difference_problems(None, VERSIONS[1], made[:2]) != []
    assert difference_problems(None, VERSIONS[1], [made[0], *made]) != []


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.clock_errors = (0.0, 0.0)

    def true_time(self) -> float:
        return self.now


def test_what_must_be_kept_follows_the_clock_and_every_change_of_history() -> None:
    clock = Clock()
    kept = KeptHistory(clock, 10.0)
    assert kept.must_have(91.0) and not kept.must_have(89.0)
    assert kept.gone_before(100.0) == 90.0
    clock.clock_errors = (-2.0, 3.0)
    assert kept.must_have(94.0) and not kept.must_have(92.0)
    assert kept.gone_before(100.0) == 88.0
    kept.change(50.0)
    assert not kept.must_have(92.0), "it may be lost already"
    kept.change(0.0)
    assert not kept.must_have(102.0) and kept.gone_before(100.0) == float("inf")
    clock.now = 200.0
    kept.change(500.0)
    assert not kept.must_have(202.0) and kept.must_have(204.0)
