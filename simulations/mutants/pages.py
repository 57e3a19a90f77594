"""Planted bugs in pages that come and go."""

from __future__ import annotations

from typing import Any, Final

from qserver.durability import page_store
from qserver.durability.page_store import LoggedPages
from qserver.engine import versions
from qserver.storage.page import BranchEntries, Tree
from simulations.mutants.mutant import Mutant
from simulations.mutants.shapes import Shape
from simulations.sizes import SMALL

COME_AND_GO: Final[Shape] = (
    ("sizes", SMALL),
    ("checkpoint_log_bytes", 300),
    ("probabilities", {"pages_let_go": 0.3, "message_slow": 0.1, "process_crash": 0.01}),
)
"""Checkpoints all the time, and hardly a page that stays."""


def _give_the_entries_of_another(original: Any) -> Any:
    last: dict[int, bytes] = {}

    def checked(page: Tree, data: bytes | None) -> bytes | BranchEntries:
        found: bytes | BranchEntries = original(page, data)
        if isinstance(found, bytes):
            if page.length in last and page.number % 3 == 0:
                return last[page.length]
            last[page.length] = found
        return found

    return checked


def _forget_in_spite_of_readers(original: Any) -> Any:
    return lambda self, after, before: False


def _renew_nothing(original: Any) -> Any:
    return lambda self, lease: None


MUTANTS: Final = (
    Mutant(
        "give_the_entries_of_another_page",
        "a page that is loaded sometimes gets the entries of another",
        ("registers", "bank", "list_append"),
        ((page_store, "_checked", _give_the_entries_of_another),),
        shape=COME_AND_GO,
    ),
    Mutant(
        "forget_in_spite_of_readers",
        "a page is forgotten that an open reader of an older snapshot still needs",
        ("range_sums", "sql_queue", "bank"),
        ((LoggedPages, "is_read_between", _forget_in_spite_of_readers),),
        shape=COME_AND_GO,
    ),
    Mutant(
        "renew_no_lease",
        "the newest snapshot keeps the lease of older ones, so nothing is ever forgotten",
        ("bank", "registers"),
        ((versions.Versions, "renew", _renew_nothing),),
        shape=COME_AND_GO,
    ),
)
