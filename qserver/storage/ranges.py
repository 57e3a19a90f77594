"""Ranges: how the keys of a tree are divided among shards.

    tree 7    | ... 400)   [400 ... 900)   [900 ... |      a small tree is one range
    root           *             *              *
    shard          3             0              1

One shard owns a range and alone makes its next root. A range is a value: a tree, its bounds and its
shard. So every snapshot says where a key belongs, and only the coordinator changes that, with a new
snapshot: it cuts a range that has grown past RANGE_ENTRIES_MAX into even pieces, and joins
neighbours that have shrunk to RANGE_ENTRIES_MIN together. Cutting copies one page of each height
and shares the others.

Ranges follow from a tree's entries, so recovery lays them out again, and neither the log nor a
checkpoint mentions shards. A tree that was never written has no range yet; its first one belongs to
the shard of its table, so that a small table and its indexes lie on one shard.

Trees are filed in blocks of neighbouring numbers. The blocks and the map of blocks are plain dicts
that never change:

    blocks {0: {1: *, 7: *}, 2: {33: *}}      tree 7 is in block 7 >> BLOCK_BITS

Every read passes here, and two dict look-ups are what Python does fastest. A round copies only the
map and the few blocks that it touches, so old snapshots stay cheap even with thousands of trees;
copies of one dict with all of them would not.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from qserver.limits import RANGE_ENTRIES_MAX, RANGE_ENTRIES_MIN
from qserver.storage.btree import cut_keys, join, split
from qserver.storage.page import EMPTY, Key, Tree
from qserver.storage.writes import NEVER, Moment
from qserver.values.keys import Bound

BLOCK_BITS: Final = 4


class Range(msgspec.Struct, frozen=True):
    """The keys low <= key < high of a tree, and the shard that owns them."""

    tree: int
    low: Bound
    high: Bound
    shard: int

    def clipped(self, low: Bound, high: Bound) -> tuple[Bound, Bound]:
        """Return the bounds of the overlap with another range."""
        if low is None or (self.low is not None and low < self.low):
            low = self.low
        if high is None or (self.high is not None and self.high < high):
            high = self.high
        return low, high

    def __repr__(self) -> str:
        low = "" if self.low is None else f"{self.low} <= "
        high = "" if self.high is None else f" < {self.high}"
        return f"{low}keys of tree {self.tree}{high} on shard {self.shard}"


Roots: TypeAlias = dict[Range, Tree]


class RangedTree(msgspec.Struct, frozen=True, eq=False):
    """A tree as ranges in the order of their keys, each with its root."""

    ranges: tuple[Range, ...]
    """Empty before the tree is first written."""
    roots: tuple[Tree, ...]
    lows: tuple[Key, ...]
    """The lower bounds of all ranges but the first, which has none."""
    last_change: Moment = NEVER

    @staticmethod
    def of(roots: Mapping[Range, Tree], last_change: Moment = NEVER) -> RangedTree:
        """Make the tree that has these ranges, in any order."""
        pairs = sorted(roots.items(), key=lambda pair: _order(pair[0]))
        ranges = tuple([each for each, _ in pairs])
        lows = tuple([each.low for each in ranges[1:] if each.low is not None])
        assert len(lows) == len(ranges) - 1 and ranges[0].low is None, "ranges leave no gap"
        return RangedTree(ranges, tuple([root for _, root in pairs]), lows, last_change)

    def __len__(self) -> int:
        return sum([root.length for root in self.roots])

    def root_at(self, key: Key) -> Tree:
        return self.roots[bisect_right(self.lows, key)]

    def root_of(self, each: Range) -> Tree:
        """Return the root that now has the lowest keys of a range."""
        return self.roots[0] if each.low is None else self.root_at(each.low)

    def roots_between(self, low: Bound, high: Bound) -> tuple[Tree, ...]:
        """Return the roots of the ranges that have keys with low <= key < high."""
        first, last = self._between(low, high)
        return self.roots[first : last + 1]

    def ranges_between(self, low: Bound, high: Bound) -> tuple[Range, ...]:
        first, last = self._between(low, high)
        return self.ranges[first : last + 1]

    def pieces(self, low: Bound, high: Bound) -> Iterator[tuple[Tree, Bound, Bound]]:
        """Yield the roots with keys in low <= key < high, each with the bounds of its share."""
        first, last = self._between(low, high)
        for at in range(first, last + 1):
            yield (
                self.roots[at],
                low if at == first else self.lows[at - 1],
                high if at == last else self.lows[at],
            )

    def _between(self, low: Bound, high: Bound) -> tuple[int, int]:
        lows = self.lows
        first = 0 if low is None else bisect_right(lows, low)
        last = len(lows) if high is None else bisect_left(lows, high)
        return first, last

    def changed(self, roots: Mapping[Range, Tree], moment: Moment = NEVER) -> RangedTree:
        """Return the same ranges with other roots. A tree without ranges gets its first."""
        if not self.ranges:
            return RangedTree.of(roots, moment)
        if len(self.ranges) == 1:
            return RangedTree(self.ranges, (roots[self.ranges[0]],), (), moment)
        now = list(self.roots)
        for each, root in roots.items():
            at = 0 if each.low is None else bisect_right(self.lows, each.low)
            assert self.ranges[at] == each, "a shard changes ranges that there are"
            now[at] = root
        return RangedTree(self.ranges, tuple(now), self.lows, moment)

    def fits(self, each: Range, root: Tree) -> bool:
        """Return whether a range is neither too large nor so small that it can be joined."""
        if root.length > RANGE_ENTRIES_MAX:
            return False
        if root.length > RANGE_ENTRIES_MIN or len(self.roots) == 1:
            return True
        at = 0 if each.low is None else bisect_right(self.lows, each.low)
        beside = [
            self.roots[other].length for other in (at - 1, at + 1) if 0 <= other < len(self.roots)
        ]
        return root.length + min(beside) > RANGE_ENTRIES_MIN

    def laid_out(self, shards: int) -> RangedTree:
        """Return the same entries in ranges that are neither too large nor too small."""
        roots = self.roots
        pieces = _joined(_cut(zip(self.ranges, roots, strict=True), shards))
        if len(pieces) == len(roots) and all(map(_is_same, self.ranges, pieces)):
            return self
        return RangedTree.of(dict(pieces), self.last_change)

    def __repr__(self) -> str:
        return f"{len(self)} entries in {len(self.ranges)} ranges"


NOTHING: Final = RangedTree((), (EMPTY,), ())
"""A tree that was never written."""

Piece: TypeAlias = tuple[Range, Tree]


def _order(each: Range) -> tuple[Any, ...]:
    return (0,) if each.low is None else (1, each.low)


def _is_same(before: Range, piece: Piece) -> bool:
    return before == piece[0]


def _cut(pieces: Iterable[Piece], shards: int) -> Iterator[Piece]:
    """Cut large ranges into even pieces, which go to one shard after the other."""
    for whole, root in pieces:
        keys = cut_keys(root, RANGE_ENTRIES_MAX)
        shard, low = whole.shard, whole.low
        for key in keys:
            left, root = split(root, key)
            yield Range(whole.tree, low, key, shard), left
            shard, low = (shard + 1) % shards, key
        yield (Range(whole.tree, low, whole.high, shard) if keys else whole), root


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Join neighbours that are small together."""
    done: list[Piece] = []
    for piece in pieces:
        if done and done[-1][1].length + piece[1].length <= RANGE_ENTRIES_MIN:
            (left, one), (right, other) = done.pop(), piece
            shard = left.shard if one.length >= other.length else right.shard
            piece = Range(left.tree, left.low, right.high, shard), join(one, other)
        done.append(piece)
    return done


Block: TypeAlias = dict[int, RangedTree]

_NO_TREES: Final[Block] = {}


class Trees(msgspec.Struct, frozen=True, eq=False):
    blocks: dict[int, Block] = msgspec.field(default_factory=dict)
    sizes: object = msgspec.field(default_factory=object)
    """The same object while no tree has another size, in powers of two: see `plan_cache`."""

    def tree(self, number: int) -> RangedTree:
        return self.blocks.get(number >> BLOCK_BITS, _NO_TREES).get(number, NOTHING)

    def items(self) -> Iterator[tuple[int, RangedTree]]:
        for block in self.blocks.values():
            yield from block.items()

    def changed(self, trees: Mapping[int, RangedTree], dropped: Iterable[int] = ()) -> Trees:
        blocks, sizes = self.blocks.copy(), self.sizes
        for number, tree in trees.items():
            at = number >> BLOCK_BITS
            block = blocks.get(at, _NO_TREES)
            old = block.get(number, NOTHING)
            if old.lows or tree.lows:
                before, after = len(old), len(tree)
            else:  # one range, as most have: every commit passes here
                before, after = old.roots[0].length, tree.roots[0].length
            if before ^ after > before & after:  # their highest bits differ
                sizes = object()
            blocks[at] = {**block, number: tree}
        for number in dropped:  # last: a dropped tree is never written again
            at = number >> BLOCK_BITS
            rest = {
                each: tree for each, tree in blocks.get(at, _NO_TREES).items() if each != number
            }
            if rest:
                blocks[at] = rest
            else:
                blocks.pop(at, None)
        return Trees(blocks, sizes)

    def __repr__(self) -> str:
        trees = dict(self.items())
        return f"{sum(map(len, trees.values()))} entries in {len(trees)} trees"


def laid_over(
    tree: int,
    bounds: tuple[Key, ...],
    roots: list[Tree],
    first: int,
    shards: int,
    last_change: Moment = NEVER,
) -> RangedTree:
    """Make a stored tree, and give its ranges to one shard after the other."""
    lows: list[Bound] = [None, *bounds]
    ranges = [
        Range(tree, low, high, (first + at) % shards)
        for at, (low, high) in enumerate(zip(lows, [*bounds, None], strict=True))
    ]
    return RangedTree(tuple(ranges), tuple(roots), bounds, last_change)


def roots_of_shard(trees: Trees, shard: int) -> Roots:
    """Return the ranges that a shard owns, with their roots."""
    return {
        each: root
        for _, tree in trees.items()
        for each, root in zip(tree.ranges, tree.roots, strict=False)
        if each.shard == shard
    }


def by_tree(roots: Mapping[Range, Tree]) -> dict[int, Roots]:
    trees: dict[int, Roots] = {}
    for each, root in roots.items():
        trees.setdefault(each.tree, {})[each] = root
    return trees
