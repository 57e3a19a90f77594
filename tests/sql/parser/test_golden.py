"""What the parser makes of statements, script by script."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.given import GIVEN
from tests.sql.parser.golden import rewritten

SCRIPTS = sorted(Path(__file__).parent.glob("*.txt"))


def test_there_are_scripts() -> None:
    assert SCRIPTS


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_statements_become_the_nodes_of_the_script(path: Path) -> None:
    script = path.read_text(encoding="utf-8")
    answered = rewritten(script)
    if GIVEN.get("QSERVER_GOLDEN") == "write":
        path.write_text(answered, encoding="utf-8")
    else:
        assert answered == script
