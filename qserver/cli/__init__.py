"""The command line: `qserver serve`, `sql`, `key`, `database`, `bench` and those for whole data.

    command_line.py   the argument parser          control.py   key …, database …
    serving.py        serve                        shell/       sql
    errors.py         errors for people            transfer/    export, import
    hidden_key.py     no key among arguments       folders/     backup, restore, check, rescue
    log_config.py     log-config                   nodes/       cluster up, status, move, drain
    cluster_line.py   arguments of cluster         moving/      import from other databases
    mcp_line.py       arguments of mcp             mcp_serving.py  mcp
    doctor_line.py    arguments of doctor          doctor/      doctor
    backup_line.py    arguments of backup, …       continuous/  the same with a continuous backup
    sql_line.py       arguments of sql

`bench` is in `qserver.benchmarks`.

Exit codes: 0 for success, 1 for a command that failed (`sql` has psql's), 2 (argparse's own) for an
invalid command line.
"""

from __future__ import annotations

import gc
import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from qserver.cli.backup_line import is_continuous
from qserver.cli.command_line import command_line
from qserver.cli.errors import report_error
from qserver.cli.hidden_key import hide_key
from qserver.errors import QserverError

INTERRUPTED = 130
"""The exit code after Ctrl-C, by convention of shells."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = command_line().parse_args(arguments)
    if arguments is None:
        hide_key(options)
    try:
        return _run(options)
    except QserverError as error:
        return report_error(error)
    except KeyboardInterrupt:
        sys.stderr.write("\n")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone (`| head`): there is nothing more to write, and Python's
        # flush at exit must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _run(options: Namespace) -> int:
    """Import each command on demand: they load very different modules."""
    match options.command:
        case "serve":
            gc.disable()  # scans take a tenth of the start; `serve` enables it
            from qserver.cli import serving

            return serving.run(options)
        case "sql":
            from qserver.cli.shell.command import run as run_shell

            return run_shell(options)
        case "key":
            from qserver.cli import control

            return control.run_key(options)
        case "database":
            from qserver.cli import control

            return control.run_database(options)
        case "organization":
            from qserver.cli import organizations

            return organizations.run(options)
        case "bench":
            from qserver.benchmarks.command import run as run_bench

            return run_bench(options)
        case "cluster" if options.action != "rescue":
            from qserver.cli.nodes.commands import COMMANDS

            return COMMANDS[options.action](options)
        case "backup" | "restore" | "check" if is_continuous(options):
            from qserver.cli.continuous import commands as continuous

            return continuous.COMMANDS[options.command](options)
        case "backup" | "restore" | "check" | "cluster":
            from qserver.cli.folders import commands as folders

            return folders.COMMANDS[options.command](options)
        case "export" | "import":
            from qserver.cli.transfer import commands as transfer

            return transfer.COMMANDS[options.command](options)
        case "mcp":
            from qserver.cli import mcp_serving

            return mcp_serving.run(options)
        case "doctor":
            from qserver.cli.doctor.command import run as run_doctor

            return run_doctor(options)
        case "log-config":
            from qserver.cli import log_config

            return log_config.run(options)
    raise AssertionError("argparse lets no other command through")
