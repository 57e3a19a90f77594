"""What functions and operators answer is what PostgreSQL 15 answers, errors and digits included."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sql.functions.golden_tables import FOLDER, answer_to, lines_of


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_every_line_of_the_table_is_answered_alike(path: Path) -> None:
    lines = list(lines_of(path))
    assert len(lines) >= 100
    differing = [
        f"{line.expression} => {answer}, not {line.answer}"
        for line in lines
        if (answer := answer_to(line.expression)) != line.answer
    ]
    assert differing == []
