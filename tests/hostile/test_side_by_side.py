"""What an organization waits beside a hostile one: the crowds are real, and the figures right."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import pytest

from tests.hostile.heartbeat import Pulse
from tests.hostile.side_by_side import (
    PULSE,
    SETTINGS,
    STATEMENT,
    Comparison,
    Waits,
    at_share,
    crowd_at,
    hostile_organization,
    problems,
    use,
    verdict,
)
from tests.hostile.siege import Beat, beats_in
from tests.patience import eventually
from tests.sampling import sampled
from tests.web.contract.servers import Server, start

USE: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "heavy statements": ("connections", 200),
        "unread streams": ("connections", 30),
        "feeds and writers": ("feeds", 50),
        "live queries and writers": ("live_queries", 50),
        "open transactions": ("open_transactions", 2),
    }
)
"""What a crowd has at least, sooner or later."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    made = start("own", tmp_path_factory.mktemp("hostile"), SETTINGS)
    yield made
    made.kill()


@pytest.fixture(scope="module")
def hostile(server: Server) -> str:
    return hostile_organization(server)


@pytest.mark.long
@pytest.mark.parametrize("name", sampled(list(USE), 3))
def test_a_crowd_has_what_its_name_says_until_it_ends(
    name: str, server: Server, hostile: str
) -> None:
    crowd = crowd_at(server, hostile, name)
    try:
        what, least = USE[name]
        eventually(lambda: use(server, hostile)[what] >= least, f"{name}: {use(server, hostile)}")
    finally:
        crowd.end()
    eventually(lambda: use(server, hostile)["connections"] <= 1, f"{name}: {use(server, hostile)}")


def test_of_ordered_times_one_is_named_by_its_share() -> None:
    assert at_share([1.0, 2.0, 3.0], 0.5) == 2.0
    assert at_share([float(number) for number in range(200)], 0.99) == 198.0
    assert at_share([7.0], 0.99) == 7.0


def test_a_statement_that_took_many_times_the_loops_time_is_a_fault() -> None:
    alone, busy = Waits([0.1], [0.1]), Waits([0.3], [1.5])
    found = [
        Comparison("bulk bodies", STATEMENT.name, alone, busy),
        Comparison("bulk bodies", "read", alone, busy),
        Comparison("large answers", STATEMENT.name, alone, alone),
    ]
    assert problems(found) == [
        "beside bulk bodies, a statement took 15.0 times the loop's processor time"
    ]
    assert verdict(found) == "2 of 3 waited more than 2 times as long, by p99"


def test_a_heart_is_told_what_to_ask_and_tells_how_it_went() -> None:
    assert Pulse.read(PULSE.text()) == PULSE
    printed = ["insert 5.0 0.25 0.125 200\n", "read 6.0 0.5 0.25 2"]
    assert list(beats_in(printed)) == [Beat(5.0, 0.25, 0.125, 200, "insert")], "it was killed then"
