"""What once failed passes, a failure shrinks and is told, and is kept."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from simulations.__main__ import MUTANT_SEEDS, main
from simulations.campaign import ProgressBar, keep, kept_plans, run_campaign
from simulations.faults import Faults, make_profile
from simulations.mutants import MUTANTS, planted
from simulations.results import Plan, Result, Verdict
from simulations.run import plan_for, simulate
from simulations.shrink import shrink
from tests.sampling import NIGHTLY, drawn

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
EARLY = BY_NAME["acknowledge_before_sync"]
UNSEEN = BY_NAME["skip_read_validation"]
"""It needs no fault to fail."""

KEPT_BY_DAY = 3
"""Of the runs that once failed. At night all are replayed."""


@pytest.mark.long
def test_runs_that_once_failed_pass() -> None:
    plans = kept_plans()
    by_day = drawn(range(len(plans)), KEPT_BY_DAY)
    again = plans if NIGHTLY else [plans[at] for at in by_day]
    failures = [result for result in map(simulate, again) if result.problems]
    assert [str(result) for result in failures] == []


@pytest.mark.long
def test_a_planted_bug_is_gone_afterwards() -> None:
    plan = plan_for(1)
    before = simulate(plan).digest
    for mutant in MUTANTS:
        with planted(mutant):
            pass
    assert simulate(plan).digest == before


@pytest.fixture(scope="module")
def failure() -> Result:
    with planted(EARLY):
        for seed in MUTANT_SEEDS:
            result = simulate(Plan(seed, "hot_key", make_profile("storm", seed)))
            # Some faults, to have something to leave out; not hundreds, which take as many replays.
            if result.verdict is not Verdict.PASSED and 4 < len(result.struck) < 100:
                return result
    raise AssertionError("no seed fails")


@pytest.mark.long
def test_a_summary_is_the_same_however_many_processes_run(failure: Result) -> None:
    plans = [failure.plan, *(plan_for(seed) for seed in range(1, 5))]
    with planted(EARLY):
        alone, shared = (run_campaign(plans, jobs, ProgressBar(len(plans))) for jobs in (1, 2))
    assert failure.digest in [result.digest for result in alone.failures]
    assert str(alone) == str(shared)
    assert alone.reached == shared.reached


@pytest.mark.long
def test_a_failure_shrinks_to_fewer_faults_and_still_fails(failure: Result) -> None:
    with planted(EARLY):
        smaller = shrink(failure)
        assert smaller.verdict is failure.verdict
        assert len(smaller.struck) < len(failure.struck)
        again = simulate(smaller.plan)
        assert again.digest == smaller.digest
        assert str(len(smaller.struck)) in str(again)
    assert "--only" in smaller.plan.command


@pytest.mark.long
def test_failing_seeds_are_kept_once(failure: Result, tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text("# remarks are skipped\n")
    keep([failure, failure], path)
    keep([failure], path)
    assert [(p.seed, p.workload, p.profile.name) for p in kept_plans(path)] == [
        (failure.plan.seed, failure.plan.workload, failure.plan.profile.name)
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
    assert "5/10, 1 failed" in terminal.getvalue()
    assert file.getvalue() == ""


def test_one_seed_runs_from_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "run.html"
    assert main(["--seed", "7", "--timeline", str(picture)]) == 0
    assert "passed" in capsys.readouterr().out
    assert "<html" in picture.read_text()


@pytest.mark.long
def test_a_failure_ends_with_its_own_exit_code_and_a_replay_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = plan_for(1, "list_append", "calm")
    with planted(UNSEEN):
        failure = simulate(plan)
        code = main(["--seed", str(plan.seed), "--workload", "list_append", "--profile", "calm"])
    output = capsys.readouterr().out
    assert code == failure.verdict.value != 0
    assert f"replay:  python -m simulations --seed {plan.seed}" in output
    assert (tmp_path / f"timeline-seed-{plan.seed}.html").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--seed", "x"],
        ["--seeds", "5.."],
        ["--seeds", "9..3"],
        ["--seed", "1", "--jobs", "0"],
        ["--seed", "1", "--changed"],
        ["--seeds", "1..2", "--changed", "--workload", "bank"],
    ],
)
def test_wrong_use_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert "usage:" in capsys.readouterr().err
