"""Frees large containers a piece at a time.

    a statement ends ── dispose(rows, groups, …) ──► [ rows | groups | … ]   one task empties them,
                                                       └─ piece by piece     in turn with long work

Python frees a list and everything that only the list references in one go: ten million small
objects take more than a second. So a statement that held many rows hands over its lists, sets and
dictionaries when it ends, and does not wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextvars import copy_context
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import trio

from qserver.engine.collector import scan_in_turn
from qserver.engine.turns import OWNER, current_line
from qserver.engine.yielding import yield_to_others

PIECE_ENTRIES: Final = 1024
"""Entries that are freed between two pauses."""

PIECES_BETWEEN_SCANS: Final = 8
"""Of the collector: about as many new objects come meanwhile as Python lets come."""

_CONTAINERS: Final = frozenset({list, dict, set})

Freed: TypeAlias = Callable[[], None]


class _Heap:
    """Containers that wait to be freed. `is_served`: a task is freeing them."""

    def __init__(self) -> None:
        self.waiting: deque[tuple[list[Any], Freed]] = deque()
        self.is_served = False

    async def serve(self) -> None:
        pieces = 0
        try:
            while self.waiting:
                containers, freed = self.waiting[0]
                while containers:
                    for _ in emptied(containers[-1]):
                        pieces += 1
                        if not pieces % PIECES_BETWEEN_SCANS:
                            scan_in_turn(pieces // PIECES_BETWEEN_SCANS)
                        await yield_to_others()
                    containers.pop()
                self.waiting.popleft()
                freed()
                del containers, freed
        finally:
            self.is_served = False


def _nothing() -> None:
    """Nothing waits for what is freed."""


_heaps: Final = trio.lowlevel.RunVar[WeakKeyDictionary[Any, _Heap]]("heaps")


def dispose(containers: Iterable[Any], freed: Freed = _nothing) -> None:
    """Free containers that nobody uses any more; call `freed` afterwards.

    Each owner's are freed in its own turns.
    """
    try:
        heaps = _heaps.get()
    except LookupError:
        heaps = WeakKeyDictionary()
        _heaps.set(heaps)
    owner = OWNER.get() or current_line().strangers
    heap = heaps.get(owner)
    if heap is None:
        heap = heaps[owner] = _Heap()
    heap.waiting.append((list(containers), freed))
    if not heap.is_served:
        heap.is_served = True
        trio.lowlevel.spawn_system_task(heap.serve, context=copy_context())


def emptied(container: Any) -> Generator[None, None, None]:
    """Empty a list, set or dictionary, and the large ones inside it; yield between pieces."""
    waiting = [container]
    while waiting:
        each = waiting[-1]
        if not each:
            waiting.pop()
            continue
        waiting += _large(_taken(each))
        yield


def _taken(container: Any) -> list[Any]:
    """Remove a piece from a container."""
    if type(container) is list:
        piece = container[-PIECE_ENTRIES:]
        del container[-PIECE_ENTRIES:]
        return piece
    count = range(min(len(container), PIECE_ENTRIES))
    if type(container) is dict:
        return [container.popitem()[1] for _ in count]
    for _ in count:
        container.pop()
    return []


def _large(entries: list[Any]) -> list[Any]:
    """Return the large containers among entries, and among the states of groups, which are short
    lists.
    """
    found = []
    for each in entries:
        if type(each) not in _CONTAINERS:
            continue
        if len(each) > PIECE_ENTRIES:
            found.append(each)
        elif type(each) is list:
            found += [
                state for state in each if type(state) in _CONTAINERS and len(state) > PIECE_ENTRIES
            ]
    return found
