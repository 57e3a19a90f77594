"""A campaign of changes goes to the workloads that see them, and to those with rare points."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from simulations import __main__ as program
from simulations.campaign import Summary, run_campaign
from simulations.choosing import rarity, shared_out, workloads_touched
from simulations.results import Plan
from simulations.workloads import WORKLOADS


def test_a_file_leads_to_the_workloads_that_notice_bugs_in_it() -> None:
    assert workloads_touched(["qserver/query/unchanged.py"]) == ["sql_guarded"]
    assert workloads_touched(["qserver/engine/watches.py"]) == ["sql_live"]
    assert "sql_feed" in workloads_touched(["qserver/engine/feed.py"])


def test_a_workload_leads_to_itself() -> None:
    assert workloads_touched(["simulations/workloads/sql_queue.py"]) == ["sql_queue"]


def test_a_file_without_planted_bugs_leads_to_those_of_its_folder() -> None:
    found = workloads_touched(["qserver/durability/a_new_file.py"])
    assert "bank" in found and len(found) > 3


def test_what_no_run_sees_leads_nowhere() -> None:
    assert workloads_touched(["docs/http.md", "tests/sql/test_scripts.py", "Makefile"]) == []


def test_every_file_of_the_engine_leads_somewhere() -> None:
    root = Path(program.__file__).parent.parent
    rooms = ("engine", "durability", "storage", "query")
    for file in (each for room in rooms for each in (root / "qserver" / room).glob("*.py")):
        assert workloads_touched([str(file.relative_to(root))]), file


def test_runs_are_shared_out_by_worth() -> None:
    assert Counter(shared_out({"bank": 3.0, "ring": 1.0}, 8)) == {"bank": 6, "ring": 2}
    assert shared_out(dict.fromkeys(WORKLOADS, 0.0), 3) == list(WORKLOADS)[:3]


def test_a_rare_point_is_worth_more_than_a_common_one() -> None:
    worth = rarity({("bank", "common"): 50, ("ring", "common"): 50, ("ring", "rare"): 1})
    assert worth["ring"] > 10 * worth["bank"]
    assert worth["hot_key"] == 0.0


@pytest.mark.long
def test_half_of_a_campaign_goes_to_what_has_changed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "changed_files", lambda since: ["simulations/workloads/ring.py"])
    ran: list[str] = []

    def noted(plans: list[Plan], *arguments: Any) -> Summary:
        ran.extend(plan.workload for plan in plans)
        return run_campaign(plans, *arguments)

    monkeypatch.setattr(program, "run_campaign", noted)
    assert program.main(["--seeds", "1..8", "--changed", "--jobs", "1", "--no-keep"]) == 0
    assert ran[:4] == ["ring"] * 4 and len(ran) == 8
    assert "changes since main are seen by: ring" in capsys.readouterr().out
