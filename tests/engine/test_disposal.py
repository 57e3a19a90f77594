"""Large containers are freed in pieces, and all of them are."""

from __future__ import annotations

from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from qserver.engine.disposal import PIECE_ENTRIES, dispose, emptied

LENGTHS = st.integers(0, 3 * PIECE_ENTRIES)


class Counted:
    """Counts how many of its kind are alive."""

    alive = 0

    def __init__(self) -> None:
        Counted.alive += 1

    def __del__(self) -> None:
        Counted.alive -= 1


def container(kind: str, length: int) -> Any:
    entries = [(Counted(),) for _ in range(length)]
    if kind == "dict":
        return dict(enumerate(entries))
    return set(entries) if kind == "set" else entries


CONTAINERS = st.tuples(st.sampled_from(("list", "set", "dict")), LENGTHS)


@given(st.lists(CONTAINERS, max_size=4), st.sampled_from(("list", "groups", "one")))
def test_a_step_frees_at_most_a_piece(shapes: list[tuple[str, int]], nesting: str) -> None:
    Counted.alive = 0
    inner = [container(*shape) for shape in shapes]
    if nesting == "list":
        held: Any = [each for each in inner if not isinstance(each, set | dict)]
        held += [each for each in inner if isinstance(each, set | dict)]
    elif nesting == "groups":  # a group has its states in a list
        held = {number: [0, None, each] for number, each in enumerate(inner)}
    else:
        held = inner[0] if inner else []
    inner.clear()
    before = Counted.alive
    for _ in emptied(held):
        # what is small may go along with the container that it is in
        assert before - Counted.alive <= PIECE_ENTRIES * (1 + len(shapes))
        before = Counted.alive
    assert not held and Counted.alive == 0


async def test_what_is_disposed_of_is_freed_while_others_run() -> None:
    Counted.alive = 0
    turns: list[int] = []
    freed: list[int] = []
    held = [container("list", 20 * PIECE_ENTRIES), container("dict", 5)]
    dispose(held, lambda: freed.append(Counted.alive))
    held.clear()
    while not freed:
        turns.append(Counted.alive)
        await trio.lowlevel.checkpoint()
    assert freed == [0]
    assert len(set(turns)) > 10, "others ran between the pieces"
    dispose([container("set", 9)], lambda: freed.append(Counted.alive))  # a second task comes
    await wait_all_tasks_blocked()
    assert freed == [0, 0]
