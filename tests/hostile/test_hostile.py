"""A hostile client: whatever it sends, its neighbours are served, and the server lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.attacks import ATTACKS, SERVICE
from tests.hostile.siege import Beat, Fought, Report, Siege
from tests.known_work import STEP_SECONDS
from tests.sampling import NIGHTLY, drawn

NAMED = (
    "bomb: repeat",
    "bomb: jsonb",
    "bomb: regexp_split_to_array",
    "bomb: ranks by texts of dates",
    "bomb: root of a power",
    "bomb: wide rows held",
    "monster: columns",
    "monster: windows",
    "monster: cube",
    "monster: ors",
    "monster: whens",
    "monster: coalesce",
)
"""Those that were found first. By day some of them are sent, some other bombs and some attacks on
the service; at night all."""

DRAWN = 2
BUSY = 4.0
"""How much more processor time the server may take than on a machine of its own, beside the
slowness that known work shows: attackers, heart and server share its caches."""


@pytest.mark.long
@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="tells processor time by /proc"
)
def test_whatever_a_hostile_client_sends_its_neighbours_are_served(tmp_path: Path) -> None:
    by_name = {attack.name: attack for attack in ATTACKS}
    named = [by_name[name] for name in NAMED]
    others = [attack for attack in ATTACKS if attack not in named and attack not in SERVICE]
    attacks = [
        attack
        for kind in (named, SERVICE, others)
        for attack in (kind if NIGHTLY else drawn(kind, DRAWN))
    ]
    report = Siege(tmp_path).run(attacks)
    print(report)
    assert len(report.fought) == len(attacks) < len(report.beats)
    assert report.problems_in_steps(patience=BUSY) == [], str(report)


def test_a_report_names_what_must_not_be() -> None:
    fought = [Fought("a bomb", "XX000", 0.0, 9.0), Fought("a dud", "ok", 0.0, 0.1)]
    report = Report(fought, [Beat(5.0, 2.0, 1.5, 200), Beat(6.0, 0.1, 0.0, 503)], [], 2_000_000_000)
    assert report.problems() == [
        "a beat was answered with 503",
        "a beat waited for 1.50 s of processor time during a bomb",
        "a bomb took 9.0 s",
        "a bomb ended in XX000",
        "the server took 2000 MB",
    ]


def test_on_a_slower_machine_the_server_may_take_as_much_longer_as_known_work() -> None:
    fought = [Fought("a bomb", "57014", 0.0, 60.0, 9.0)]
    beats = [Beat(5.0, 20.0, 0.6, 200)]
    slower = Report(fought, beats, [3 * STEP_SECONDS])
    assert slower.problems_in_steps(patience=1.0) == []
    same = Report(fought, beats, [STEP_SECONDS])
    assert same.problems_in_steps(patience=1.0) == [
        "a beat waited for 0.60 s of processor time during a bomb",
        "a bomb took 4.5 s",
    ]
    stuck = Report([Fought("a bomb", "timed out", 0.0, 120.0)], beats, [9 * STEP_SECONDS])
    assert stuck.problems_in_steps(patience=1.0) == ["a bomb ended in timed out"]
