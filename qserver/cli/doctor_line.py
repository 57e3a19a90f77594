"""The arguments of `qserver doctor`, with its help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

DOCTOR: Final = """\
It looks, and changes nothing but a file for a moment, by which it measures the disk. Run it on the
server's machine, with the environment and as the user of the server. The exit code is 0 if all is
well or there are warnings, and 1 if there is a problem.

examples:
  qserver doctor                                         the folder in QSERVER_DATA_DIR
  qserver doctor --data /var/lib/qserver --backups /backups
  qserver doctor --url https://db.example.com --key-file key
  qserver doctor --json
"""


def doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", metavar="DIR", type=Path, help="the data folder (QSERVER_DATA_DIR)"
    )
    parser.add_argument("--url", metavar="URL", help="a server that runs (QSERVER_URL)")
    parser.add_argument("--key", metavar="KEY", help="its key, with the scope admin")
    parser.add_argument("--key-file", metavar="FILE", type=Path, help="file with that key")
    parser.add_argument(
        "--backups", metavar="DIR", type=Path, help="where backups are, to tell how old they are"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
