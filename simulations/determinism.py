"""Makes Trio repeatable: the only file that touches its private parts.

A run is a function of its seed when five things hold:

    the clock      is false: it stands still while any task can run, and then jumps
    the scheduler  orders each batch of runnable tasks by a generator that we seed, and keeps
                   the batches themselves in order of insertion (a private switch of Trio)
    stopwatches    of the product (`perf_counter`) read that same clock: durations are part of
                   stored answers, so of the log, and decide when a long request pauses
    the collector  is off, or finalizers of generators would run when it pleases
    the rest       no code asks the machine for time, chance or identity; trip-wires enforce it

A deadlock under a jumping clock would spin for ever, and a livelock too, so every run has a
deadline in virtual seconds and a limit of task steps.
"""

from __future__ import annotations

import gc
import os
import random
import secrets
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import trio
import trio._core._run as private
import trio.testing

TRIPWIRES = (
    (time, "time"),
    (time, "time_ns"),
    (time, "monotonic"),
    (time, "sleep"),
    (random, "random"),
    (random, "randrange"),
    (random, "choice"),
    (random, "shuffle"),
    (secrets, "token_bytes"),
    (secrets, "token_hex"),
    (uuid, "uuid4"),
    (uuid, "uuid1"),
    (os, "urandom"),
)


class Exhausted(Exception):
    """The run did not end within its virtual time or its steps: a deadlock or a livelock."""


class _StepLimit(trio.abc.Instrument):
    """Stops a run whose tasks keep running while no time passes."""

    def __init__(self, steps_max: int) -> None:
        self.steps = 0
        self._steps_max = steps_max
        self.scope: trio.CancelScope | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self.steps > self._steps_max and self.scope is not None:
            self.scope.cancel()


def run_repeatably(
    seed: int,
    main: Callable[[], Awaitable[Any]],
    *,
    virtual_seconds_max: float,
    steps_max: int,
) -> Any:
    """Run `main` so that the same seed gives the same run."""
    for name in ("_ALLOW_DETERMINISTIC_SCHEDULING", "_r"):
        assert hasattr(private, name), f"this release of Trio has no {name}: pin the tested one"
    limit = _StepLimit(steps_max)

    async def bounded() -> Any:
        with trio.move_on_after(virtual_seconds_max) as limit.scope:
            return await main()
        raise Exhausted(
            f"no end after {limit.steps} steps and {trio.current_time():.1f} virtual seconds"
        )

    scheduling = private._ALLOW_DETERMINISTIC_SCHEDULING
    generator_state = private._r.getstate()
    with collector_off(), tripwires(), stopwatches():
        private._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
        private._r.seed(seed)
        try:
            return trio.run(
                bounded,
                clock=trio.testing.MockClock(autojump_threshold=0),
                instruments=[limit],
            )
        finally:
            private._ALLOW_DETERMINISTIC_SCHEDULING = scheduling  # type: ignore[misc]
            private._r.setstate(generator_state)


@contextmanager
def collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def tripwires() -> Iterator[None]:
    """Make code that asks the machine for time, chance or identity during a run fail loudly."""
    kept = [(module, name, getattr(module, name)) for module, name in TRIPWIRES]
    for module, name, _ in kept:
        setattr(module, name, _forbidden(f"{module.__name__}.{name}"))
    try:
        yield
    finally:
        for module, name, original in kept:
            setattr(module, name, original)


@contextmanager
def stopwatches() -> Iterator[None]:
    """Make the product measure durations with the clock of the run."""
    kept = [
        module
        for name, module in sys.modules.items()
        if name.startswith("qserver.") and vars(module).get("perf_counter") is time.perf_counter
    ]
    for module in kept:
        vars(module)["perf_counter"] = trio.current_time
    try:
        yield
    finally:
        for module in kept:
            vars(module)["perf_counter"] = time.perf_counter


def _forbidden(name: str) -> Callable[..., NoReturn]:
    def trip(*_: object, **__: object) -> NoReturn:
        raise AssertionError(f"{name} was called in a simulated run")

    return trip
