"""Counts what the hot path takes, and records it: `make counts`.

python -m tests.hot_path [--look]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.hot_path.counting import counted_alone
from tests.hot_path.recorded import RECORD, differences, record, recorded
from tests.hot_path.syscalls import StraceUnusable, calls_of_commit


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.hot_path")
    parser.add_argument("--look", action="store_true", help="print the counts, record nothing")
    options = parser.parse_args()
    found = counted_alone()
    calls = None
    try:
        with tempfile.TemporaryDirectory() as folder:
            calls = calls_of_commit(Path(folder))
    except StraceUnusable as error:
        print(f"system calls are not counted: {error}")
    for name, counted in {**found, "commit, system calls": calls or {}}.items():
        print(f"{name:22}" + "  ".join(f"{what} {value:,g}" for what, value in counted.items()))
    if RECORD.exists():
        before = recorded()["requests"]
        print("\n".join(differences(before, found)) or "as recorded, within the tolerance")
    if not options.look:
        record(found, calls)


if __name__ == "__main__":
    main()
