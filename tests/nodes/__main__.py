"""`make cluster-torture`: nodes that share the databases of a replicated log, and their faults."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from random import SystemRandom

import trio

from tests.nodes.campaign import NodesCampaign, Report
from tests.nodes.faults import KINDS
from tests.nodes.planted import BUGS
from tests.processes.__main__ import tell
from tests.replication.nodes import log_nodes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.nodes")
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--seed", type=int, help="of a run that is to be repeated")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only faults of this kind")
    parser.add_argument("--bug", choices=BUGS, help="plant a bug, to see that it is found")
    options = parser.parse_args()
    seed = SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="qserver-nodes-"))
    kinds = {kind: KINDS[kind] for kind in options.kind or KINDS}
    report = trio.run(_run, folder, seed, options.faults, kinds, options.bug)
    if sys.stdout.isatty():
        print()
    print(report, flush=True)
    if report.problems:
        print(f"the data are left in {folder}", flush=True)
        return 1
    shutil.rmtree(folder)
    return 0


async def _run(
    folder: Path, seed: int, faults: int, kinds: dict[str, int], bug: str | None
) -> Report:
    with log_nodes(3, folder) as log:
        prepare = None if bug is None else BUGS[bug]
        campaign = NodesCampaign(folder, seed, faults, log, tell, kinds=kinds, prepare=prepare)
        return await campaign.run()


if __name__ == "__main__":
    sys.exit(main())
