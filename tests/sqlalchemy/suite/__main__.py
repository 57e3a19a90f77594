"""SQLAlchemy's own suite for dialects, on qserver over HTTP and over the wire, and on PostgreSQL.

    python -m tests.sqlalchemy.suite http            qserver://
    python -m tests.sqlalchemy.suite wire            postgresql+psycopg:// to qserver
    python -m tests.sqlalchemy.suite postgresql      the same to a real PostgreSQL: the reference
    python -m tests.sqlalchemy.suite http -k RowCount

It prints the tests that fail. `requirements.py` says what is left out, and `KNOWN` in `known.py`
which failures are known, each with its reason; a run ends with 1 if another one fails, or if one of
these does not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.sqlalchemy.suite.running import TARGETS, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sqlalchemy.suite")
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("-k", default="", metavar="EXPRESSION", help="only these, as of pytest")
    given = parser.parse_args()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        outcome = run(given.target, Path(folder), given.k)
    print(outcome.text)
    return 0 if outcome.is_good else 1


sys.exit(main())
