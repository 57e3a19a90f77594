"""What several processes count, know and hold together: rates, revocations, connections.

These are short forms; `make processes-torture` has long ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes.machine import Machine
from tests.processes.moves import Movers
from tests.processes.planted import charge_twice
from tests.processes.rates import SETTINGS, Asked, Report, Spender
from tests.processes.revoking import KINDS, Revocations
from tests.sampling import NIGHTLY

REVOCATIONS, MOVES = (200, 2000) if NIGHTLY else (80, 600)


@pytest.mark.long
async def test_what_was_revoked_is_refused_by_all_processes_from_its_answer_on(
    tmp_path: Path,
) -> None:
    async with Machine(tmp_path, SETTINGS).running() as machine:
        report = await Revocations(machine, 7, kill_every=10).run(REVOCATIONS)
        assert report.problems == []
        assert len(report.tries) == len(KINDS) and report.kills > 0


@pytest.mark.long
async def test_no_request_too_many_is_accepted_whichever_processes_get_them(
    tmp_path: Path,
) -> None:
    async with Machine(tmp_path, SETTINGS).running() as machine:
        for kills in (0, 2):
            report = await Spender(machine, kills).run(400, kills)
            assert report.problems() == []
            assert report.kills == kills


@pytest.mark.long
async def test_a_request_that_is_charged_twice_when_it_moves_is_found(tmp_path: Path) -> None:
    async with Machine(tmp_path, SETTINGS, prepare=charge_twice).running() as machine:
        report = await Spender(machine, 7).run(250)
        assert any("was refused when" in each for each in report.problems())


def test_a_request_too_many_is_found() -> None:
    accepted = [Asked(float(n), n + 0.5, 200) for n in range(4)]
    lost = Asked(1.0, 1.5, None)
    assert Report([*accepted, lost]).problems(4) == []
    (problem,) = Report([*accepted, lost]).problems(3)
    assert "4 requests were accepted" in problem


@pytest.mark.long
async def test_nothing_is_left_behind_by_connections_that_move(tmp_path: Path) -> None:
    async with Machine(tmp_path, SETTINGS).running() as machine:
        report = await Movers(machine).run(MOVES)
        assert report.problems == []
        assert report.moves >= MOVES
