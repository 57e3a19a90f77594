"""Reads the tables of templates, and finds those that make a wanted kind."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Final

from tests.differential.aggregate_templates import AGGREGATES, NEIGHBOURS, RANKS, TABLE_FUNCTIONS
from tests.differential.kinds import GROUPS
from tests.differential.quoted_templates import QUOTED
from tests.differential.scalar_templates import SCALARS

HOLE: Final = re.compile(r"\{(=?[A-Za-z0-9]+(?:\[\])?[!.]?)\}")
TABLES: Final[Mapping[str, str]] = {
    "scalar": SCALARS + QUOTED,
    "aggregate": AGGREGATES,
    "rank": RANKS,
    "neighbour": NEIGHBOURS,
    "table": TABLE_FUNCTIONS,
}


@dataclass(frozen=True, slots=True)
class Template:
    """One line of a table. `result` is a kind, or a group's letter, perhaps with `[]`."""

    result: str
    text: str
    rare: bool

    @property
    def name(self) -> str:
        return f"{self.result}: {self.text}"

    def binding(self, kind: str) -> dict[str, str] | None:
        """What the letter of the result stands for if it is to be `kind`; None if it cannot."""
        if self.result == kind:
            return {}
        letter = self.result.removesuffix("[]")
        bare = kind.removesuffix("[]") if self.result.endswith("[]") else kind
        if self.result.endswith("[]") and not kind.endswith("[]"):
            return None
        if letter in GROUPS and bare in GROUPS[letter]:
            return {letter: bare}
        return None


@cache
def templates(table: str) -> tuple[Template, ...]:
    made: list[Template] = []
    for line in TABLES[table].splitlines():
        if not line or line.startswith("#"):
            continue
        result, text = line.split(": ", 1)
        made.append(Template(result.removeprefix("~"), text, result.startswith("~")))
    return tuple(made)


@cache
def making(table: str, kind: str) -> tuple[tuple[Template, ...], tuple[float, ...]]:
    """The templates whose result is of the kind, and how often each is to be drawn.

    Those for any kind (CASE, coalesce) would outweigh the few of a kind's own.
    """
    found = tuple(each for each in templates(table) if each.binding(kind) is not None)
    weights = tuple(
        (0.2 if each.rare else 1.0) * (0.3 if each.result == "T" else 1.0) for each in found
    )
    return found, weights


def draw(random: Random, table: str, kind: str) -> Template | None:
    found, weights = making(table, kind)
    return random.choices(found, weights)[0] if found else None


@cache
def all_names() -> frozenset[str]:
    return frozenset(each.name for table in TABLES for each in templates(table))
