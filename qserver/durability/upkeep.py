"""Upkeep of a SQLite file, in steps so short that commits can wait for them."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from typing import Final

INCREMENTAL: Final = 2
"""SQLite's name for files that shrink step by step."""
FREE_PAGES_KEPT: Final = 1024
FREE_SHARE_KEPT: Final = 0.25
"""A file keeps so many free pages, or this share of all, for what is written next."""
PAGES_CUT_AT_ONCE: Final = 64
STATEMENTS_KEPT: Final = 32
"""Statements of a connection that need not be prepared again."""


def shrink(
    connection: sqlite3.Connection, most: int = FREE_PAGES_KEPT, share: float = FREE_SHARE_KEPT
) -> bool:
    """Cut some pages off the end of the file, if it has more free pages than it may keep.

    False if there was nothing to cut. Files made by releases that did not shrink never have any.
    """
    ((free,),) = connection.execute("PRAGMA freelist_count")
    if free <= most or not can_shrink(connection):
        return False
    ((count,),) = connection.execute("PRAGMA page_count")
    if free <= share * count:
        return False
    connection.execute(f"PRAGMA incremental_vacuum({PAGES_CUT_AT_ONCE})").fetchall()
    ((left,),) = connection.execute("PRAGMA freelist_count")
    return bool(left < free)  # SQLite does not say that the disk has no room for it


def can_shrink(connection: sqlite3.Connection) -> bool:
    ((kind,),) = connection.execute("PRAGMA auto_vacuum")
    return bool(kind == INCREMENTAL)


def move_log(connection: sqlite3.Connection) -> None:
    """Move the write-ahead log into the main file, as far as that is possible now."""
    with suppress(sqlite3.Error):  # the disk is full or broken, and the log is good where it is
        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()


def shrink_memory(connection: sqlite3.Connection) -> None:
    """Let go of what SQLite keeps in memory: its pages, and the values of statements that ran.

    A statement that is kept holds its last values, up to half a megabyte of pages. Other statements
    push it out.
    """
    with suppress(sqlite3.Error):
        for number in range(STATEMENTS_KEPT):
            connection.execute(f"SELECT {number}").fetchall()
        connection.execute("PRAGMA shrink_memory").fetchall()
