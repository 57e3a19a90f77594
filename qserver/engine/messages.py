"""Every message of the engine. All are frozen.

    gateway ──Commit, ExclusiveCommit──► coordinator ──Prepare──► shard
                                          ▲   │      ──Decide───►   │
                                          │   │      ──Own──────►   │
                                          └───┼──Voted, Installed───┘
                                              └─────Append──► log writer ──► answers to the gateway

An answer goes back through the `Reply` that came with the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import msgspec

from qserver.durability.records import Definitions
from qserver.engine.mailbox import Receiver, Reply
from qserver.storage.conflict import Conflict
from qserver.storage.ranges import Range, Roots
from qserver.storage.routing import Part
from qserver.storage.snapshot import Snapshot
from qserver.storage.transaction import Transaction
from qserver.storage.writes import Writes
from qserver.values.relations import Definition

Work: TypeAlias = Callable[[Transaction], Any]
"""A transaction's body: a pure function of what it reads.

It may be a generator: it lets others run at each `yield`, and its return value is the result.
"""


class Committed(msgspec.Struct, frozen=True):
    """The transaction is committed, and durable if it wrote.

    `result` is the work's result if the coordinator ran it; `retried` says that this was a rerun.
    """

    version: int
    retried: bool = False
    result: Any = None


class Conflicted(msgspec.Struct, frozen=True):
    """Nothing was applied: what was read no longer holds."""

    conflict: Conflict


class Failed(msgspec.Struct, frozen=True):
    """The work raised when the coordinator ran it. Nothing of it was applied."""

    error: Exception
    version: int


Answer: TypeAlias = Committed | Conflicted | Failed


class Commit(msgspec.Struct, frozen=True, eq=False):
    """Make this transaction's writes, if its reads still hold."""

    number: int
    transaction: Transaction | None
    """None if the work has not been run: the coordinator runs it first."""
    work: Work | None
    """The work, if the coordinator may run it at once because it is known to be short."""
    reply: Reply[Answer]
    request_id: str | None = None
    """The request that wants it, for those who look at the log later."""


class ExclusiveCommit(msgspec.Struct, frozen=True, eq=False):
    """Stop other commits: `granted` carries the snapshot, `returned` the transaction."""

    number: int
    granted: Reply[Snapshot]
    returned: Reply[Commit | None]


class Prepare(msgspec.Struct, frozen=True, eq=False):
    """Parts of one round's transactions, in the order in which they would commit."""

    round: int
    parts: tuple[Part, ...]


class Voted(msgspec.Struct, frozen=True, eq=False):
    """The conflict of each part, or None.

    `roots`, of the changed ranges, is set when the shard decided everything itself.
    """

    shard: int
    round: int
    conflicts: tuple[Conflict | None, ...]
    roots: Roots | None


class Decide(msgspec.Struct, frozen=True, eq=False):
    """The positions of the undecided transactions that commit; the shard forgets the others."""

    round: int
    commits: tuple[int, ...]


class Own(msgspec.Struct, frozen=True, eq=False):
    """Ranges were cut or joined: release the `taken` ranges, own the `given` ones."""

    round: int
    taken: list[Range]
    given: Roots


class Installed(msgspec.Struct, frozen=True, eq=False):
    """The roots of the ranges that have changed in the round."""

    shard: int
    round: int
    roots: Roots


ToShard: TypeAlias = Prepare | Decide | Own
FromShard: TypeAlias = Voted | Installed


class Append(msgspec.Struct, frozen=True, eq=False):
    """A round for the log, and the answers to release when it is durable."""

    snapshot: Snapshot
    writes: Writes
    dropped: tuple[int, ...]
    catalog_changes: dict[str, Definition | None]
    answers: tuple[tuple[Receiver, Answer], ...]
    requests: Sequence[str] = ()
    """Who wants it, where that is known."""
    definitions: Sequence[Definitions] = ()
