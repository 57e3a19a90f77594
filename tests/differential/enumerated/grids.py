"""A grid of statements, and how it is compared: whole, or a part that a seed draws."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.differential.campaign import Campaign
from tests.differential.comparison import Difference, Step
from tests.differential.engines import Postgres


@dataclass(frozen=True, slots=True)
class Grid:
    """The statements of one database. All of `setup` is run, in any case."""

    setup: tuple[str, ...]
    statements: tuple[str, ...]

    def drawn(self, seed: int, most: int) -> Grid:
        """Return a grid of at most so many of the statements, in their order."""
        if len(self.statements) <= most:
            return self
        places = sorted(Random(seed).sample(range(len(self.statements)), most))
        return Grid(self.setup, tuple(self.statements[at] for at in places))


async def differences(postgres: Postgres, grid: Grid) -> list[Difference]:
    """Run a grid on both sides; what no rule accepts."""
    steps = [Step(sql, strict=True) for sql in (*grid.setup, *grid.statements)]
    return await Campaign(postgres).replay(steps)
