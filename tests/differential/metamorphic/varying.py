"""The same query with other literals.

A statement of the same shape is run by a plan that is kept, so it costs a hundredth of a new one;
and a plan that was made for some literals must be right for all others.
"""

from __future__ import annotations

import re
from random import Random
from typing import Final

from tests.differential.kinds import SPELLINGS
from tests.differential.literals import literal

_POSITION: Final = r"[\w.]+(?: ASC| DESC)?(?: NULLS FIRST| NULLS LAST)?"
"""A column by its position, or by its name."""

_LITERAL: Final = re.compile(
    rf"(?P<kept>\b(?:ORDER|GROUP) BY {_POSITION}(?:, {_POSITION})*"
    r"|\b\w+\([0-9]+(?:, ?[0-9]+)?\)"  # varchar(20), and whatever else is called with numbers
    r"|\"[^\"]*\")"
    r"|'(?P<text>(?:[^']|'')*)'(?:::(?P<kind>\w+(?:\[\])?))?"
    r"|(?<![\w.$\[])(?P<number>[0-9]{1,3})(?![\w.\]])"
)


def varied(chance: Random, text: str) -> str:
    """A text of the same shape. Literals whose kind is not known stay as they are."""

    def other(found: re.Match[str]) -> str:
        if found["kept"] or chance.random() < 0.4:
            return found[0]
        if found["number"]:
            return str(chance.randint(0, 9))
        if found["kind"] in SPELLINGS:
            made = literal(chance, found["kind"])
            if made.startswith("'") and made.endswith(f"'::{found['kind']}"):
                return made
        return found[0]

    return _LITERAL.sub(other, text)
