"""`qserver sql`: runs -c, then -f, else standard input, else the prompt."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress

from qserver.cli.command_line import moment
from qserver.cli.connection import connect
from qserver.cli.shell.commands import run_command
from qserver.cli.shell.failures import StatementFailed, told
from qserver.cli.shell.scripts import ScriptFailed, run_file, run_standard_input
from qserver.cli.shell.shell import Shell
from qserver.cli.splitting import split
from qserver.errors import QserverError


def run(options: argparse.Namespace) -> int:
    with connect(options, options.database) as client:
        shell = Shell(client, run_command, _write, _say)
        shell.layout_name = options.format
        shell.as_of = None if options.as_of is None else moment(options.as_of)
        try:
            if options.statements or options.files:
                return _given(shell, options)
            if not sys.stdin.isatty():
                run_standard_input(shell, options.keep_going)
                return 0
            return _converse(shell)
        except ScriptFailed:
            return 1
        finally:
            with suppress(QserverError):  # the server ends it when it has been idle
                shell.leave_transaction()
            shell.write_to(None)


def _given(shell: Shell, options: argparse.Namespace) -> int:
    for text in options.statements or ():
        try:
            for statement in split(text):
                shell.take(statement)
        except StatementFailed as failure:
            shell.say(told(failure))
            return 1
        if shell.block is not None:
            shell.say("BEGIN without COMMIT: nothing of the transaction was sent.\n")
            return 1
    for path in options.files or ():
        run_file(shell, path, options.keep_going)
    return 0


def _converse(shell: Shell) -> int:
    # Only the prompt needs the terminal toolkit, which is slow to load.
    from qserver.cli.shell.prompt import converse

    # Report a wrong URL or key now, not at the first statement.
    shell.database = shell.client.tables()["database"]
    return converse(shell, os.environ)


def _write(text: str) -> None:
    # Flush each batch, so that the reader of a pipe sees it at once.
    sys.stdout.write(text)
    sys.stdout.flush()


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
