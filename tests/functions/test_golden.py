"""What functions and operators answer is what PostgreSQL 16 answers, errors and digits included.

One exception: both take `cbrt` from the C library, whose last digit depends on the processor.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tests.functions.golden_tables import FOLDER, answer_to, lines_of


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_every_line_of_the_table_is_answered_alike(path: Path) -> None:
    lines = list(lines_of(path))
    assert len(lines) >= 100
    differing = [
        f"{line.expression} => {answer}, not {line.answer}"
        for line in lines
        if (answer := answer_to(line.expression)) != line.answer
        and not (line.expression.startswith("cbrt(") and _adjacent(answer, line.answer))
    ]
    assert differing == []


def _adjacent(one: str, other: str) -> bool:
    """Whether two answers are neighbouring doubles."""
    try:
        low, high = sorted((float(one.strip("'")), float(other.strip("'"))))
    except ValueError:
        return False
    return math.nextafter(low, math.inf) == high


def test_only_neighbouring_doubles_count_as_the_same_last_digit() -> None:
    assert _adjacent("'5.313292845913056'", "'5.313292845913057'")
    assert not _adjacent("'5.313292845913056'", "'5.313292845913058'")
    assert not _adjacent("NULL", "'1'")
