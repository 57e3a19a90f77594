"""Programs from one seed on, compared within a test."""

from __future__ import annotations

from typing import Final

from _pytest.mark import ParameterSet

from tests.differential.campaign import Campaign, Report
from tests.differential.engines import Postgres
from tests.sampling import NIGHTLY, sampled

STATEMENTS: Final = 500 if NIGHTLY else 300
"""Of one test. Counted, not timed: on a busy machine it takes longer, and does the same."""

LARGE_STATEMENTS: Final = 140
SHARES: Final = 3
SEEDS: Final = sampled(range(800_000, 800_120, 20), 1)
"""One of them by day; several files share them out."""


def share(number: int) -> list[ParameterSet]:
    return SEEDS[number::SHARES]


async def programs_agree(postgres: Postgres, seed: int, *, large: bool = False) -> None:
    most = LARGE_STATEMENTS if large else STATEMENTS
    campaign = Campaign(postgres, large=large)
    report = await campaign.run(seed, lambda report: report.total >= most)
    print(report)
    assert not report.failures, f"base seed {seed}\n{_told(report)}"
    assert report.share() > 0.6, "most statements must succeed and show something"


def _told(report: Report) -> str:
    return "\n\n".join(
        "\n".join([f"seed {failure.seed}", *(step.sql for step in failure.steps[:-1])])
        + f"\n{failure.difference}"
        for failure in report.failures
    )
