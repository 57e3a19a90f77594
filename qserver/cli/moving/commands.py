"""`qserver import` of another database: finds out what the source is, moves it, and reports."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from qserver.cli.cells import harmless
from qserver.cli.connection import connect
from qserver.cli.moving.move import Move
from qserver.cli.moving.mover import Mover
from qserver.cli.moving.postgres_source import SCHEMES, postgres_move
from qserver.cli.moving.sqlite_file import MAGIC, sqlite_move
from qserver.cli.moving.sqlite_script import is_sqlite_script, script_as_file
from qserver.cli.shell.progress import Progress
from qserver.client import ConnectionLost
from qserver.errors import QserverError

_BEGINNING_BYTES: Final = 4096
_AGAIN: Final = "Run the same command again: it goes on where this one ended.\n"


@contextmanager
def found_move(name: str) -> Iterator[Move | None]:
    """The source as a Move; None if it is a file of statements."""
    path = Path(name)
    with ExitStack() as opened:
        if name.startswith(SCHEMES):
            yield opened.enter_context(postgres_move(name))
            return
        if not path.is_file():
            yield None
            return
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING_BYTES)
        if is_sqlite_script(beginning):
            script = opened.enter_context(path.open("rb"))
            made = opened.enter_context(script_as_file(script, name))
            move = opened.enter_context(sqlite_move(made, name))
            stat = path.stat()
            move.state = f"{stat.st_size} bytes, {stat.st_mtime_ns}"
            yield move
        elif beginning.startswith(MAGIC):
            yield opened.enter_context(sqlite_move(path, name))
        else:
            yield None


def run_move(options: argparse.Namespace, move: Move) -> int:
    """Move, or with --dry-run print what would be made."""
    if options.dry_run:
        sys.stdout.write(move.script())
        report("Left out", move.left_out)
        report("Changed", move.remarks)
        return 0
    progress = Progress(sys.stderr, None, counted="rows")
    with connect(options, options.database) as client:
        mover = Mover(client, move, progress.update, options.stop_on_error)
        try:
            mover.run()
        except QserverError as error:
            progress.clear()
            report("Failed", mover.failures)
            if isinstance(error, ConnectionLost):
                sys.stderr.write(_AGAIN)
            raise
        finally:
            progress.clear()
    if mover.goes_on:
        then = " What that run has loaded is as it was then." if move.is_live else ""
        sys.stderr.write(f"An earlier run had begun it; this one went on.{then}\n")
    count = len(move.tables)
    sys.stderr.write(f"Imported {move.source}: {count:,} tables, {mover.rows:,} rows.\n")
    report("Changed", move.remarks)
    report("Left out", move.left_out)
    report("Failed", mover.failures)
    if mover.is_unfinished:
        sys.stderr.write("The same command tries the tables that failed again.\n")
    return 1 if mover.failures or move.left_out else 0


def report(title: str, lines: list[str]) -> None:
    if lines:
        sys.stderr.write(f"{title}:\n" + "".join(f"  {harmless(line)}\n" for line in lines))
