"""`make log-torture`: a replicated log, its faults, and what became of what it had acknowledged."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.processes.command import Outcome, campaign_parser, chosen_seed, run_campaign, tell
from tests.replication.campaign import LogCampaign
from tests.replication.nodes import log_nodes


def main() -> int:
    options = campaign_parser("tests.replication").parse_args()
    seed = chosen_seed(options)

    async def run(folder: Path) -> Outcome:
        with log_nodes(3, folder) as nodes:
            report = await LogCampaign(folder, seed, options.faults, nodes, tell).run()
            return report, report.problems

    return 0 if run_campaign("log", run) else 1


if __name__ == "__main__":
    sys.exit(main())
