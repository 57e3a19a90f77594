"""Hunts planted bugs: a sample by day, all at night.

Several files share them out, because each file runs in one process.
"""

from __future__ import annotations

from typing import Final

import pytest
from _pytest.mark import ParameterSet

from simulations.__main__ import MUTANT_SEEDS
from simulations.mutants import MUTANTS, Mutant, hunt, known_catches
from tests.sampling import sampled

SHARES: Final = 4
BY_DAY: Final = 3
"""Of each share. One of the first in the list is always among them: it must be found at once."""

STANDS_STILL: Final = frozenset({"load_a_base_with_the_copied_position"})
"""For the night: clients wait for ten virtual minutes until their run is given up, which takes five
of the processor."""


def share(number: int) -> list[ParameterSet]:
    mutants = MUTANTS[number::SHARES]
    quick = [each for each in mutants if each.name not in STANDS_STILL]
    slow = [each for each in mutants if each.name in STANDS_STILL]
    return [
        *sampled(quick, BY_DAY, always=mutants[:1]),
        *(pytest.param(each, marks=pytest.mark.nightly) for each in slow),
    ]


def is_caught(mutant: Mutant) -> None:
    result, runs = hunt(mutant, MUTANT_SEEDS, known_catches())
    assert result is not None, f"{mutant.explanation}: not noticed in {runs} runs"
