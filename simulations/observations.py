"""Observes the messages of a run: describes them for the trace, and notes points reached.

A run proves little if nothing interesting happened in it. `SOMETIMES` lists what must have happened
at least once in a campaign of runs; a campaign that misses one has failed, however green it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import msgspec

from qserver.engine.mailbox import Reply
from qserver.engine.messages import Committed, Failed
from qserver.storage.ranges import Trees
from qserver.storage.routing import Part
from qserver.storage.transaction import Transaction
from simulations.pages import published

if TYPE_CHECKING:
    from qserver.storage.snapshot import Snapshot
    from simulations.world import SimulatedWorld

REQUEST: Final[ContextVar[str]] = ContextVar("request", default="")
"""The client's request that the current task works for, as the trace names it."""

SOMETIMES: Final = (
    "a transaction touched several shards",
    "a round held several transactions",
    "a shard refused a stale read",
    "a shard refused what overlaps an accepted transaction",
    "a shard refused what overlaps an undecided transaction",
    "a wide transaction was aborted after a shard had said yes",
    "a conflict was run again at the coordinator",
    "a conflict went back to the gateway",
    "a transaction had an exclusive commit",
    "a definition changed under a transaction",
    "a mailbox was full",
    "a sender waited for room",
    "several rounds were synced as one group",
    "the next group was on its way before the answers of the last had left",
    "coordinator killed",
    "shard killed",
    "log killed",
    "checkpointer killed",
    "the process crashed",
    "the process crashed between prepare and decision",
    "the process crashed with unsynced records",
    "the process crashed while it recovered",
    "unsynced records survived a crash",
    "a torn tail was cut",
    "a sync failed",
    "a checkpoint was saved",
    "a checkpoint failed",
    "a sync failed between the pages of a checkpoint and its record",
    "commits went on while a checkpoint was saved",
    "pages of an old checkpoint were forgotten",
    "a kept checkpoint was dropped",
    "a snapshot was held across checkpoints",
    "the process crashed between the pages of a checkpoint",
    "the process crashed while it saved a checkpoint",
    "a follower began with a base",
    "the log no longer had what a follower lacked",
    "a follower refused what does not continue its version",
    "a read waited for its version",
    "a version did not come in time",
    "a strong read waited for its number",
    "recovery began with a checkpoint",
    "recovery read the log behind a checkpoint",
    "recovery read the log in several pieces",
    "pages of a long log were saved before a checkpoint",
    "pages were loaded",
    "columns were saved",
    "a process ended before all columns were there",
    "columns of an earlier process were made",
    "pages were let go",
    "a page could not be read",
    "a page was torn",
    "a tree had several pages",
    "a tree had several levels of branches",
    "a tree had three levels of branches",
    "a snapshot was recovered that had been published",
    "another process took over the log",
    "a process whose log was taken over was refused",
    "a request was run again by the next owner of the log",
    "a tree was recovered in several ranges",
    "a message was handled where it was sent",
    "several requests began as one batch",
    "a group was synced before anybody else ran",
    "a group that began at the end of a batch was awaited",
    "the end of a group's append was noticed without a task",
    "a round that was begun where it was submitted was ended by the coordinator",
    "a range was cut",
    "ranges were joined",
    "a transaction's ranges were cut before it committed",
    "a transaction straddled ranges of one tree",
    "a scan straddled ranges",
    "reading the log failed",
    "the wall clock jumped",
    "an outcome was unknown",
    "an unknown outcome had been applied",
    "a statement was answered without waiting",
    "a transaction was begun without waiting",
    "several transactions begun without waiting were one round",
    "a transaction begun without waiting shared a round with a conflict",
    "a transaction begun without waiting failed beside others",
    "a transaction begun without waiting had to wait after all",
    "the outcome of a transaction begun without waiting was unknown",
    "a stream went on while others committed",
    "a session was cut before its commit",
    "a session was cut behind its commit",
    "a session was cut while it read",
    "a portal was read in parts",
    "an open transaction was left behind",
    "the commit of an open transaction conflicted",
    "a failed open transaction was not committed",
    "the commit of an open transaction was asked for again",
    "a request with if_version was applied",
    "a request with if_version was refused",
    "a request with if_version shared its version",
    "a name was refused that another request had",
    "a live query merged several versions",
    "a live query went on after a restart",
    "a vector tree gave its rows",
    "an older version was read",
    "an older version was saved in a scratch",
    "a version was too old",
    "versions were listed",
    "two versions were compared",
    "a database was restored",
    "a reader of changes fell out of history",
    "a reader of changes went on after a crash",
    "a reader of changes lost its key",
    "a unique key was refused",
    "a foreign key was refused",
    "a check was refused",
    "a statement ran into its deadline",
    "a deletion took along the rows that refer",
    "a key changed that others refer to",
    "a key could not change because others refer to it",
    "a row came to lie where a range had been found empty",
    "an indexed column changed from NULL",
    "an upsert of several rows met some that were there",
    "an upsert met rows of its own transaction",
    "an upsert was refused because it would change a row twice",
    "an INSERT of several rows was refused as a whole",
    "definitions and data changed in one transaction",
    "a transaction failed after it had changed definitions and data",
    "two requests of one fingerprint were under way across a definition",
    "work raised in an exclusive commit",
    "a deadline passed in an exclusive commit",
    "a client left in an exclusive commit",
    "work raised where the coordinator ran it again",
    "a deadline passed where the coordinator ran the work again",
    "a sequence was redefined while others drew from it",
    "a transaction that redefined a sequence failed",
    "a request was answered at once",
    "a pending request was answered",
    "a request was answered by a task",
    "a stream was read to its end",
    "a stored answer was given again",
    "a stored answer was given again after a crash",
    "a request was refused because the same was running",
    "rows in bulk were refused because of one",
    "rows in bulk were answered with the stored answer",
    "another request had the name of a stored answer",
    "an error ended a stream",
    "an answer said that the outcome is unknown",
    "a request was refused by the rate limit",
    "a request was refused because too many waited",
    "a client left a request pending",
    "a client left a request waiting in a task",
    "a client left a request in the middle of a stream",
    "the server went on with a request whose client had left",
    "an answer came when its client had left",
    "a session was refused what is none of its statements",
)


def describe(world: SimulatedWorld, message: Any) -> str:
    """Return a message as a short sentence for the trace."""
    kind = type(message).__name__
    if kind == "Commit":
        name = world.requests[message.reply] = REQUEST.get()
        untried = message.transaction is None
        return f"commit {name}: {'untried work' if untried else repr(message.transaction)}"
    if kind == "Append":
        names = [world.requests.get(reply, "an exclusive commit") for reply, _ in message.answers]
        return f"append version {message.snapshot.version} for {', '.join(names)}"
    if kind == "ExclusiveCommit":
        return f"{REQUEST.get()} asks for an exclusive commit"
    return _DESCRIPTIONS[kind](message)


def observe(world: SimulatedWorld, message: Any) -> None:
    kind = type(message).__name__
    if kind == "Prepare":
        world.undecided = any(not part.alone for part in message.parts)
        if world.undecided:
            world.reach("a transaction touched several shards")
        if any(map(_was_cut_since, message.parts)):
            world.reach("a transaction's ranges were cut before it committed")
        if len(message.parts) > 1:
            world.reach("a round held several transactions")
    elif kind == "Rest":
        world.reach("a round that was begun where it was submitted was ended by the coordinator")
    elif kind == "Voted":
        _observe_votes(world, message)
    elif kind == "Decide":
        world.undecided = False
        if not message.commits:
            world.reach("a wide transaction was aborted after a shard had said yes")
    elif kind == "ExclusiveCommit":
        world.exclusive[REQUEST.get()] = message
        world.reach("a transaction had an exclusive commit")
    elif kind == "Commit" and message.transaction is not None:
        read, newest = message.transaction.snapshot.catalog, world.newest
        if newest is not None and read.tables != newest.catalog.tables:
            world.reach("a definition changed under a transaction")
        if newest is not None:
            _observe_straddling(world, message.transaction, newest.trees)
    elif kind == "Append":
        if world.newest is not None:
            _observe_layout(world, world.newest.trees, message)
        # An observer is no reader: its copy has no lease.
        world.newest = msgspec.structs.replace(message.snapshot, lease=None)
        _note_published(world, message.snapshot)
        world.record("publish", f"version {message.snapshot.version} is published")
        _observe_answers(world, message)


def _note_published(world: SimulatedWorld, snapshot: Snapshot) -> None:
    before = world.published.get(snapshot.version - 1)
    if before is not None and snapshot.time < before.time:
        problem = (
            f"version {snapshot.version} is of {snapshot.time}, the one before of {before.time}"
        )
        world.unexpected.append(problem)
    world.last_published = max(world.last_published, snapshot.version)
    if world.two_publish:
        world.published.pop(snapshot.version, None)  # either process's may be recovered
    else:
        world.published[snapshot.version] = published(snapshot, before, world.shelf)


def _observe_answers(world: SimulatedWorld, message: Any) -> None:
    again = any(getattr(answer, "retried", False) for _, answer in message.answers)
    begun = [
        answer
        for reply, answer in message.answers
        if isinstance(reply, Reply) and reply._callback is not None
    ]
    committed = sum(isinstance(answer, Committed) for answer in begun)
    if again:
        world.reach("a conflict was run again at the coordinator")
    if committed > 1:
        world.reach("several transactions begun without waiting were one round")
    if committed and again:
        world.reach("a transaction begun without waiting shared a round with a conflict")
    if any(isinstance(answer, Failed) for answer in begun):
        world.reach("a transaction begun without waiting failed beside others")


def _was_cut_since(part: Part) -> bool:
    """Return whether a part concerns ranges that did not exist when the transaction read."""
    return any(
        each not in ranges
        for each in (*part.keys, *part.writes, *(each for each, _ in part.scans))
        if (ranges := part.base.trees.tree(each.tree).ranges)
    )


def _observe_straddling(world: SimulatedWorld, transaction: Transaction, trees: Trees) -> None:
    for number, changes in transaction.writes.items():
        lows = trees.tree(number).lows
        if lows and len({bisect_right(lows, key) for key in changes}) > 1:
            world.reach("a transaction straddled ranges of one tree")
    for scanned in transaction.ranges:
        if len(trees.tree(scanned.tree).roots_between(scanned.low, scanned.high)) > 1:
            world.reach("a scan straddled ranges")


def _observe_layout(world: SimulatedWorld, before: Trees, message: Any) -> None:
    for number in message.writes:
        lows, now = before.tree(number).lows, message.snapshot.trees.tree(number).lows
        if lows is not now and not set(now) <= set(lows):
            world.reach("a range was cut")
        if lows is not now and not set(lows) <= set(now) and number not in message.dropped:
            world.reach("ranges were joined")


def _observe_votes(world: SimulatedWorld, message: Any) -> None:
    reasons = [conflict.reason for conflict in message.conflicts if conflict is not None]
    for reason in reasons:
        world.record("conflict", reason)
        if "has changed" in reason:
            world.reach("a shard refused a stale read")
        elif "undecided" in reason:
            world.reach("a shard refused what overlaps an undecided transaction")
        else:
            world.reach("a shard refused what overlaps an accepted transaction")


def _describe_voted(message: Any) -> str:
    refused = sum(conflict is not None for conflict in message.conflicts)
    installed = "" if message.roots is None else ", installed"
    return f"voted on {len(message.conflicts)}, refused {refused}{installed}"


_DESCRIPTIONS: Final[dict[str, Callable[[Any], str]]] = {
    "Begun": lambda message: f"await the append of {len(message.group)} rounds",
    "Prepare": lambda message: (
        f"prepare {len(message.parts)} parts,"
        f" {sum(not part.alone for part in message.parts)} undecided"
    ),
    "Voted": _describe_voted,
    "Decide": lambda message: f"decide: {len(message.commits)} commit",
    "Installed": lambda message: "installed",
    "Rest": lambda message: "a round that was begun elsewhere goes on",
    "Own": lambda message: f"own {len(message.given)} ranges, give up {len(message.taken)}",
}
