"""Run simulations from the command line.

    python -m simulations --seed 7                      one run, by whatever the seed stands for
    python -m simulations --seed 7 --timeline 7.html    … and a picture of it
    python -m simulations --seeds 1..1000               a campaign
    python -m simulations --seeds 1..150 --changed      … of what differs from main
    python -m simulations --mutants                     would planted bugs be found?
    python -m simulations --mutants forget_ranges       … would this one?

The exit code tells the kind of failure: 0 passed, 1 a planted bug survived, 2 wrong use, 3 an
anomaly, 4 stuck, 5 the engine broke, 6 a campaign missed a point that it must reach.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

from simulations.campaign import SEEDS_TO_REACH_ALL, ProgressBar, Summary, keep, run_campaign
from simulations.choosing import changed_files, rarity, shared_out, workloads_touched
from simulations.faults import PROFILES
from simulations.mutants import (
    MUTANTS,
    Catch,
    Mutant,
    catch_of,
    hunt,
    keep_catches,
    known_catches,
    shortest,
)
from simulations.nodes import NODES
from simulations.replicated import REPLICATED
from simulations.results import Result, Verdict
from simulations.run import plan_for, simulate
from simulations.shrink import shrink
from simulations.timeline import write_timeline
from simulations.workloads import WORKLOADS

MUTANT_SEEDS = range(1, 73)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.mutants is not None:
        return _hunt_mutants(options)
    if options.seeds is not None:
        for name in ("only", "transactions", "timeline"):
            if getattr(options, name) is not None:
                parser.error(f"--{name} goes with --seed, not with --seeds")
        if options.changed is not None and options.workload is not None:
            parser.error("--changed chooses workloads, and --workload names one")
        return _campaign(options)
    if options.changed is not None:
        parser.error("--changed goes with --seeds")
    return _single(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulations",
        description="Run the engine in a false world where one seed decides everything.",
        epilog=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--seed", type=_seed, metavar="N", help="one run")
    what.add_argument("--seeds", type=_seeds, metavar="A..B", help="all runs from A to B")
    what.add_argument(
        "--mutants",
        nargs="*",
        choices=[mutant.name for mutant in MUTANTS],
        metavar="NAME",
        help="hunt the planted bugs, or only those that are named",
    )
    parser.add_argument(
        "--workload",
        choices=[*sorted(WORKLOADS), REPLICATED, NODES],
        help="instead of the seed's own",
    )
    parser.add_argument("--profile", choices=PROFILES, help="instead of the seed's own")
    parser.add_argument(
        "--changed",
        nargs="?",
        const="main",
        metavar="COMMIT",
        help="choose workloads by the files that differ from a commit (main), and by rare points",
    )
    parser.add_argument("--only", type=_names, metavar="FAULTS", help="let only these strike")
    parser.add_argument("--transactions", type=_positive, metavar="N", help="per client")
    parser.add_argument("--timeline", type=Path, metavar="FILE", help="write a picture (HTML)")
    parser.add_argument("--no-shrink", action="store_true", help="report a failure as it is")
    parser.add_argument("--no-keep", action="store_true", help="do not write seeds or catches")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, metavar="N")
    return parser


def _single(options: argparse.Namespace) -> int:
    plan = plan_for(options.seed, options.workload, options.profile)
    if options.transactions is not None:
        profile = replace(
            plan.profile, transactions_per_client=options.transactions, shortened=True
        )
        plan = replace(plan, profile=profile)
    if options.only is not None:
        plan = replace(plan, only=options.only)
    result = simulate(plan, keep_events=options.timeline is not None)
    print(result)
    if options.timeline is not None:
        _draw(result, options.timeline)
    if result.verdict is not Verdict.PASSED:
        _explain(result, options)
    return result.verdict.value


def _campaign(options: argparse.Namespace) -> int:
    if options.changed is None:
        plans = [plan_for(seed, options.workload, options.profile) for seed in options.seeds]
        summary = run_campaign(plans, options.jobs, ProgressBar(len(plans)))
    else:
        summary = _campaign_of_changes(options)
    print(summary)
    for result in summary.failures[1:]:
        print(result)
    if summary.failures:
        first = summary.failures[0]
        print(first)
        _explain(first, options)
        if not options.no_keep:
            keep(summary.failures)
        return first.verdict.value
    whole = (
        options.workload in (None, REPLICATED, NODES)
        and options.profile is None
        and options.changed is None
    )
    if whole and len(options.seeds) >= SEEDS_TO_REACH_ALL and summary.missed:
        print("never reached: " + "; ".join(summary.missed))
        return Verdict.MISSED.value
    return 0


def _campaign_of_changes(options: argparse.Namespace) -> Summary:
    """Run half of the seeds by workloads that see what has changed, a quarter in turn, and a
    quarter by workloads whose points were rare until then."""
    touched = workloads_touched(changed_files(options.changed))
    print(f"changes since {options.changed} are seen by: {', '.join(touched) or 'no workload'}")
    seeds, bar = list(options.seeds), ProgressBar(len(options.seeds))
    first, second = len(seeds) // 2 if touched else 0, len(seeds) * 3 // 4
    plans = [
        plan_for(seed, touched[number % len(touched)], options.profile)
        for number, seed in enumerate(seeds[:first])
    ]
    plans += [plan_for(seed, None, options.profile) for seed in seeds[first:second]]
    summary = run_campaign(plans, options.jobs, bar)
    rare = shared_out(rarity(summary.reaching), len(seeds) - second)
    plans = [
        plan_for(seed, workload, options.profile)
        for seed, workload in zip(seeds[second:], rare, strict=True)
    ]
    return run_campaign(plans, options.jobs, bar, summary)


def _explain(result: Result, options: argparse.Namespace) -> None:
    """Print what a developer needs next: the smallest case, its picture, and how to replay it."""
    print(f"profile: {result.plan.profile}")
    print(f"replay:  {result.plan.command}")
    if not options.no_shrink:
        result = shrink(result)
        print(f"smaller: {len(result.struck)} faults, {result.transactions} transactions")
        print(result)
        print(f"replay:  {result.plan.command}")
    if options.timeline is None:
        result = simulate(result.plan, keep_events=True)
        _draw(result, Path(f"timeline-seed-{result.plan.seed}.html"))


def _draw(result: Result, path: Path) -> None:
    plan = result.plan
    facts = {
        "seed": str(plan.seed),
        "workload": plan.workload,
        "profile": f"{plan.profile.name}, {plan.profile.shards} shards",
        "result": result.verdict.name.lower(),
        "transactions": str(result.transactions),
        "faults": str(len(result.struck)),
        "crashes": str(result.crashes),
        "trace": result.digest[:16],
        "replay": plan.command,
    }
    title = f"seed {plan.seed}, {plan.workload}, {plan.profile.name}"
    write_timeline(path, result.events, title, facts, result.problems)
    print(f"picture: {path}")


def _hunt_mutants(options: argparse.Namespace) -> int:
    names = options.mutants or [mutant.name for mutant in MUTANTS]
    planted = {mutant.name for mutant in MUTANTS}
    catches = {name: catch for name, catch in known_catches().items() if name in planted}
    survivors = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, (result, runs, catch) in zip(names, pool.map(_hunt_mutant, names), strict=True):
            if result is None or catch is None:
                survivors += 1
                catches.pop(name, None)
                print(f"SURVIVED  {name} after {runs} runs: {_mutant(name).explanation}")
            else:
                catches[name] = catch
                print(f"caught    {name} in run {runs}: {result.problems[0][:90]}")
            if not options.no_keep:
                keep_catches(catches)  # each at once: a hunt may take long, and be ended
    print(f"{len(names) - survivors} of {len(names)} planted bugs were caught")
    return 1 if survivors else 0


def _hunt_mutant(name: str) -> tuple[Result | None, int, Catch | None]:
    mutant = _mutant(name)
    result, runs = hunt(mutant, MUTANT_SEEDS, known_catches())
    return result, runs, None if result is None else catch_of(shortest(mutant, result.plan))


def _mutant(name: str) -> Mutant:
    return next(mutant for mutant in MUTANTS if mutant.name == name)


def _seed(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0 on, not {text!r}")
    return int(text)


def _seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    if not dots:
        last = first
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise argparse.ArgumentTypeError(f"seeds are written as 1..1000, not {text!r}")
    return range(int(first), int(last) + 1)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on is needed, not {text!r}")
    return int(text)


def _names(text: str) -> frozenset[str]:
    return frozenset() if text == "none" else frozenset(text.split(","))


if __name__ == "__main__":
    sys.exit(main())
