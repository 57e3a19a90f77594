"""Whatever chance makes of the statements of golden scripts, a result or an error comes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sampling import SEED, sampled
from tests.sql.mutated import SCRIPTS, run

FEW = 2
"""Mutants of a statement, at most."""


@pytest.mark.parametrize("script", sampled(SCRIPTS, 5), ids=lambda path: path.stem)
async def test_mutants_of_a_script_end_in_a_result_or_an_error(script: Path) -> None:
    assert (await run(script, SEED, FEW)).total()


@pytest.mark.half
async def test_many_mutants_are_answered_and_many_are_errors_of_many_kinds() -> None:
    (script,) = [each for each in SCRIPTS if each.stem == "changes"]
    found = await run(script, 7, 3)
    assert found["00000"] > 5
    assert len(found) > 8
