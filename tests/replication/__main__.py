"""`make log-torture`: a replicated log, its faults, and what became of what it had acknowledged."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

import trio

from tests.processes.__main__ import tell
from tests.processes.campaign import Report
from tests.replication.campaign import LogCampaign
from tests.replication.nodes import log_nodes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.replication")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, help="of a run that is to be repeated")
    options = parser.parse_args()
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="qserver-log-"))
    report = trio.run(_run, folder, seed, options.faults)
    if sys.stdout.isatty():
        print()
    print(report, flush=True)
    if report.problems:
        print(f"the data are left in {folder}", flush=True)
        return 1
    shutil.rmtree(folder)
    return 0


async def _run(folder: Path, seed: int, faults: int) -> Report:
    with log_nodes(3, folder) as nodes:
        return await LogCampaign(folder, seed, faults, nodes, tell).run()


if __name__ == "__main__":
    sys.exit(main())
