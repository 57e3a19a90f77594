"""Compares what PostgreSQL and qserver made of one statement.

Rows are compared as a multiset, and in their order as far as ORDER BY decides it: the columns that
it names must come in the same sequence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from tests.differential.engines import TIMED_OUT, Outcome

CREATES_VIEW: Final = re.compile(r"CREATE (?:OR REPLACE )?VIEW (\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Step:
    """One statement of a program. `ordered_by` are the columns whose order is decided.

    `strict`: it does one thing, so there is no order of evaluation, and an error is the error.
    `views`: the texts of the views that it reads.
    """

    sql: str
    ordered_by: tuple[int, ...] = ()
    strict: bool = False
    views: str = ""

    def after(self, steps: Iterable[Step]) -> Step:
        """Return the step with its views, which are among the steps before it."""
        views = ""
        for step in reversed(list(steps)):
            made = CREATES_VIEW.match(step.sql)
            if made is not None and re.search(rf"\b{made[1]}\b", self.sql + views):
                views += f" {step.sql}"
        return replace(self, views=views)


@dataclass(frozen=True, slots=True)
class Difference:
    """How two outcomes differ. `sort` stays the same while a program is shrunk."""

    step: Step
    expected: Outcome
    found: Outcome
    sort: str

    def __str__(self) -> str:
        return (
            f"{self.sort}\n{self.step.sql}\n"
            f"--- PostgreSQL\n{self.expected}\n--- qserver\n{self.found}"
        )


def difference(step: Step, expected: Outcome, found: Outcome) -> Difference | None:
    sort = _sort(step, expected, found)
    return None if sort is None else Difference(step, expected, found, sort)


def first_difference(step: Step, expected: Outcome, found: list[Outcome]) -> Difference | None:
    """Compare all runs of a statement."""
    for each in found:
        differs = difference(step, expected, each)
        if differs is not None:
            return differs
    return None


def same_rows(
    one: tuple[tuple[str | None, ...], ...],
    other: tuple[tuple[str | None, ...], ...],
    ordered_by: tuple[int, ...] = (),
) -> bool:
    if one == other:
        return True
    if Counter(one) != Counter(other):
        return False
    return _decided(one, ordered_by) == _decided(other, ordered_by)


def _sort(step: Step, expected: Outcome, found: Outcome) -> str | None:
    if TIMED_OUT in (expected.error, found.error):
        return None if expected.error == found.error else f"time: {expected.error} {found.error}"
    if expected.error != found.error:
        return f"error: {expected.error} {found.error}"
    if expected.error is not None:
        return None
    if expected.affected is not None and expected.affected != found.affected:
        return "affected rows"
    if expected.columns != found.columns:
        return "column names"
    if expected.types != found.types:
        return "types"
    if not same_rows(expected.rows, found.rows, step.ordered_by):
        return "rows"
    return None


def _decided(
    rows: tuple[tuple[str | None, ...], ...], ordered_by: tuple[int, ...]
) -> list[tuple[str | None, ...]]:
    return [tuple(row[at] for at in ordered_by) for row in rows]
