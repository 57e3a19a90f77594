"""The command line: `qserver --version` and `qserver serve`.

Exit codes: 0 for success, 1 when a command could not do what it was asked, 2 (argparse's own)
for a command line that makes no sense.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from qserver import __version__

NO_FRONT_END = f"""\
qserver {__version__} cannot serve yet: this version holds the engine and its simulation only,
the HTTP front end is not part of it.

What can be run today, in a clone of the project:
  make simulate    run the engine in a simulated world, one seed after another
  make bench       measure storage and engine
  make test        lint, types and tests
"""

PORT_MAX = 65_535


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    options = command_line().parse_args(arguments)
    assert options.command == "serve", "argparse lets no other command through"
    sys.stderr.write(NO_FRONT_END)
    return 1


def command_line() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="qserver", description="A SQL database that you talk to over HTTP."
    )
    parser.add_argument("--version", action="version", version=f"qserver {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command", required=True)
    serve = commands.add_parser(
        "serve",
        help="serve databases over HTTP (not part of this version yet)",
        description="Serve databases over HTTP. This version has no HTTP front end yet: "
        "the command says so and ends with exit code 1.",
    )
    serve.add_argument("--host", help="address to listen on")
    serve.add_argument("--port", type=port_number, help="port to listen on")
    serve.add_argument("--data", type=Path, help="folder that holds the databases")
    return parser


def port_number(text: str) -> int:
    """The port that `text` names; argparse turns the error into a message and exit code 2."""
    if not (text.isascii() and text.isdigit() and int(text) <= PORT_MAX):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to {PORT_MAX})")
    return int(text)
