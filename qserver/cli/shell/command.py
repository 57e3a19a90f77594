"""`qserver sql`: runs -c, then -f, else standard input, else the prompt.

The exit codes are psql's: 1 for an error of the command line or of a statement of -c, 2 when the
connection failed, 3 when a script ended at an error.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Final

from qserver.cli.command_line import moment
from qserver.cli.connection import connect
from qserver.cli.errors import report_error
from qserver.cli.shell.commands import run_command
from qserver.cli.shell.commands.formatting import changed
from qserver.cli.shell.failures import StatementFailed
from qserver.cli.shell.scripts import (
    LOST,
    WITHOUT_COMMIT,
    ScriptFailed,
    run_file,
    run_standard_input,
)
from qserver.cli.shell.shell import Shell
from qserver.errors import InvalidRequest, QserverError

FAILED: Final = 1
CONNECTION_FAILED: Final = 2
SCRIPT_STOPPED: Final = 3


def run(options: argparse.Namespace) -> int:
    with connect(options, options.database) as client:
        shell = Shell(client, run_command, _write, _say)
        _prepare(shell, options)
        try:
            shell.output.redirect(options.output)
            if options.statements or options.files:
                _given(shell, options)
            elif not sys.stdin.isatty():
                run_standard_input(shell)
            else:
                return _converse(shell)
        except ScriptFailed as error:
            return CONNECTION_FAILED if error.connection_failed else SCRIPT_STOPPED
        except LOST as error:  # before any statement
            report_error(error)
            return CONNECTION_FAILED
        except StatementFailed as failure:
            shell.say(shell.failed(failure))
            return CONNECTION_FAILED if isinstance(failure.error, LOST) else FAILED
        finally:
            with suppress(QserverError):  # the server ends it when it has been idle
                shell.leave_transaction()
            shell.output.redirect(None)
        return FAILED if shell.failures and options.keep_going else 0


def _prepare(shell: Shell, options: argparse.Namespace) -> None:
    shell.database = options.database or ""
    shell.printer.options = replace(
        shell.printer.options,
        format=options.format,
        tuples_only=options.tuples_only,
        expanded="on" if options.expanded else "off",
    )
    for each in options.printing or ():
        name, equals, value = each.partition("=")
        shell.printer.options = changed(shell.printer.options, name, value if equals else None)
    shell.as_of = None if options.as_of is None else moment(options.as_of)
    if options.keep_going:
        shell.variables.assign("ON_ERROR_STOP", "off")
    if options.is_quiet:
        shell.variables.assign("QUIET", "on")
    for each in options.variables or ():
        name, equals, value = each.partition("=")
        if equals:
            shell.variables.assign(name, value)
        else:
            shell.variables.unset(name)


def _given(shell: Shell, options: argparse.Namespace) -> None:
    for text in options.statements or ():
        splitter = shell.splitter()
        for statement in chain(splitter.feed(text), splitter.finish()):
            shell.take(statement)
            if shell.is_over:
                return
    if shell.begun is not None:
        raise StatementFailed(shell.begun, InvalidRequest(WITHOUT_COMMIT))
    for path in options.files or ():
        if str(path) == "-":
            run_standard_input(shell)
        else:
            run_file(shell, path)


def _converse(shell: Shell) -> int:
    # Only the prompt needs the terminal toolkit, which is slow to load.
    from qserver.cli.shell.prompt import converse

    # Report a wrong URL or key now, not at the first statement.
    shell.learn_database()
    shell.printer.is_for_person = True
    return converse(shell, os.environ)


def _write(text: str) -> None:
    # Flush each batch, so that the reader of a pipe sees it at once.
    sys.stdout.write(text)
    sys.stdout.flush()


def _say(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
