"""Django's own tests of its database layer, on qserver over the wire and on PostgreSQL.

    python -m tests.django.suite                             all labels, on both
    python -m tests.django.suite schema queries              these labels
    python -m tests.django.suite --target wire model_fields  any label of Django's tests/

It tells how far it is, stops a label after `--seconds`, and prints a table of all at its end.
It downloads the archive of the Django that is installed, once. It prints what fails; `KNOWN` in
`known.py` says which failures are known, each with its reason. A run ends with 1 if another one
fails, or if one of these does not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.django.suite.running import (
    LABELS,
    RUN_SECONDS_MAX,
    TARGETS,
    Outcome,
    RunLimit,
    run,
)
from tests.django.suite.sources import NotToBeHad


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.django.suite")
    parser.add_argument("labels", nargs="*", default=LABELS)
    parser.add_argument("--target", choices=TARGETS, action="append")
    parser.add_argument("--seconds", type=float, default=RUN_SECONDS_MAX, help="of a label")
    given = parser.parse_args()
    run_limit = RunLimit(given.seconds, partial(print, flush=True))
    outcomes: list[Outcome] = []
    for label in given.labels:
        for target in given.target or TARGETS:
            with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                try:
                    outcome = run(target, label, Path(folder), run_limit)
                except NotToBeHad as error:
                    print(f"skipped: {error}")
                    return 0
            outcomes.append(outcome)
            print(outcome.text, flush=True)
    print(*table(outcomes), sep="\n")
    return 0 if all(each.is_good for each in outcomes) else 1


def table(outcomes: Sequence[Outcome]) -> list[str]:
    rows = [("label", "target", "ran", "failed", "surprises"), *[each.cells for each in outcomes]]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


if __name__ == "__main__":
    sys.exit(main())
