"""`qserver cluster status`: what nodes are, what they own, and whether they live.

A node renews its value three times in the time of its lease. So it lives if the value is seen to
change, and one whose value stands still for the time of a lease is silent.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

import msgspec
import trio

from qserver.cli.control import print_json
from qserver.cli.layouts import table
from qserver.cli.nodes.address import run_on_log
from qserver.control.nodes.lease import MARGIN, PREFIX, NodeFacts
from qserver.control.nodes.placement import CONTROL, Placement
from qserver.control.nodes.values import (
    NUMBERS,
    PLACEMENT,
    PatientValues,
    facts_in,
    numbers_in,
    placement_in,
)
from qserver.replication.port import LogNodes, Value

PATIENCE_SECONDS: Final = 10.0
PAUSE_SECONDS: Final = 0.2
STREAMS_MAX: Final = 200
"""So many are asked which log node leads them."""
_COLUMNS: Final = {
    "name": "text",
    "number": "bigint",
    "url": "text",
    "link": "text",
    "state": "text",
    "leads": "text",
    "serves": "text",
    "databases": "bigint",
}


class NodeStatus(msgspec.Struct, frozen=True):
    name: str
    number: int
    url: str | None
    """None of one that has a number, and never lived."""
    link: str | None
    state: str
    """alive, ended, silent; or unknown, if nobody has looked twice."""
    leads: bool
    serves: bool
    drained: bool
    databases: int
    """How many families it owns: databases with their branches."""


class ClusterStatus(msgspec.Struct, frozen=True):
    version: int
    """Of the placement."""
    nodes: list[NodeStatus]
    moved: dict[str, str]
    """Families that were moved by hand, and to which node."""
    log_nodes: dict[str, int]
    """How many streams each of them leads, as far as is known."""


def run_status(options: argparse.Namespace) -> int:
    async def look(nodes: LogNodes) -> ClusterStatus:
        return await status_of(nodes, is_quick=options.quick)

    found = run_on_log(options, look)
    if options.json:
        return print_json(msgspec.to_builtins(found))
    sys.stdout.write(_text(found))
    return 0


async def status_of(nodes: LogNodes, *, is_quick: bool) -> ClusterStatus:
    values = PatientValues(nodes, PATIENCE_SECONDS)
    first = await values.values(PREFIX)
    states = _states(first, {}) if is_quick else await _watched(values, first)
    numbers = numbers_in(await values.value(NUMBERS))
    found = await values.value(PLACEMENT)
    placement = Placement(0, -1, ()) if found is None else placement_in(found)
    streams = await nodes.streams()
    owned = Counter[int]()
    if placement.serving:
        owned.update(placement.owner_of(each) for each in streams if each != CONTROL)
    facts = {each.name: each for each in map(facts_in, first.values())}
    names = {number: name for name, number in numbers.items()}
    return ClusterStatus(
        placement.version,
        [
            _status(name, number, facts.get(name), states.get(name, "ended"), placement, owned)
            for name, number in sorted(numbers.items(), key=lambda each: each[1])
        ],
        {family: names.get(at, str(at)) for family, at in sorted(placement.moved.items())},
        await _leaders(nodes, streams[:STREAMS_MAX]),
    )


def _status(
    name: str,
    number: int,
    facts: NodeFacts | None,
    state: str,
    placement: Placement,
    owned: Counter[int],
) -> NodeStatus:
    return NodeStatus(
        name,
        number,
        None if facts is None else facts.url,
        None if facts is None else facts.link,
        state,
        leads=placement.leader == number,
        serves=number in placement.serving,
        drained=number in placement.drained,
        databases=owned[number],
    )


async def _watched(values: PatientValues, first: dict[str, Value]) -> dict[str, str]:
    """Look until all have renewed, or should have."""
    leases = [facts_in(value).lease_seconds for value in first.values()]
    until = trio.current_time() + MARGIN * max(leases, default=0.0)
    while True:
        now = await values.values(PREFIX)
        states = _states(now, first)
        if "silent" not in states.values() or trio.current_time() > until:
            return states
        await trio.sleep(PAUSE_SECONDS)


def _states(now: dict[str, Value], before: dict[str, Value]) -> dict[str, str]:
    """What nodes are, by name; without what was seen before, that of the living is not known."""
    states = {}
    for key, value in now.items():
        facts = facts_in(value)
        if facts.is_ended:
            state = "ended"
        elif not before:
            state = "unknown"
        else:
            stands_still = key in before and before[key].revision == value.revision
            state = "silent" if stands_still else "alive"
        states[facts.name] = state
    return states


async def _leaders(nodes: LogNodes, streams: Sequence[str]) -> dict[str, int]:
    """Count which log node leads which of some streams; a single one does not say its name."""
    found = Counter[str]()
    for name in streams:
        stream = await nodes.find_stream(name)
        if stream is not None and stream.leader:
            found[stream.leader] += 1
    return dict(sorted(found.items()))


# --- text ----------------------------------------------------------------------------------------


def _text(found: ClusterStatus) -> str:
    if not found.nodes:
        return "No node has served the databases of this log yet.\n"
    rows = [
        (
            each.name,
            each.number,
            each.url or "",
            each.link or "",
            each.state,
            "yes" if each.leads else "",
            _serves(each),
            each.databases,
        )
        for each in found.nodes
    ]
    lines = [table(list(_COLUMNS), list(_COLUMNS.values()), rows)]
    lines.append(f"placement: version {found.version}\n")
    lines += [f"moved by hand: {family} to {name}\n" for family, name in found.moved.items()]
    if found.log_nodes:
        led = ", ".join(f"{name} {count}" for name, count in found.log_nodes.items())
        lines.append(f"log nodes, and how many streams they lead: {led}\n")
    return "".join(lines)


def _serves(node: NodeStatus) -> str:
    if node.drained:
        return "drained"
    return "yes" if node.serves else ""
