"""The world of tests of the service: a fixed time, chance with a seed, and loud reports."""

from __future__ import annotations

from random import Random

from qserver.engine.world import OrdinaryWorld


def fail(text: str, error: Exception) -> None:
    raise AssertionError(text) from error


def quiet_world() -> OrdinaryWorld:
    """What goes wrong inside of the engine fails the test."""
    return OrdinaryWorld(lambda: 1_700_000_000.0, Random(0), fail)
