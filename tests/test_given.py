"""Variables that are given to the tests are read from one place, which is left when tests run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

READS: Final = re.compile(r'(?:environ\.get\(|environ\.setdefault\(|getenv\()\s*"QSERVER_')


def test_no_test_reads_a_variable_that_is_hidden_while_it_runs() -> None:
    """They are taken out of the environment, so `os.environ.get` would find none of them."""
    tests = Path(__file__).parent
    found = [
        path.relative_to(tests).as_posix()
        for path in sorted(tests.rglob("*.py"))
        if READS.search(path.read_text())
    ]
    assert found == []


def test_such_a_read_is_found() -> None:
    assert READS.search("os.environ.get" + '("QSERVER_NIGHTLY")')
    assert not READS.search('GIVEN.get("QSERVER_NIGHTLY")')
