"""What the simulation sees in the messages that pass: words for the trace, and points reached.

A run proves little if nothing interesting happened in it. `SOMETIMES` lists what must have happened
at least once in a campaign of runs; a campaign that misses one has failed, however green it is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from qserver.engine.messages import Committed, Failed

if TYPE_CHECKING:
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
    "a transaction had a turn of its own",
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
    "the process crashed between the pages of a checkpoint",
    "the process crashed while it saved a checkpoint",
    "recovery began with a checkpoint",
    "recovery read the log behind a checkpoint",
    "recovery read the log in several pieces",
    "recovery read the pages in several pieces",
    "a tree had several pages",
    "a tree had several levels of branches",
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
    "two requests of one shape were under way across a definition",
    "work raised in a turn of its own",
    "a deadline passed in a turn of its own",
    "a client left in a turn of its own",
    "work raised where the coordinator ran it again",
    "a deadline passed where the coordinator ran the work again",
    "a sequence was redefined while others drew from it",
    "a transaction that redefined a sequence failed",
)


def describe(world: SimulatedWorld, message: Any) -> str:
    """A message as a short sentence for the trace."""
    kind = type(message).__name__
    if kind == "Commit":
        name = world.requests[message.reply] = REQUEST.get()
        untried = message.transaction is None
        return f"commit {name}: {'untried work' if untried else repr(message.transaction)}"
    if kind == "Append":
        names = [world.requests.get(reply, "a turn") for reply, _ in message.answers]
        return f"append version {message.view.version} for {', '.join(names)}"
    if kind == "Turn":
        return f"{REQUEST.get()} asks for a turn"
    return _DESCRIPTIONS[kind](message)


def observe(world: SimulatedWorld, message: Any) -> None:
    """Note what a message tells about the run."""
    kind = type(message).__name__
    if kind == "Prepare":
        world.undecided = any(not part.alone for part in message.parts)
        if world.undecided:
            world.reach("a transaction touched several shards")
        if len(message.parts) > 1:
            world.reach("a round held several transactions")
    elif kind == "Voted":
        _observe_votes(world, message)
    elif kind == "Decide":
        world.undecided = False
        if not message.commits:
            world.reach("a wide transaction was aborted after a shard had said yes")
    elif kind == "Turn":
        world.turns[REQUEST.get()] = message
        world.reach("a transaction had a turn of its own")
    elif kind == "Commit" and message.transaction is not None:
        read, newest = message.transaction.view.catalog, world.newest_catalog
        if newest is not None and read.tables != newest.tables:
            world.reach("a definition changed under a transaction")
    elif kind == "Append":
        world.newest_catalog = message.view.catalog
        world.record("publish", f"version {message.view.version} is published")
        _observe_answers(world, message)


def _observe_answers(world: SimulatedWorld, message: Any) -> None:
    again = any(getattr(answer, "again", False) for _, answer in message.answers)
    begun = [answer for reply, answer in message.answers if reply.calls_back]
    committed = sum(isinstance(answer, Committed) for answer in begun)
    if again:
        world.reach("a conflict was run again at the coordinator")
    if committed > 1:
        world.reach("several transactions begun without waiting were one round")
    if committed and again:
        world.reach("a transaction begun without waiting shared a round with a conflict")
    if any(isinstance(answer, Failed) for answer in begun):
        world.reach("a transaction begun without waiting failed beside others")


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
    installed = "" if message.partition is None else ", installed"
    return f"voted on {len(message.conflicts)}, refused {refused}{installed}"


_DESCRIPTIONS: Final[dict[str, Callable[[Any], str]]] = {
    "Prepare": lambda message: (
        f"prepare {len(message.parts)} parts,"
        f" {sum(not part.alone for part in message.parts)} undecided"
    ),
    "Voted": _describe_voted,
    "Decide": lambda message: f"decide: {len(message.commits)} commit",
    "Installed": lambda message: "installed",
}
