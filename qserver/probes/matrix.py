"""The feature matrix: every probe, and the absent features; finds a probe by its name.

A feature is supported because a probe demonstrates it, and anybody can run the probe at any time.
The tests run all probes, so a false `supported: true` fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
import trio

from qserver.engine.world import World
from qserver.errors import NotFound
from qserver.probes import (
    bounds,
    constraints,
    definitions,
    durability,
    history,
    isolation,
    parameters,
    queries,
    statements,
    streaming,
    transactions,
    types,
)
from qserver.probes.absent import ABSENT
from qserver.probes.run import OpensScratch, Probe, ProbeResult, run_one
from qserver.query.scratch import scratch_database

PATH: Final = "/capabilities/"

PROBES: Final[tuple[Probe, ...]] = (
    *statements.PROBES,
    *queries.PROBES,
    *types.PROBES,
    *constraints.PROBES,
    *definitions.PROBES,
    *transactions.PROBES,
    *isolation.PROBES,
    *parameters.PROBES,
    *streaming.PROBES,
    *bounds.PROBES,
    *durability.PROBES,
    *history.PROBES,
)
BY_NAME: Final[Mapping[str, Probe]] = MappingProxyType({probe.name: probe for probe in PROBES})


class Capability(msgspec.Struct, frozen=True):
    """A row of the matrix; `probe` is the path that runs the proof."""

    name: str
    category: str
    supported: bool
    description: str
    probe: str | None


def matrix() -> list[Capability]:
    """The supported features with their probes, then the absent ones."""
    there = [
        Capability(probe.name, probe.category, True, probe.description, PATH + probe.name)
        for probe in PROBES
    ]
    missing = [
        Capability(each.name, each.category, False, each.description, None) for each in ABSENT
    ]
    return there + missing


async def run_probe(
    name: str,
    world: World,
    *,
    clock: Callable[[], float] = trio.current_time,
    opens: OpensScratch = scratch_database,
) -> ProbeResult:
    """Run the probe of that name in a scratch database; NotFound lists the names."""
    probe = BY_NAME.get(name)
    if probe is None:
        raise NotFound(
            f'there is no probe "{name}"',
            detail=f"The probes are {', '.join(BY_NAME)}.",
            hint="GET /capabilities lists them with what each of them shows.",
        )
    return await run_one(probe, world, clock=clock, opens=opens)
