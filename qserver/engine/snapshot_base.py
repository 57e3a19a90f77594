"""A base: a whole snapshot as bytes, with which a follower in another process begins.

    snapshot ─► numbered pages, children first ─► the record of a checkpoint
    a log in memory with both ─► recover ─► an equal snapshot

The pages of the snapshot keep their own numbers and their own store; those of the base count from
one. The walk holds one path of branches and no leaf, and every page may be evicted between two
steps. A branch that is loaded again has other objects as children, so the walk keeps the children
that it has begun with.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from qserver.durability.checkpoint import encode_checkpoint
from qserver.durability.pages import encode_page
from qserver.durability.port import StoredPage
from qserver.storage.page import Branch, Leaf, Tree, open_branch, read_leaf
from qserver.storage.snapshot import Snapshot


class SnapshotBase:
    """Take all `pages`, then the `record`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        """Held, so that no page is forgotten meanwhile."""
        self._roots: dict[int, list[int]] = {}
        self._last = 0

    def pages(self) -> Iterator[StoredPage]:
        """Yield all pages. The caller may pause between."""
        for number, tree in self.snapshot.trees.items():
            roots = self._roots[number] = []
            for root in tree.roots:
                roots.append((yield from self._pages(root)) if len(root) else 0)

    def _pages(self, page: Tree) -> Generator[StoredPage, None, int]:
        """Yield a page after those below it; return its number."""
        numbers: dict[Tree, int] = {}
        if isinstance(page, Branch):
            page = Branch(*open_branch(page), page.length, page.height)
            for child in page.children:
                numbers[child] = yield from self._pages(child)
        else:
            page = Leaf(*read_leaf(page), page.length)
        self._last += 1
        yield self._last, encode_page(page, self._last, numbers.__getitem__)
        return self._last

    def record(self) -> bytes:
        """Return everything that is not in the pages, as the record of a checkpoint."""
        return encode_checkpoint(self.snapshot, self._roots, self._last, self._last)

    def __repr__(self) -> str:
        return f"a base of version {self.snapshot.version}, {self._last} pages so far"
