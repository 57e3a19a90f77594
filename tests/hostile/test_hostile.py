"""A hostile client: whatever it sends, its neighbours are served, and the server lives."""

from __future__ import annotations

from pathlib import Path
from random import Random, SystemRandom

import pytest

from tests.hostile.attacks import ATTACKS, SERVICE
from tests.hostile.siege import Beat, Fought, Report, Siege

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
"""Those that were found first; beside them, and the attacks on the service, some are drawn."""

DRAWN = 12
BUSY = 4.0
"""How much slower than its own a machine may be that runs other work too."""


@pytest.mark.skipif(
    not Path("/proc/self/schedstat").exists(), reason="tells processor time by /proc"
)
def test_whatever_a_hostile_client_sends_its_neighbours_are_served(tmp_path: Path) -> None:
    seed = SystemRandom().randrange(1_000_000)
    by_name = {attack.name: attack for attack in ATTACKS}
    others = [attack for attack in ATTACKS if attack.name not in NAMED and attack not in SERVICE]
    drawn = Random(seed).sample(others, DRAWN)
    attacks = [*SERVICE, *(by_name[name] for name in NAMED), *drawn]
    report = Siege(tmp_path).run(attacks)
    print(f"seed {seed}\n{report}")
    assert len(report.fought) == len(attacks) and len(report.beats) > 50
    assert report.problems(patience=BUSY) == [], f"seed {seed}\n{report}"


def test_a_report_names_what_must_not_be() -> None:
    fought = [Fought("a bomb", "XX000", 0.0, 9.0), Fought("a dud", "ok", 0.0, 0.1)]
    report = Report(fought, [Beat(5.0, 2.0, 1.5, 200), Beat(6.0, 0.1, 0.0, 503)], 2_000_000_000)
    assert report.problems() == [
        "a beat was answered with 503",
        "a beat waited for 1.50 s of processor time during a bomb",
        "a bomb took 9.0 s",
        "a bomb ended in XX000",
        "the server took 2000 MB",
    ]
