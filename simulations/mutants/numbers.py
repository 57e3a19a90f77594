"""What planted bugs do to the numbers of sequences."""

from __future__ import annotations

from typing import Any, Final

from qserver.engine import sequences
from qserver.engine.sequence_states import Reserved
from qserver.storage.transaction import Transaction
from simulations.mutants.mutant import Mutant


def _reserve_in_memory_only(original: Any) -> Any:
    def reserve(transaction: Transaction, *arguments: Any) -> Reserved:
        reserved: Reserved = original(transaction, *arguments)
        if reserved.before[1]:
            transaction.writes.clear()  # only the first block ever reaches the log
        return reserved

    return reserve


def _reserve_too_little(original: Any) -> Any:
    def reserve(transaction: Transaction, *arguments: Any) -> Reserved:
        reserved: Reserved = original(transaction, *arguments)
        last = reserved.runs[-1]
        runs = [*reserved.runs[:-1], range(last.start, last.stop + last.step, last.step)]
        return Reserved(reserved.sequence, reserved.before, runs)

    return reserve


MUTANTS: Final = (
    Mutant(
        "reserve_in_memory_only",
        "a sequence's later blocks are not logged, so a crash gives them out again",
        ("numbers",),
        ((sequences, "reserve", _reserve_in_memory_only),),
    ),
    Mutant(
        "reserve_too_little",
        "a block of numbers is one longer than what was reserved",
        ("numbers",),
        ((sequences, "reserve", _reserve_too_little),),
    ),
    Mutant(
        "reserve_serial_in_memory_only",
        "later blocks of a SERIAL column are not logged, so a crash gives them out again",
        ("sql_bank",),
        ((sequences, "reserve", _reserve_in_memory_only),),
    ),
)
