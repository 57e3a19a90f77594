"""Files at rest take little memory: a thousand may be open, and nothing else bounds SQLite's."""

from __future__ import annotations

import _sqlite3
import ctypes
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from qserver.durability.sqlite import open_log
from qserver.durability.thread_pool import ThreadPool

FILES = 4
PAGE = b"x" * 8000


def memory_used() -> int:
    """Return the bytes that SQLite has in this process."""
    for name in (_sqlite3.__file__, "libsqlite3.so.0"):
        try:
            library = ctypes.CDLL(name)
            library.sqlite3_memory_used.restype = ctypes.c_int64
            return int(library.sqlite3_memory_used())
        except (OSError, AttributeError):
            continue
    pytest.skip("SQLite cannot be asked here")


async def test_a_file_at_rest_holds_no_pages_and_no_values_of_statements(tmp_path: Path) -> None:
    before, threads = memory_used(), ThreadPool()
    async with AsyncExitStack() as stack:
        logs = [
            await stack.enter_async_context(await open_log(tmp_path / f"{number}", threads))
            for number in range(FILES)
        ]
        number = 1
        for log in logs:
            for count in range(2, 40):  # a statement for each number of pages
                await log.save_pages([(number + each, PAGE) for each in range(count)])
                number += count
            await log.load_pages(0, 1000)
        busy = memory_used() - before
        for log in logs:
            await log._queue.run(log._file.rest)  # what a quiet moment does
            await log._queue.run(log._file.rest)  # the first may move the log instead
        at_rest = memory_used() - before
        assert at_rest < FILES * 300_000 < busy // 4, (at_rest, busy)
        for log in logs:
            assert len(await log.load_pages(0, 10)) == 10
