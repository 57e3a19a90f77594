"""Planted bugs are caught: a share of them, see `planted_bugs`."""

from __future__ import annotations

import pytest

from simulations.mutants import Mutant
from tests.simulations.planted_bugs import is_caught, share


@pytest.mark.long
@pytest.mark.parametrize("mutant", share(1), ids=lambda mutant: mutant.name)
def test_the_planted_bug_is_caught(mutant: Mutant) -> None:
    is_caught(mutant)
