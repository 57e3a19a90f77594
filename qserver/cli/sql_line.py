"""The arguments of `qserver sql`, and their help: psql's letters where it has them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

FORMATS: Final = ("aligned", "unaligned", "csv", "html", "json", "ndjson")

SQL: Final = """\
examples:
  qserver sql                              a shell; \\? in it shows its commands
  qserver sql -c 'SELECT 1; SELECT 2'      run statements, print results
  qserver sql -f dump.sql --database shop  run a file of any size
  echo 'SELECT 1' | qserver sql            run what comes in
  qserver sql --csv -c 'SELECT * FROM users' > users.csv
  qserver sql -At -v name=Ada -c "SELECT id FROM users WHERE name = :'name'"

A file stops at the first error, which names its line, unless --keep-going is given. The statements
between BEGIN and COMMIT are sent as one transaction; at the prompt they run as they are typed, in
an open transaction. Exit codes: 1 for an error of -c or of these arguments, 2 when the connection
failed, 3 when a file ended at an error.
"""


def sql(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", dest="statements", metavar="SQL", action="append", help="run this")
    parser.add_argument(
        "-f", dest="files", metavar="FILE", type=Path, action="append", help="run this file"
    )
    parser.add_argument(
        "-d", "--database", metavar="NAME", help="database to use (else the key's own)"
    )
    parser.add_argument(
        *("-v", "--set"),
        dest="variables",
        metavar="NAME=VALUE",
        action="append",
        help="set a variable, as \\set does",
    )
    parser.add_argument(
        *("-P", "--pset"),
        dest="printing",
        metavar="NAME=VALUE",
        action="append",
        help="change how results look, as \\pset does",
    )
    _formats(parser)
    parser.add_argument(
        "-t", "--tuples-only", action="store_true", help="only rows, without names and counts"
    )
    parser.add_argument("-x", "--expanded", action="store_true", help="one line a value")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="results to a file, or to a |program"
    )
    parser.add_argument(
        *("-q", "--quiet"), dest="is_quiet", action="store_true", help="results and errors only"
    )
    parser.add_argument(
        "--as-of", metavar="VERSION|TIME", help="read the database as it was; writes are refused"
    )
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="run the rest of a file after an error; the exit code is then 1",
    )


def _formats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format", choices=FORMATS, default="aligned", help="how results look (default aligned)"
    )
    for flags, name in (
        (("-A", "--no-align"), "unaligned"),
        (("-H", "--html"), "html"),
        (("--csv",), "csv"),
    ):
        parser.add_argument(
            *flags,
            dest="format",
            action="store_const",
            const=name,
            default=argparse.SUPPRESS,
            help=f"as --format {name}",
        )
