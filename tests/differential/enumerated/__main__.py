"""`python -m tests.differential.enumerated [name …]`: all statements of the grids, compared."""

from __future__ import annotations

import sys

import trio

from tests.differential.engines import opened_postgres
from tests.differential.enumerated.grids import differences
from tests.differential.enumerated.modules import GRIDS


async def run(names: list[str]) -> int:
    count = 0
    with opened_postgres() as postgres:
        for name in names:
            for grid in GRIDS[name]:
                found = await differences(postgres, grid)
                count += len(found)
                print(f"{name}: {len(grid.statements)} statements, {len(found)} differences")
                for each in found:
                    print(f"\n{each}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(trio.run(run, sys.argv[1:] or list(GRIDS)))
