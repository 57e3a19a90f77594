"""Hunts planted bugs: a sample by day, all at night.

Several files share them out, because each file runs in one process.
"""

from __future__ import annotations

from typing import Final

from _pytest.mark import ParameterSet

from simulations.__main__ import MUTANT_SEEDS
from simulations.mutants import MUTANTS, Mutant, hunt, known_catches
from tests.sampling import sampled

SHARES: Final = 4
BY_DAY: Final = 3
"""Of each share. One of the first in the list is always among them: it must be found at once."""


def share(number: int) -> list[ParameterSet]:
    mutants = MUTANTS[number::SHARES]
    return sampled(mutants, BY_DAY, always=mutants[:1])


def is_caught(mutant: Mutant) -> None:
    result, runs = hunt(mutant, MUTANT_SEEDS, known_catches())
    assert result is not None, f"{mutant.explanation}: not noticed in {runs} runs"
