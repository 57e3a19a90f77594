"""`qserver export FILE` and `qserver import FILE`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from qserver.cli.connection import connect
from qserver.cli.moving.commands import found_move, report, run_move
from qserver.cli.shell.progress import Progress
from qserver.cli.transfer.dumps import is_dump
from qserver.cli.transfer.loading import ImportFailed, Loader
from qserver.cli.transfer.reading import ndjson_steps
from qserver.cli.transfer.snapshot import snapshot
from qserver.cli.transfer.sql_text import PIECE_BYTES, Cut, Read, Step, sql_steps
from qserver.cli.transfer.writing import WRITERS
from qserver.durability.files import new_file, publish_file
from qserver.errors import DataInUse, InvalidRequest

STANDARD: Final = "-"


def run_export(options: argparse.Namespace) -> int:
    with connect(options, options.database) as client, _target(options.file) as file:
        with snapshot(client) as taken:
            progress = Progress(sys.stderr, None, counted="rows")
            written = count = 0
            try:
                for text, count in WRITERS[_format_of(options)](taken):
                    written += file.write(text.encode())
                    share = count / taken.row_count if taken.row_count else None
                    progress.update(written, count, share)
            finally:
                progress.clear()
    sys.stderr.write(
        f"Exported {len(taken.tables)} tables with {count:,} rows:"
        f" {taken.database} at version {taken.version}.\n"
    )
    return 0


def run_import(options: argparse.Namespace) -> int:
    with found_move(options.file) as move:
        if move is not None:
            return run_move(options, move)
    if options.dry_run:
        raise InvalidRequest(
            "--dry-run shows what another database has", hint="This is a file of statements."
        )
    return _run_statements(options)


def _run_statements(options: argparse.Namespace) -> int:
    with _source(options.file) as (read, size):
        beginning = read(PIECE_BYTES)
        dumped = is_dump(beginning)
        progress = Progress(sys.stderr, size)

        def say(text: str) -> None:
            progress.clear()
            sys.stderr.write(text)

        with connect(options, options.database) as client:
            goes_on = options.keep_going or (dumped and not options.stop_on_error)
            loader = Loader(client, options.file, say, goes_on, dumped)
            done = 0

            def counted(most: int) -> bytes:
                nonlocal done, beginning
                piece, beginning = beginning or read(most), b""
                done += len(piece)
                progress.update(done, loader.applied)
                return piece

            try:
                loader.load(_steps(options, counted))
            except Cut:
                loader.flush()
                raise
            except ImportFailed:
                return 1
            finally:
                progress.clear()
                report("Failed", loader.listed)
    sys.stderr.write(f"Imported {options.file}: {_summary(loader)}.\n")
    return 1 if loader.failures else 0


def _summary(loader: Loader) -> str:
    counts = [f"{loader.applied:,} statements"]
    if loader.rows:
        counts.append(f"{loader.rows:,} rows")
    if loader.skipped:
        counts.append(f"{loader.skipped:,} without effect here")
    if loader.failures:
        counts.append(f"{loader.failures} failed")
    return ", ".join(counts)


COMMANDS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "export": run_export,
    "import": run_import,
}


def _steps(options: argparse.Namespace, read: Read) -> Iterator[Step]:
    if _format_of(options) == "sql":
        return sql_steps(read)
    return ndjson_steps(read, by_row=options.keep_going)


def _format_of(options: argparse.Namespace) -> str:
    if options.format is not None:
        return str(options.format)
    return "ndjson" if options.file.endswith((".ndjson", ".jsonl")) else "sql"


@contextmanager
def _target(name: str) -> Iterator[BinaryIO]:
    """Open the file to write, readable only by its owner. The file gets its name when it is
    complete, and never replaces another.
    """
    if name == STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path, unfinished = Path(name), Path(f"{name}.unfinished")
    if path.exists():
        raise DataInUse(f"{path} exists already", hint="Name another file, or remove this one.")
    try:
        unfinished.unlink(missing_ok=True)
        new_file(unfinished)
        with unfinished.open("wb") as file:
            yield file
        publish_file(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InvalidRequest(f"cannot write {path}: {error.strerror or error}") from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


@contextmanager
def _source(name: str) -> Iterator[tuple[Read, int | None]]:
    """A function that reads the file, and the file's size if known."""
    if name == STANDARD:
        yield sys.stdin.buffer.read, None
        return
    try:
        with Path(name).open("rb") as file:
            yield file.read, os.fstat(file.fileno()).st_size
    except OSError as error:
        raise InvalidRequest(f"cannot read {name}: {error.strerror or error}") from error
