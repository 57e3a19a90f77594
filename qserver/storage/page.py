"""Pages of trees: a page stays the same object while its entries are loaded and evicted.

    Leaf     keys        values        a saved page has a number in a store; its entries may then be
    Branch   separators  children      evicted, and are loaded again on demand

Length, height and number stay with a page whose entries are evicted. So trees can be counted,
compared and cut at any height without reading what is below. A branch that is loaded again has new
objects as children, for the same pages: two pages are the same if they are one object or have one
number.

A loaded leaf is *packed*: one string of bytes, as it is stored. That takes a fifth of the memory,
and loads and evicts quickly. `find` finds one row in it, and a scan unpacks it without keeping the
result (`read_leaf`). Leaves that are read often stay unpacked.

    gone ──load──► packed ──unpack──► keys, values
      ◄───────────── evict ───────────────┘

`keys`, `values`, `separators` and `children` load the entries if they are gone. Code that runs for
each row reads the slots themselves, which are None then, and calls a function from below. Entries
are loaded and evicted in one thread, that of the event loop; other threads may read the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, final

import msgspec

from qserver.values.encoding import encode_columns

if TYPE_CHECKING:
    from qserver.values.vector_families import ColumnVector
    from qserver.values.vectors import Vector

Key: TypeAlias = tuple[Any, ...]
Value: TypeAlias = tuple[Any, ...]
LeafEntries: TypeAlias = tuple[list[Key], list[Value]]
BranchEntries: TypeAlias = "tuple[list[Key], list[Tree]]"
Frontiers: TypeAlias = "tuple[list[Tree], list[Tree]]"
DropShared: TypeAlias = Callable[["list[Tree]", "list[Tree]"], Frontiers]
"""Drops pages of one height, of two trees, that hold the same entries on both sides."""

LOADED_AT_ONCE: Final = 32
"""Pages that are compared by what is stored, and read together."""


class PageStore(Protocol):
    """Where the entries of saved pages are."""

    def load(self, pages: Sequence[Tree]) -> None:
        """Load the entries of all these pages with one read; leaves stay packed.

        Raises DataCorrupted if a page is missing or not what was saved, LogFailed if the disk
        fails. Then the pages are as they were.
        """

    def find(self, leaf: Leaf, key: Key) -> Value | None:
        """Return the value at a key of a leaf that is gone or packed; load it if necessary."""

    def read(self, leaf: Leaf) -> LeafEntries:
        """Return the entries of a leaf that is gone or packed, without keeping them."""

    def read_stored(self, leaf: Leaf) -> tuple[list[Value], bool]:
        """Return the values of such a leaf, and whether they are stored ones: to read few columns
        of those is cheaper."""

    def unpack(self, leaf: Leaf) -> LeafEntries:
        """Return the entries of a leaf that is gone or packed, and keep them unpacked."""

    def contents(self, leaf: Leaf) -> bytes:
        """Return what is stored of a leaf that is gone or packed; equal bytes are equal entries."""

    def load_columns(
        self, pages: Sequence[Branch], columns: Sequence[ColumnVector]
    ) -> dict[tuple[int, ColumnVector], Vector | None]:
        """Return those columns of pages that are saved, each with the number of its page.

        Fails never: what cannot be read is not saved.
        """

    def note_filled(self, page: Branch) -> None:
        """Note that a page has vectors that might be saved."""

    def note_copied(self, leaf: Leaf) -> None:
        """Count the entries of a saved leaf that a new leaf shares, which pins them."""


# Pages hold no cycles of their own, so the cyclic collector need not track them.


@final
class Leaf(msgspec.Struct, eq=False, gc=False):
    """Up to PAGE_ENTRIES_MAX entries, in order."""

    keys_here: list[Key] | None
    values_here: list[Value] | None
    length: int
    number: int = 0
    """Its number in the store; 0: it is not saved, and keeps its entries."""
    store: PageStore | None = None
    touched: bool = False
    """Whether it was read since the cache looked last."""
    packed: bytes | None = None
    """Its entries as they are stored, if they are here and not unpacked."""
    looks: int = 0
    """How often it was read packed since the cache looked last."""
    height: ClassVar[int] = 0

    @property
    def keys(self) -> list[Key]:
        return open_leaf(self)[0]

    @property
    def values(self) -> list[Value]:
        return open_leaf(self)[1]

    @property
    def is_here(self) -> bool:
        return self.keys_here is not None or self.packed is not None

    def evict(self) -> None:
        assert self.number, "what is not saved stays"
        self.keys_here = self.values_here = self.packed = None
        self.looks = 0

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"a leaf of {self.length} entries"


@final
class Branch(msgspec.Struct, eq=False, gc=False):
    """Up to PAGE_ENTRIES_MAX pages of one height; `separators` is one shorter than `children`."""

    separators_here: list[Key] | None
    children_here: list[Tree] | None
    length: int
    height: int
    number: int = 0
    store: PageStore | None = None
    touched: bool = False
    columns: dict[Any, Any] | None = None
    """Vectors of its columns, computed when first wanted; see `columns`. No part of its value."""

    @property
    def separators(self) -> list[Key]:
        return open_branch(self)[0]

    @property
    def children(self) -> list[Tree]:
        return open_branch(self)[1]

    @property
    def is_here(self) -> bool:
        return self.children_here is not None

    def evict(self) -> None:
        assert self.number, "what is not saved stays"
        self.separators_here = self.children_here = self.columns = None

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"a branch of height {self.height} over {self.length} entries"


Tree: TypeAlias = Leaf | Branch

EMPTY: Final = Leaf([], [], 0)


def open_leaf(leaf: Leaf) -> LeafEntries:
    """Return keys and values, loaded and unpacked if necessary. Read, never change."""
    keys, values = leaf.keys_here, leaf.values_here
    if keys is None or values is None:
        leaf.touched = True
        return _store_of(leaf).unpack(leaf)
    return keys, values


def read_leaf(leaf: Leaf) -> LeafEntries:
    """Return the same for a scan; the leaf may stay packed."""
    keys, values = leaf.keys_here, leaf.values_here
    if keys is None or values is None:
        return _store_of(leaf).read(leaf)
    return keys, values


def read_stored(leaf: Leaf) -> tuple[list[Value], bool]:
    """Return the values for a scan of few columns, and whether `restored` has to read them."""
    values = leaf.values_here
    return _store_of(leaf).read_stored(leaf) if values is None else (values, False)


def find(leaf: Leaf, key: Key) -> Value | None:
    """Return the value at a key of a leaf that is gone or packed."""
    return _store_of(leaf).find(leaf, key)


def open_branch(branch: Branch) -> BranchEntries:
    """Return separators and children, loaded if necessary. Read, never change."""
    separators, children = branch.separators_here, branch.children_here
    if separators is None or children is None:
        _store_of(branch).load([branch])
        separators, children = branch.separators_here, branch.children_here
        assert separators is not None and children is not None
    return separators, children


def load_ahead(pages: Sequence[Tree]) -> None:
    """Load those of the pages that are gone, with one read; all have one store."""
    gone = [page for page in pages if not page.is_here]
    if gone:
        store = gone[0].store
        assert store is not None
        store.load(gone)


def _store_of(page: Tree) -> PageStore:
    store = page.store
    assert store is not None, "only what is saved is let go"
    return store


def same_page(page: Tree) -> int:
    """Return an identity shared by all objects of one page, and by no other page of a database."""
    return page.number or -id(page)


def without_shared(
    before: list[Tree], after: list[Tree], identity: Callable[[Any], Hashable] = same_page
) -> Frontiers:
    """Return pages of two trees without those that both have."""
    ours, theirs = list(map(identity, before)), list(map(identity, after))
    shared = set(ours) & set(theirs)
    if not shared:
        return before, after
    return (
        list(compress(before, [each not in shared for each in ours])),
        list(compress(after, [each not in shared for each in theirs])),
    )


def without_alike(last: float) -> DropShared:
    """Return what drops pages of two databases, which have those up to this number in common.

    Leaves with the same lists or the same bytes are dropped, too: a branch may begin with rows that
    no page of its parent had, and both save them.
    """

    def identity(page: Tree) -> Hashable:
        if 0 < page.number <= last:
            return page.number
        return -id(page if type(page) is Branch or page.keys_here is None else page.values_here)

    def drop(before: list[Tree], after: list[Tree]) -> Frontiers:
        before, after = without_shared(before, after, identity)
        if before and after and not before[0].height:
            for pages in (before, after):
                for start in range(0, len(pages), LOADED_AT_ONCE):
                    load_ahead(pages[start : start + LOADED_AT_ONCE])
            return without_shared(before, after, _contents)
        return before, after

    return drop


def _contents(leaf: Leaf) -> bytes:
    if leaf.keys_here is None or leaf.values_here is None:
        return _store_of(leaf).contents(leaf)
    return encode_columns(leaf.keys_here, leaf.values_here)
