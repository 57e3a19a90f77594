"""Hunts planted bugs. Several files share them out, because each file runs in one process."""

from __future__ import annotations

from typing import Final

from simulations.__main__ import MUTANT_SEEDS
from simulations.mutants import MUTANTS, Mutant, hunt, known_catches

SHARES: Final = 4


def share(number: int) -> tuple[Mutant, ...]:
    return tuple(MUTANTS[number::SHARES])


def is_caught(mutant: Mutant) -> None:
    result, runs = hunt(mutant, MUTANT_SEEDS, known_catches())
    assert result is not None, f"{mutant.explanation}: not noticed in {runs} runs"
