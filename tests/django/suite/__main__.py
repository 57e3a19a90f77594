"""Django's own tests of its database layer, on qserver over the wire and on PostgreSQL.

    python -m tests.django.suite                             all labels, on both
    python -m tests.django.suite schema queries              these labels
    python -m tests.django.suite --target wire model_fields  any label of Django's tests/

It downloads the archive of the Django that is installed, once. It prints what fails; `KNOWN` in
`known.py` says which failures are known, each with its reason. A run ends with 1 if another one
fails, or if one of these does not.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.django.suite.running import LABELS, TARGETS, run
from tests.django.suite.sources import NotToBeHad


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.django.suite")
    parser.add_argument("labels", nargs="*", default=LABELS)
    parser.add_argument("--target", choices=TARGETS, action="append")
    given = parser.parse_args()
    all_good = True
    for label in given.labels:
        for target in given.target or TARGETS:
            with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                try:
                    outcome = run(target, label, Path(folder))
                except NotToBeHad as error:
                    print(f"skipped: {error}")
                    return 0
            print(outcome.text, flush=True)
            all_good = all_good and outcome.is_good
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
