"""`qserver cluster move` and `drain`: change which node owns what, without being a node.

What is changed is one value on the log's nodes. Nodes look at it every second, or more often: then
the owner of before closes the database, and requests wait at the new one until it has. With the
next renewal of its lease a node says that it has nothing of others any more: that is waited for.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import trio

from qserver.archive.listed import databases_in
from qserver.cli.nodes.address import run_on_log
from qserver.control.nodes.lease import PREFIX
from qserver.control.nodes.placement import CONTROL, Placement
from qserver.control.nodes.values import (
    NUMBERS,
    PatientValues,
    change_placement,
    facts_in,
    moved_by_hand,
    number_named,
    numbers_in,
)
from qserver.durability.data_folder import DataFolder
from qserver.errors import InvalidRequest, NotFound, QserverError
from qserver.replication.moving import read_family
from qserver.replication.port import LogNodes

PATIENCE_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.1
LEASES: Final = 2
"""How many times the longest lease it is waited: a node that has ended is noticed by then."""


# --- move ----------------------------------------------------------------------------------------


def run_move(options: argparse.Namespace) -> int:
    if (options.node is None) != options.back:
        raise InvalidRequest(
            "a database moves to a node, or back",
            hint="Name the node, or give --back.",
        )
    family: str = options.database

    async def move(nodes: LogNodes) -> str:
        await _check_is_family(nodes, family)
        if options.back:
            return await move_back(nodes, family)
        return await move_to(nodes, family, options.node)

    sys.stdout.write(f"{run_on_log(options, move)}\n")
    return 0


async def move_to(nodes: LogNodes, family: str, name: str) -> str:
    """Let a node own a family; return what is said of that."""
    values = PatientValues(nodes, PATIENCE_SECONDS)
    number = number_named(name, numbers_in(await values.value(NUMBERS)))
    before: list[Placement] = []

    def moved(was: Placement) -> Placement:
        before[:] = [was]
        return moved_by_hand(was, family, number, name)

    after = await change_placement(values, moved)
    if after == before[0]:
        return f"{name} has {family} already."
    return f"{family} has moved to {name}{await _heeded(values, after.version)}"


async def move_back(nodes: LogNodes, family: str) -> str:
    """Undo a move; return what is said of that."""
    if family == CONTROL:
        raise InvalidRequest(
            "control has no place of its own: it stays where it is",
            hint="Name the node that is to lead.",
        )
    values = PatientValues(nodes, PATIENCE_SECONDS)
    before: list[Placement] = []

    def back(was: Placement) -> Placement:
        before[:] = [was]
        return was.moved_back(family)

    after = await change_placement(values, back)
    if after == before[0]:
        return f"Nobody has moved {family}."
    name = await _name_of(values, after.owner_of(family))
    return f"{family} has moved back to {name}{await _heeded(values, after.version)}"


async def _check_is_family(nodes: LogNodes, family: str) -> None:
    if family in await nodes.streams():
        return
    parents = await _parents(nodes)
    root = family
    while root in parents and parents[root] is not None:
        root = str(parents[root])
    if root != family:
        raise InvalidRequest(
            f"{family} is a branch, and a database moves with all its branches",
            hint=f"Move {root}.",
        )
    raise NotFound(
        f"the log has no database {family}",
        hint="Name it by its id, db_…, as qserver database list shows it.",
    )


async def _parents(nodes: LogNodes) -> dict[str, str | None]:
    """Return which database each is a branch of; nothing if control cannot tell."""
    with TemporaryDirectory() as temporary:
        folder = DataFolder(Path(temporary))
        try:
            await read_family(nodes, folder, CONTROL)
            listed = await databases_in(folder.file_of(CONTROL))
        except QserverError:
            return {}
    return {name: each.parent for name, each in listed.items()}


# --- drain ---------------------------------------------------------------------------------------


def run_drain(options: argparse.Namespace) -> int:
    async def change(nodes: LogNodes) -> str:
        if options.undo:
            return await undrain(nodes, options.node)
        return await drain(nodes, options.node)

    sys.stdout.write(f"{run_on_log(options, change)}\n")
    return 0


async def drain(nodes: LogNodes, name: str) -> str:
    """Let a node own nothing; return what is said of that."""
    values = PatientValues(nodes, PATIENCE_SECONDS)
    number = number_named(name, numbers_in(await values.value(NUMBERS)))

    def drained(was: Placement) -> Placement:
        made = was.with_drained(number)
        if number in made.owning:
            raise InvalidRequest(
                f"{name} is the only node that may own databases",
                hint="Start another one, or undo the drain of another: drain NODE --undo.",
            )
        return made

    after = await change_placement(values, drained)
    return (
        f"{name} owns no database any more{await _heeded(values, after.version)}\n"
        f"It answers clients with what the owners say. Undo it: qserver cluster drain {name} --undo"
    )


async def undrain(nodes: LogNodes, name: str) -> str:
    """Let a node own databases again; return what is said of that."""
    values = PatientValues(nodes, PATIENCE_SECONDS)
    number = number_named(name, numbers_in(await values.value(NUMBERS)))
    after = await change_placement(values, lambda was: was.undrained(number))
    if number not in after.serving:
        return f"{name} owns databases again as soon as it serves."
    return f"{name} owns databases again{await _heeded(values, after.version)}"


# --- nodes ---------------------------------------------------------------------------------------


async def _heeded(values: PatientValues, version: int) -> str:
    """Wait until no node has what others own by a placement; return the end of the sentence."""
    began = trio.current_time()
    while True:
        nodes = [facts_in(value) for value in (await values.values(PREFIX)).values()]
        late = [each for each in nodes if not each.is_ended and each.released < version]
        if not late:
            return f" (version {version} of the placement)."
        if trio.current_time() - began > LEASES * max(each.lease_seconds for each in late):
            names = ", ".join(sorted(each.name for each in late))
            return (
                f" by version {version} of the placement, but not all nodes have heeded it yet:"
                f" {names}. Requests wait for that."
            )
        await trio.sleep(PAUSE_SECONDS)


async def _name_of(values: PatientValues, number: int) -> str:
    numbers = numbers_in(await values.value(NUMBERS))
    return next((name for name, each in numbers.items() if each == number), str(number))
