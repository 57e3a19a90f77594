"""A persistent B+tree: an ordered map as an immutable value.

    Branch  separators [ 40 | 90 ]          a key goes to the child left of the first
            children   [  •    •    •  ]    separator that is greater than it
                         /     |     \\
    Leaf          keys 1..39  40..89  90..    values beside the keys, in two parallel lists

A tree *is* its root page. Pages never change: a batch of changes copies each page that it touches
once, from the leaf up to the root, and shares all the others with the old tree. So a root stays
readable for ever, and one `is` shows that two trees are equal below a shared page. Conflict tests
rely on that: `difference` visits only pages that the trees do not share.

Invariants, checked by `check_pages` in the tests: keys ascend strictly; every leaf is equally deep;
no page but an empty root is empty or holds more than PAGE_ENTRIES_MAX entries; a branch's length is
the number of entries below it.

Pages hold lists, not tuples: `bisect` and `insert` are quickest on lists, and pages are private to
this file, so reading this file shows that they stay immutable. A new page shares even the lists
that it did not change: the keys of a leaf in which values were replaced, the separators of a branch
none of whose children was split, joined or removed.

Not done: balancing to half-full pages as textbooks do. A page that shrinks below PAGE_ENTRIES_MIN
is joined with a neighbour if both fit in one page, and otherwise stays; a page that overflows at
its right end is cut into pages of PAGE_ENTRIES_BUILT, so that ascending keys give dense pages with
room for a few more.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress
from operator import is_not
from typing import Any, Final, TypeAlias

from qserver.limits import PAGE_ENTRIES_BUILT, PAGE_ENTRIES_MAX, PAGE_ENTRIES_MIN
from qserver.storage.page import (
    EMPTY,
    Branch,
    DropShared,
    Key,
    Leaf,
    Tree,
    Value,
    find,
    load_ahead,
    open_branch,
    open_leaf,
    read_leaf,
    without_shared,
)
from qserver.values.keys import Bound

EntryChange: TypeAlias = tuple[Key, Value | None, Value | None]

LEAVES_OF_RUN: Final = 32
"""Leaves whose values form one run of `value_runs`."""

UNREAD_COSTS: Final = 4
"""A leaf that is gone or packed counts as so many in a run: 8 of them take a third of a millisecond
to load and unpack. A read for 8 costs each half as much as a read for one, and little more than a
read for 32."""


def get(tree: Tree, key: Key) -> Value | None:
    page = tree
    while type(page) is Branch:
        separators, children = page.separators_here, page.children_here
        if separators is None or children is None:
            separators, children = open_branch(page)
        page = children[bisect_right(separators, key)]
    keys = page.keys_here
    if keys is None:
        return find(page, key)
    page.touched = True
    position = bisect_left(keys, key)
    if position < len(keys) and keys[position] == key:
        return page.values_here[position]  # type: ignore[index]  # they are there with the keys
    return None


def pages(
    tree: Tree, low: Bound = None, high: Bound = None
) -> Iterator[tuple[list[Key], list[Value]]]:
    """Yield the entries with low <= key < high, a page at a time, ascending. Read, never change."""
    if type(tree) is Leaf:
        keys, values = _entries_between(tree, low, high)
        if keys:
            yield keys, values
    elif tree.height > 1:
        for child in _children_between(tree, low, high):
            yield from pages(child, low, high)
    else:
        for run in leaf_runs(_children_between(tree, low, high), 1):
            for leaf in run:
                keys, values = _entries_between(leaf, low, high)
                if keys:
                    yield keys, values


def pages_backward(
    tree: Tree, low: Bound = None, high: Bound = None
) -> Iterator[tuple[list[Key], list[Value]]]:
    """Yield the same entries as `pages`, descending."""
    if type(tree) is Leaf:
        keys, values = _entries_between(tree, low, high)
        if keys:
            yield keys[::-1], values[::-1]
    elif tree.height > 1:
        for child in reversed(_children_between(tree, low, high)):
            yield from pages_backward(child, low, high)
    else:
        for run in leaf_runs(_children_between(tree, low, high)[::-1], 1):
            for leaf in run:
                keys, values = _entries_between(leaf, low, high)
                if keys:
                    yield keys[::-1], values[::-1]


def value_runs(tree: Tree, low: Bound = None, high: Bound = None) -> Iterator[list[Value]]:
    """Yield the values of the same entries as `pages`, those of many leaves at once.

    A caller that consumes lists at C speed pays per list, so they are long. Only the first list of
    a branch has a single leaf: it may be all that is wanted.
    """
    if type(tree) is Leaf:
        _, values = _entries_between(tree, low, high)
        if values:
            yield values
    elif tree.height > 1:
        for child in _children_between(tree, low, high):
            yield from value_runs(child, low, high)
    else:
        for leaves in leaf_runs(_children_between(tree, low, high), 1):
            run: list[Value] = []
            for leaf in leaves:
                run += _entries_between(leaf, low, high)[1]
            if run:
                yield run


def leaf_runs(leaves: list[Any], first: int | None = None) -> Iterator[list[Leaf]]:
    """Yield leaves in order, many at once; the first of them may be enough.

    Those of a run that are gone are loaded with one read, and few of it have to be unpacked.
    """
    run: list[Leaf] = []
    cost, most = 0, first or LEAVES_OF_RUN
    for leaf in leaves:
        run.append(leaf)
        cost += UNREAD_COSTS if leaf.keys_here is None else 1
        if cost >= most:
            if cost > len(run):
                load_ahead(run)
            yield run
            run, cost, most = [], 0, LEAVES_OF_RUN
    if run:
        load_ahead(run)
        yield run


def entries_at(tree: Tree, keys: list[Key]) -> dict[Key, Value]:
    """Return the entries at those of the ascending keys that exist; opens each page once."""
    found: dict[Key, Value] = {}
    for leaf, start, stop in _leaves_at(tree, keys):
        _add_entries_at(leaf, keys[start:stop], found)
    return found


def load_at(tree: Tree, keys: list[Key]) -> Iterator[None]:
    """Unpack the leaves where the ascending keys belong, for a change. Yields between runs."""
    cost = 0
    for leaf, _, _ in _leaves_at(tree, keys):
        cost += UNREAD_COSTS if leaf.keys_here is None else 1
        open_leaf(leaf)
        if cost >= LEAVES_OF_RUN:
            yield
            cost = 0


def _leaves_at(tree: Tree, keys: list[Key]) -> Iterator[tuple[Leaf, int, int]]:
    """Yield the leaves where the ascending keys belong, each with its keys' positions; loaded."""
    pending = [(tree, 0, len(keys))]
    while pending:
        page, start, stop = pending.pop()
        if type(page) is Leaf:
            yield page, start, stop
            continue
        assert type(page) is Branch
        separators, children = open_branch(page)
        below: list[tuple[Tree, int, int]] = []
        while start < stop:
            at = bisect_right(separators, keys[start])
            end = stop
            if at < len(separators):
                end = bisect_left(keys, separators[at], start, stop)
            below.append((children[at], start, end))
            start = end
        if page.height > 1:
            pending += below
            continue
        places = iter(below)
        for run in leaf_runs([child for child, _, _ in below]):
            for leaf in run:
                _, start, stop = next(places)
                yield leaf, start, stop


def _add_entries_at(leaf: Leaf, keys: list[Key], found: dict[Key, Value]) -> None:
    if len(keys) == 1:
        value = get(leaf, keys[0])
        if value is not None:
            found[keys[0]] = value
        return
    here, values = read_leaf(leaf)
    if not keys or not here or keys[0] > here[-1] or keys[-1] < here[0]:
        return
    entries = dict(zip(here, values, strict=True))
    for key in entries.keys() & keys:
        found[key] = entries[key]


def first_entries(tree: Tree, low: Bound, high: Bound, most: int) -> tuple[list[Key], list[Value]]:
    """Return the first entries with low <= key < high, at most `most`."""
    key = () if low is None else low
    page = tree
    while type(page) is Branch:
        separators, children = open_branch(page)
        page = children[bisect_right(separators, key)]
    page.touched = True
    keys, values = read_leaf(page)
    start = bisect_left(keys, key)
    stop = start + most
    if stop <= len(keys):  # most often they lie in one leaf
        if high is not None:
            stop = bisect_left(keys, high, start, stop)
        return keys[start:stop], values[start:stop]
    return _first_of(pages(tree, low, high), most)


def last_entries(tree: Tree, low: Bound, high: Bound, most: int) -> tuple[list[Key], list[Value]]:
    """Return the last entries with low <= key < high, at most `most`, descending."""
    return _first_of(pages_backward(tree, low, high), most)


def _first_of(
    stream: Iterator[tuple[list[Key], list[Value]]], most: int
) -> tuple[list[Key], list[Value]]:
    keys: list[Key] = []
    values: list[Value] = []
    for page_keys, page_values in stream:
        keys += page_keys[: most - len(keys)]
        values += page_values[: most - len(values)]
        if len(keys) >= most:
            break
    return keys, values


def count_between(tree: Tree, low: Bound, high: Bound) -> int:
    """Return the number of entries with low <= key < high; opens only the pages at its ends."""
    if low is None and high is None:
        return tree.length
    if type(tree) is Leaf:
        return len(_entries_between(tree, low, high)[0])
    children = _children_between(tree, low, high)
    if len(children) < 2:
        return sum([count_between(child, low, high) for child in children])
    first, *inner, last = children
    ends = count_between(first, low, None) + count_between(last, None, high)
    return ends + sum([child.length for child in inner])


def key_at(tree: Tree, position: int) -> Key:
    """Return the key that `position` other keys are smaller than."""
    page = tree
    while type(page) is Branch:
        for child in page.children:
            if position < child.length:
                page = child
                break
            position -= child.length
    return page.keys[position]


def cut_keys(tree: Tree, most: int) -> list[Key]:
    """Return the keys that cut a tree into even pieces of at most `most` entries."""
    pieces = -(-tree.length // most)
    return [key_at(tree, tree.length * piece // pieces) for piece in range(1, pieces)]


def split(tree: Tree, key: Key) -> tuple[Tree, Tree]:
    """Return the entries below a key, and the others; cuts one page of each height."""
    left, right = _halves(tree, key)
    return _root_over(left), _root_over(right)


def join(one: Tree, other: Tree) -> Tree:
    """Return all entries of two trees; the keys of the other are greater."""
    for keys, values in pages(other):
        one = apply(one, keys, values)
    return one


def apply(tree: Tree, keys: list[Key], values: Sequence[Value | None]) -> Tree:
    """Return the tree with a batch of changes made: ascending distinct keys, None deletes."""
    if type(tree) is Leaf:
        return _root_over(_changed_leaf(tree, keys, values, 0, len(keys)))
    return _root_over(_changed_branch(tree, keys, values, 0, len(keys)))


def children_of(page: Tree) -> list[Tree]:
    """Return the pages right below a page; a leaf has none. Read, never change."""
    return page.children if type(page) is Branch else []


def branch_of(separators: list[Key], children: list[Tree]) -> Branch:
    """Make a branch over pages of one height."""
    assert len(separators) + 1 == len(children) <= PAGE_ENTRIES_MAX
    assert all(child.height == children[0].height for child in children)
    return Branch(separators, children, _length_of(children), children[0].height + 1)


def difference(
    old: Tree,
    new: Tree,
    low: Bound = None,
    high: Bound = None,
    drop_shared: DropShared = without_shared,
) -> Iterator[EntryChange]:
    """Yield keys in low <= key < high whose entry is not the same object, with both values.

    Keys ascend. Both trees are opened level by level. Pages of one height in both frontiers hold
    the same entries on both sides, so they are dropped from both; the remaining leaves hold all
    that can differ.
    """
    before, after = [old], [new]
    while True:
        height_before = before[0].height if before else -1
        height_after = after[0].height if after else -1
        if height_before == height_after:
            if len(before) == len(after):  # most often nothing was split: compare in place
                changed = list(map(is_not, before, after))
                before = list(compress(before, changed))
                after = list(compress(after, changed))
            before, after = drop_shared(before, after)
        if not before and not after:
            break
        if height_before <= 0 and height_after <= 0:
            break
        if height_before >= height_after:
            before = _opened(before, low, high)
        if height_after >= height_before:
            after = _opened(after, low, high)
    was = _entries_of(before, low, high)
    now = _entries_of(after, low, high)
    changed_keys = [key for key, value in now.items() if was.get(key) is not value]
    changed_keys += [key for key in was if key not in now]
    for key in sorted(changed_keys):
        yield key, was.get(key), now.get(key)


def cuts(tree: Tree, low: Bound = None, high: Bound = None) -> Iterator[Key]:
    """Yield ascending keys in low < key < high that cut a tree into a few thousand entries each."""
    if tree.height < 2:
        return
    assert isinstance(tree, Branch)
    separators, children = open_branch(tree)
    first = 0 if low is None else bisect_right(separators, low)
    last = len(separators) if high is None else bisect_left(separators, high)
    for at in range(first, last + 1):
        yield from cuts(children[at], low, high)
        if at < last:
            yield separators[at]


def _children_between(branch: Branch, low: Bound, high: Bound) -> list[Tree]:
    separators, children = open_branch(branch)
    if low is None and high is None:
        return children
    first = 0 if low is None else bisect_right(separators, low)
    last = len(separators) if high is None else bisect_left(separators, high)
    return children[first : last + 1]


def _entries_between(leaf: Leaf, low: Bound, high: Bound) -> tuple[list[Key], list[Value]]:
    keys, values = read_leaf(leaf)
    first = 0 if low is None else bisect_left(keys, low)
    last = len(keys) if high is None else bisect_left(keys, high)
    if first == 0 and last == len(keys):
        return keys, values
    return keys[first:last], values[first:last]


def _opened(frontier: list[Tree], low: Bound, high: Bound) -> list[Tree]:
    opened: list[Tree] = []
    for page in frontier:
        assert isinstance(page, Branch), "a frontier holds pages of one height"
        opened.extend(_children_between(page, low, high))
    return opened


def _entries_of(frontier: list[Tree], low: Bound, high: Bound) -> dict[Key, Value]:
    entries: dict[Key, Value] = {}
    for page in frontier:
        assert isinstance(page, Leaf), "only leaves remain when both frontiers are opened"
        entries.update(zip(*_entries_between(page, low, high), strict=True))
    return entries


def _changed_leaf(
    leaf: Leaf, keys: list[Key], values: Sequence[Value | None], start: int, stop: int
) -> list[Tree]:
    """Return the leaves that replace `leaf` after changes start..stop."""
    old_keys, old_values = leaf.keys_here, leaf.values_here
    if old_keys is None or old_values is None:
        old_keys, old_values = open_leaf(leaf)
    if leaf.store is not None:
        leaf.store.note_copied(leaf)
    if stop - start > len(old_keys):
        new_keys, new_values = _merged(leaf, keys[start:stop], values[start:stop])
    else:
        new_keys, new_values = old_keys, old_values.copy()
        for at in range(start, stop):
            key, value = keys[at], values[at]
            position = bisect_left(new_keys, key)
            found = position < len(new_keys) and new_keys[position] == key
            if found and value is not None:
                new_values[position] = value
                continue
            if new_keys is old_keys:
                new_keys = old_keys.copy()
            if value is not None:
                new_keys.insert(position, key)
                new_values.insert(position, value)
            elif found:
                del new_keys[position], new_values[position]
    size = len(new_keys)
    if size <= PAGE_ENTRIES_MAX:
        return [Leaf(new_keys, new_values, size)] if size else []
    at_the_end = not old_keys or keys[start] > old_keys[-1]
    return _leaves(new_keys, new_values, _cuts(size, at_the_end))


def _merged(
    leaf: Leaf, keys: list[Key], values: Sequence[Value | None]
) -> tuple[list[Key], list[Value]]:
    """Make the same changes by sorting, which is quicker when they outnumber the entries."""
    old_keys, old_values = open_leaf(leaf)
    if (not old_keys or keys[0] > old_keys[-1]) and all(values):  # all come behind the last
        return old_keys + keys, [*old_values, *values]  # type: ignore[list-item]
    entries: dict[Key, Any] = dict(zip(old_keys, old_values, strict=True))
    entries.update(zip(keys, values, strict=True))
    new_keys = sorted([key for key, value in entries.items() if value is not None])
    return new_keys, [entries[key] for key in new_keys]


def _changed_branch(
    branch: Branch, keys: list[Key], values: Sequence[Value | None], start: int, stop: int
) -> list[Tree]:
    """Return the branches that replace `branch` after changes start..stop."""
    old_separators, old_children = branch.separators_here, branch.children_here
    if old_separators is None or old_children is None:
        old_separators, old_children = open_branch(branch)
    children, separators = old_children.copy(), old_separators
    length = branch.length
    at_the_end, small = True, False
    while stop > start:  # from the right, so positions stay valid
        at = bisect_right(old_separators, keys[stop - 1])
        first = start
        if stop - start > 1 and at > 0 and keys[start] < (low := old_separators[at - 1]):
            first = stop - 1
            while keys[first - 1] >= low:
                first -= 1
        page = old_children[at]
        if type(page) is Leaf:
            replaced = _changed_leaf(page, keys, values, first, stop)
        else:
            replaced = _changed_branch(page, keys, values, first, stop)
        stop = first
        if len(replaced) == 1:
            children[at] = made = replaced[0]
            growth = made.length - page.length
            if growth < 0 and _entries(made) < PAGE_ENTRIES_MIN:
                small = True
        else:
            children[at : at + 1] = replaced
            growth = _length_of(replaced) - page.length
            at_the_end = at_the_end and at == len(old_separators)
            separators = separators.copy()
            if replaced:
                separators[at:at] = map(_first_key, replaced[1:])
            elif separators:
                del separators[max(at - 1, 0)]
        length += growth
    if small:
        children, separators = _small_joined(children, separators)
    if len(children) <= PAGE_ENTRIES_MAX:
        return [Branch(separators, children, length, branch.height)] if children else []
    return _branches(separators, children, _cuts(len(children), at_the_end))


def _halves(page: Tree, key: Key) -> tuple[list[Tree], list[Tree]]:
    """Return the parts of a page left and right of a key, each at most one page of its height."""
    if type(page) is Leaf:
        keys, values = open_leaf(page)
        at = bisect_left(keys, key)
        left, right = _leaves(keys, values, [(0, at)]), _leaves(keys, values, [(at, len(keys))])
        return left[: at > 0], right[: at < len(keys)]
    assert type(page) is Branch
    between, children = open_branch(page)
    at = bisect_right(between, key)
    left, right = _halves(children[at], key)
    left, right = children[:at] + left, right + children[at + 1 :]
    lefts = _branches(between[: len(left) - 1], left, [(0, len(left))]) if left else []
    first = len(between) + 1 - len(right)
    rights = _branches(between[first:], right, [(0, len(right))]) if right else []
    return lefts, rights


def _small_joined(children: list[Tree], separators: list[Key]) -> tuple[list[Tree], list[Key]]:
    """Join each small page with its left neighbour if both fit in one page."""
    children, separators = children.copy(), separators.copy()
    for right in range(len(children) - 1, 0, -1):
        one, other = children[right - 1], children[right]
        sizes = _entries(one), _entries(other)
        if min(sizes) < PAGE_ENTRIES_MIN and sum(sizes) <= PAGE_ENTRIES_MAX:
            separator = separators.pop(right - 1)
            children[right - 1 : right + 1] = [_joined(one, other, separator)]
    return children, separators


def _joined(one: Tree, other: Tree, separator: Key) -> Tree:
    length = one.length + other.length
    if type(one) is Leaf:
        assert type(other) is Leaf
        return Leaf(one.keys + other.keys, one.values + other.values, length)
    assert type(other) is Branch
    separators = [*one.separators, separator, *other.separators]
    return Branch(separators, one.children + other.children, length, one.height)


def _leaves(keys: list[Key], values: list[Value], cuts: list[tuple[int, int]]) -> list[Tree]:
    return [Leaf(keys[first:last], values[first:last], last - first) for first, last in cuts]


def _branches(
    separators: list[Key], children: list[Tree], cuts: list[tuple[int, int]]
) -> list[Tree]:
    height = children[0].height + 1
    groups = [(separators[first : last - 1], children[first:last]) for first, last in cuts]
    return [Branch(between, group, _length_of(group), height) for between, group in groups]


def _entries(page: Tree) -> int:
    return page.length if type(page) is Leaf else len(page.children)


def _length_of(level: list[Tree]) -> int:
    return sum([page.length for page in level])


def _first_key(page: Tree) -> Key:
    while isinstance(page, Branch):
        page = page.children[0]
    return page.keys[0]


def _cuts(size: int, at_the_end: bool) -> list[tuple[int, int]]:
    """Return where to cut `size` entries into pages: dense ones and a rest, or evenly."""
    if at_the_end:
        step = PAGE_ENTRIES_BUILT
        return [(first, min(first + step, size)) for first in range(0, size, step)]
    parts = -(-size // PAGE_ENTRIES_MAX)
    return [(size * part // parts, size * (part + 1) // parts) for part in range(parts)]


def _root_over(level: list[Tree]) -> Tree:
    """Return one root over pages of one height."""
    if not level:
        return EMPTY
    while len(level) > 1:
        separators = list(map(_first_key, level[1:]))
        level = _branches(separators, level, _cuts(len(level), at_the_end=False))
    root = level[0]
    while isinstance(root, Branch) and len(root.children) == 1:
        root = root.children[0]
    return root
