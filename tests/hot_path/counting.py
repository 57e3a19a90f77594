"""Counts what a request takes: instructions, calls, memory. No clock, so any machine agrees.

    instructions   bytecode instructions of Python, ours and those of libraries, Trio's included
    calls          calls of functions, in Python or C
    peak_bytes     the most memory that the request held at once
    kept_blocks    blocks of memory that are still held when it is answered

The first three are the least of some requests, after others have warmed up plans and caches: a page
that is split, or an answer that the loop had to wait for, does not count. The last is the least of
some hundreds each: what a background task has not freed yet on a busy machine does not count.

Only the same minor version of Python counts the same. They are counted in a process of their own:
what other tests left behind, in threads and memory, would count too.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import trio

from qserver.control.logs import MemoryLogs
from tests.hot_path.application import Ask, Send, requests, requests_of_wire, serving

ROOT: Final = Path(__file__).parent.parent.parent
WARM_UP: Final = 40
REQUESTS: Final = 15
KEPT_REQUESTS: Final = 200
KEPT_REPEATS: Final = 6

Counts = dict[str, float]


def counted_alone() -> dict[str, Counts]:
    """All counts, by the name of the request."""
    command = [sys.executable, "-m", "tests.hot_path.counting"]
    output = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE).stdout
    found: dict[str, Counts] = json.loads(output)
    return found


async def _counts() -> dict[str, Counts]:
    async with serving(MemoryLogs()) as hot_path:
        ways: dict[str, tuple[Send, Ask]] = {}
        for name, ask in requests().items():
            ways[name] = hot_path.ask, ask
        ways["point read, HTTP"] = hot_path.ask_server, ways["point read"][1]
        ways["point read, HTTP, late body"] = hot_path.ask_server_in_two, ways["point read"][1]
        ways["point read, ASGI"] = hot_path.ask_adapter, ways["point read"][1]
        for name, ask in requests_of_wire().items():
            ways[f"point read, {name}"] = hot_path.ask_wire, ask
        return {name: await _counted(*way) for name, way in ways.items()}


async def _counted(send: Send, ask: Ask) -> Counts:
    for _ in range(WARM_UP):
        await send(*ask())
    with _undisturbed():
        return {
            "instructions": await _least(send, ask, instructions),
            "calls": await _least(send, ask, _calls),
            "peak_bytes": await _peak_bytes(send, ask),
            "kept_blocks": await _kept_blocks(send, ask),
        }


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Neither the collector nor a measurement of coverage runs, which would count too."""
    gc.collect()
    gc.disable()
    before = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(before)
        gc.enable()


async def _least(send: Send, ask: Ask, counting: Callable[[list[int]], Any]) -> float:
    found = []
    for _ in range(REQUESTS):
        path, body = ask()
        counted = [0]
        with counting(counted):
            await send(path, body)
        found.append(counted[0])
    return min(found)


@contextmanager
def instructions(counted: list[int]) -> Iterator[None]:
    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "opcode":
            counted[0] += 1
        elif event == "call":
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace

    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(None)


@contextmanager
def _calls(counted: list[int]) -> Iterator[None]:
    def profile(frame: FrameType, event: str, argument: Any) -> None:
        if event in ("call", "c_call"):
            counted[0] += 1

    sys.setprofile(profile)
    try:
        yield
    finally:
        sys.setprofile(None)


async def _peak_bytes(send: Send, ask: Ask) -> float:
    found = []
    tracemalloc.start()
    try:
        for _ in range(REQUESTS):
            path, body = ask()
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            await send(path, body)
            found.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return min(found)


async def _kept_blocks(send: Send, ask: Ask) -> float:
    found = []
    for _ in range(KEPT_REPEATS):
        bodies = [ask() for _ in range(KEPT_REQUESTS)]
        before = sys.getallocatedblocks()
        for path, body in bodies:
            await send(path, body)
        found.append((sys.getallocatedblocks() - before) / KEPT_REQUESTS)
    return round(min(found), 1)


if __name__ == "__main__":
    json.dump(trio.run(_counts), sys.stdout)
