"""The engine passes, planted bugs do not, and the runs reach what they must."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from simulations.__main__ import MUTANT_SEEDS, main
from simulations.campaign import (
    SEEDS_TO_REACH_ALL,
    ProgressBar,
    keep,
    kept_plans,
    run_campaign,
)
from simulations.faults import Faults, make_profile
from simulations.mutants import MUTANTS, planted
from simulations.run import Plan, Result, Verdict, plan_for, simulate
from simulations.shrink import shrink

EARLY = next(mutant for mutant in MUTANTS if mutant.name == "acknowledge_before_sync")


def test_a_campaign_passes_and_reaches_every_point_it_must() -> None:
    plans = [plan_for(seed) for seed in range(1, SEEDS_TO_REACH_ALL + 1)]
    summary = run_campaign(plans, os.cpu_count() or 1, ProgressBar(len(plans)))
    assert [str(result) for result in summary.failures] == []
    assert summary.missed == []


def test_runs_that_once_failed_pass() -> None:
    failures = [result for result in map(simulate, kept_plans()) if result.problems]
    assert [str(result) for result in failures] == []


def test_a_planted_bug_is_gone_afterwards() -> None:
    plan = plan_for(1)
    before = simulate(plan).digest
    for mutant in MUTANTS:
        with planted(mutant):
            pass
    assert simulate(plan).digest == before


def failing_run() -> Result:
    for seed in MUTANT_SEEDS:
        result = simulate(Plan(seed, "hot_key", make_profile("storm", seed)))
        if result.verdict is not Verdict.PASSED and len(result.struck) > 4:
            return result
    raise AssertionError("no seed fails")


def test_a_failure_shrinks_to_fewer_faults_and_still_fails() -> None:
    with planted(EARLY):
        result = failing_run()
        smaller = shrink(result)
        assert smaller.verdict is result.verdict
        assert len(smaller.struck) < len(result.struck)
        again = simulate(smaller.plan)
        assert again.digest == smaller.digest
        assert str(len(smaller.struck)) in str(again)
    assert "--only" in smaller.plan.command


def test_failing_seeds_are_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text("# remarks are skipped\n")
    with planted(EARLY):
        result = failing_run()
    keep([result, result], path)
    keep([result], path)
    assert [(p.seed, p.workload, p.profile.name) for p in kept_plans(path)] == [
        (result.plan.seed, result.plan.workload, result.plan.profile.name)
    ]


def test_a_fault_keeps_its_mind_when_others_are_left_out() -> None:
    everything = {"message_slow": 0.5, "sync_slow": 0.5}
    faults = Faults(7, everything)
    faults.on = True
    for _ in range(20):
        faults.strikes("message_slow")
        faults.strikes("sync_slow")
    chosen = frozenset(name for name in faults.struck if name.startswith("sync_slow"))
    fewer = Faults(7, everything, chosen)
    fewer.on = True
    for _ in range(20):
        fewer.strikes("message_slow")
        fewer.strikes("sync_slow")
    assert set(fewer.struck) == chosen


def test_the_progress_bar_shows_only_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        bar = ProgressBar(10, stream)
        bar.show(5, 1)
        bar.end()
    assert "5/10, 1 failed" in terminal.getvalue()
    assert file.getvalue() == ""


def test_one_seed_runs_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "run.html"
    assert main(["--seed", "7", "--timeline", str(picture)]) == 0
    assert "passed" in capsys.readouterr().out
    assert "<html" in picture.read_text()


def test_a_failure_ends_with_its_own_exit_code_and_a_replay_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with planted(EARLY):
        failure = failing_run()
        plan = failure.plan
        arguments = ["--seed", str(plan.seed), "--workload", "hot_key", "--profile", "storm"]
        code = main(arguments)
    output = capsys.readouterr().out
    assert code == failure.verdict.value != 0
    assert f"replay:  python -m simulations --seed {plan.seed}" in output
    assert (tmp_path / f"timeline-seed-{plan.seed}.html").exists()


@pytest.mark.parametrize(
    "arguments",
    [[], ["--seed", "x"], ["--seeds", "5.."], ["--seeds", "9..3"], ["--seed", "1", "--jobs", "0"]],
)
def test_wrong_use_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert "usage:" in capsys.readouterr().err
