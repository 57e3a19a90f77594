"""`qserver serve`, in processes that are made for dying: run as `python -m tests.torture.launcher`.

    --die append:17:after   SIGKILL to itself, right after the 17th append to any log has ended
    --bug early             a planted bug, which the torture has to find
    --nest 5                no server: for each message on socket 5 it forks one, with the arguments
                            in the message, and tells its process id and how it ended

To import the server and to read its grammar takes longer than most of its lives, so the nest has
done it for all of them.

It is the real server with the real command line. Two things differ. Checkpoints come after a few
kilobytes of log and write few pages at once, so that there is nearly always one to be killed in.
And the calls to the SQLite file can be counted, so that a death can be placed where no clock would
hit it: between two transactions of a checkpoint, or in the middle of a recovery.

Nobody imports this module, for it changes the limits of its process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Final

from qserver import limits

limits.CHECKPOINT_LOG_BYTES = 24 * 1024
limits.CHECKPOINT_SECONDS = 0.5
limits.CHECKPOINT_PAGES_AT_ONCE = 4
limits.SEQUENCE_BLOCK = 8  # many reservations, so that some are lost in the middle

# Only now: modules take the limits when they are imported.
from qserver.cli import main  # noqa: E402
from qserver.durability.port import StoredRecord  # noqa: E402
from qserver.durability.sqlite import SqliteLog  # noqa: E402
from qserver.durability.sqlite_file import SqliteFile  # noqa: E402
from qserver.engine import sequence_states  # noqa: E402
from qserver.sql.parser import load_grammar  # noqa: E402
from tests.torture.deaths import BUGS, STEPS  # noqa: E402

LATE_SECONDS: Final = 0.03
MESSAGE_BYTES: Final = 4096


def die_at(step: str, number: int, when: str) -> None:
    """Kill this process before or after a step is done for the n-th time."""
    assert step in STEPS
    original: Callable[..., Any] = getattr(SqliteFile, step)
    left = number

    def counted(file: SqliteFile, *arguments: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0 and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = original(file, *arguments)
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(SqliteFile, step, counted)


# --- planted bugs --------------------------------------------------------------------------------


def acknowledge_early() -> None:
    """An append is called done when it is begun; the file has it a moment later."""

    async def append(log: SqliteLog, records: Sequence[StoredRecord]) -> None:
        log._queue._begin(lambda: _append_late(log, records))

    SqliteLog.append = append  # type: ignore[method-assign, assignment]


def _append_late(log: SqliteLog, records: Sequence[StoredRecord]) -> None:
    time.sleep(LATE_SECONDS)
    log._file.append(records)


def forget_too_much() -> None:
    """A checkpoint cuts the log one version too far."""
    forget = SqliteFile.forget

    def greedy(file: SqliteFile, version: int, pages: Sequence[int]) -> bool:
        return forget(file, version + 1, pages)

    SqliteFile.forget = greedy  # type: ignore[method-assign, assignment]


def forget_numbers() -> None:
    """Where a sequence has come to is not in the log."""
    sequence_states.put_state = lambda *_: None


PLANTED: Final = dict(zip(BUGS, (acknowledge_early, forget_too_much, forget_numbers), strict=True))


def hatch(orders: socket.socket) -> int:
    """Fork servers, one after the other, until nobody wants any more."""
    import_module("qserver.web.service.serving")  # which the command imports late
    load_grammar()
    while True:
        order, files, *_ = socket.recv_fds(orders, MESSAGE_BYTES, 1)
        if not order:
            return 0
        pid = os.fork()
        if pid == 0:
            orders.close()
            os.dup2(files[0], 2)
            os.close(files[0])
            os._exit(run(json.loads(order)))
        os.close(files[0])
        orders.send(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        orders.send(b"%d\n" % os.waitstatus_to_exitcode(status))


def run(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="launcher")
    parser.add_argument("--nest", type=int)
    parser.add_argument("--die")
    parser.add_argument("--bug", choices=BUGS)
    options, others = parser.parse_known_args(arguments)
    if options.nest is not None:
        return hatch(socket.socket(fileno=options.nest))
    if options.bug is not None:
        PLANTED[options.bug]()
    if options.die is not None:
        step, number, when = options.die.split(":")
        die_at(step, int(number), when)
    return main(["serve", *others])


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
