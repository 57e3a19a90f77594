"""Planted bugs in what a branch borrows: pages of its parent's past, while somebody reads them.

Nothing but the lease of such a reader keeps them, once the parent has no history of then. They are
hunted in families of branches with a long past, see `shapes.TRIMMED_UNDER_BRANCHES`.
"""

from __future__ import annotations

from typing import Final

from qserver.durability.open_logs import OpenLogs
from qserver.durability.page_store import LoggedPages
from qserver.durability.saved_pages import SavedPages
from qserver.engine.history import History
from simulations.mutants.branches import FAMILY
from simulations.mutants.mutant import Mutant, edited
from simulations.mutants.shapes import TRIMMED_UNDER_BRANCHES

BORROWED_MUTANTS: Final = (
    Mutant(
        "ask_branches_about_no_version",
        "a page is forgotten though somebody may load it who reads a branch, and nobody else",
        FAMILY,
        (
            edited(
                LoggedPages.is_read_between,
                "borrowed.are_between(\n        after, before\n    )",
                "borrowed.are_between(\n        before, after\n    )",
            ),
        ),
        TRIMMED_UNDER_BRANCHES,
    ),
    Mutant(
        "open_without_borrowers",
        "a parent that is opened again does not know who has borrowed from it meanwhile",
        FAMILY,
        (
            edited(
                OpenLogs._acquire,
                "    return entry\n",
                "    if may_make and entry.own is not None:\n"
                "        entry.own.borrowed.clear()\n"
                "    return entry\n",
            ),
        ),
        TRIMMED_UNDER_BRANCHES,
    ),
    Mutant(
        "forget_at_once_what_was_dead",
        "a parent that is opened again forgets what had died before, whoever reads it",
        FAMILY,
        (edited(SavedPages.restore, "Dead(-1, before", "Dead(before, before"),),
        TRIMMED_UNDER_BRANCHES,
    ),
    Mutant(
        "give_back_what_others_have_borrowed",
        "a branch that is closed, not deleted, gives back what readers of others borrowed",
        FAMILY,
        (
            edited(
                LoggedPages.close,
                "self._log = ClosedLog(",
                "for parent in filter(None, [getattr(self._log, 'parent', None)]):\n"
                "        parent.borrowed.clear()\n"
                "    self._log = ClosedLog(",
            ),
        ),
        TRIMMED_UNDER_BRANCHES,
    ),
    Mutant(
        "borrow_from_the_parent_alone",
        "a branch of a branch borrows from its parent what is in the file of that one's parent",
        FAMILY,
        (
            edited(
                History._begin,
                "segment.log.borrowed.add(lease)",
                "self._log.parent.borrowed.add(lease)",
            ),
        ),
        TRIMMED_UNDER_BRANCHES,
    ),
)
