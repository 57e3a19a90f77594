"""Many changes that are made in pieces make the partition that they make at once."""

from __future__ import annotations

from random import Random
from typing import Any

from qserver.storage.btree import Tree, pages
from qserver.storage.partition import CHANGES_AT_ONCE, Partition, Writes


def entries(tree: Tree) -> list[tuple[Any, Any]]:
    return [entry for page in pages(tree) for entry in zip(*page, strict=True)]


def changed_in_pieces(partition: Partition, writes: Writes, dropped: tuple[int, ...]) -> Partition:
    steps = partition.changed_in_pieces(writes, dropped)
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            assert pauses > 4
            result: Partition = end.value
            return result
        pauses += 1


def test_changes_in_any_order_make_the_same_entries() -> None:
    chance = Random(3)
    keys = [(number,) for number in range(4 * CHANGES_AT_ONCE)]
    chance.shuffle(keys)
    before = Partition().changed({7: {key: (*key, "old") for key in keys[::2]}, 9: {(1,): (1,)}})
    writes: Writes = {
        7: {key: None if at % 5 == 0 else (*key, "new") for at, key in enumerate(keys)},
        8: {(number,): (number,) for number in range(3 * CHANGES_AT_ONCE)},
    }
    at_once = before.changed(writes, (9,))
    in_pieces = changed_in_pieces(before, writes, (9,))
    assert at_once.trees.keys() == in_pieces.trees.keys() == {7, 8}
    for number, tree in at_once.trees.items():
        assert entries(tree) == entries(in_pieces.tree(number))
