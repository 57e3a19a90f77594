"""`make cluster-torture`: nodes that share the databases of a replicated log, and their faults."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.nodes.campaign import NodesCampaign
from tests.nodes.faults import KINDS
from tests.nodes.planted import BUGS
from tests.processes.command import Outcome, campaign_parser, chosen_seed, run_campaign, tell
from tests.replication.nodes import log_nodes


def main() -> int:
    parser = campaign_parser("tests.nodes")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only faults of this kind")
    parser.add_argument("--bug", choices=BUGS, help="plant a bug, to see that it is found")
    options = parser.parse_args()
    seed = chosen_seed(options)
    bug = BUGS.get(options.bug)
    kinds = {kind: KINDS[kind] for kind in options.kind or (bug.kinds if bug else KINDS)}
    prepare = bug and bug.plant

    async def run(folder: Path) -> Outcome:
        with log_nodes(3, folder) as log:
            campaign = NodesCampaign(
                folder, seed, options.faults, log, tell, kinds=kinds, prepare=prepare
            )
            report = await campaign.run()
            return report, report.problems

    return 0 if run_campaign("nodes", run) else 1


if __name__ == "__main__":
    sys.exit(main())
