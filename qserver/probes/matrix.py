"""The feature matrix: every probe, and what is not there; and how a probe is found by its name.

A feature counts as supported because there is a probe that shows it, and a probe can be run by
anybody at any time. The tests run all of them, so a `supported: true` that does not hold is a test
that fails.
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
    """What is there, with its proof, then what is not."""
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
    """Run the probe of that name in a database of its own; NotFound lists the names there are."""
    probe = BY_NAME.get(name)
    if probe is None:
        raise NotFound(
            f'there is no probe "{name}"',
            detail=f"The probes are {', '.join(BY_NAME)}.",
            hint="GET /capabilities lists them with what each of them shows.",
        )
    return await run_one(probe, world, clock=clock, opens=opens)
