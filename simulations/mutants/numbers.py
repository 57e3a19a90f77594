"""What planted bugs do to the numbers of sequences."""

from __future__ import annotations

from typing import Any, Final

from qserver.engine import sequence_values, sequences
from qserver.storage.transaction import Transaction
from simulations.mutants.mutant import Mutant


def _reserve_in_memory_only(original: Any) -> Any:
    def reserve(work: Transaction, sequence: int, count: int) -> range:
        numbers: range = original(work, sequence, count)
        if numbers.start > 1:
            work.writes.clear()  # only the first block ever reaches the log
        return numbers

    return reserve


def _reserve_too_little(original: Any) -> Any:
    def reserve(work: Transaction, sequence: int, count: int) -> range:
        numbers: range = original(work, sequence, count)
        return range(numbers.start, numbers.stop + 1)

    return reserve


def _reserve_serial_in_memory_only(original: Any) -> Any:
    def reserve(transaction: Transaction, *arguments: Any) -> list[int]:
        values: list[int] = original(transaction, *arguments)
        if values[0] > 1:
            transaction.writes.clear()  # only the first block ever reaches the log
        return values

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
        ((sequence_values, "reserve", _reserve_serial_in_memory_only),),
    ),
)
