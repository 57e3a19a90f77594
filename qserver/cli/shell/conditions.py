"""\\if, \\elif, \\else and \\endif: which statements and commands count.

A condition is TRUE, FALSE or what else a boolean variable can be.
Each file closes what it opens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from qserver.errors import InvalidRequest

WORDS: Final = ("\\if", "\\elif", "\\else", "\\endif")


@dataclass(slots=True)
class _Branch:
    is_active: bool
    was_taken: bool
    """Has one of its branches been active, or does the whole not count?"""
    has_else: bool = False


class Conditions:
    def __init__(self) -> None:
        self._branches: list[_Branch] = []

    @property
    def is_active(self) -> bool:
        return all(each.is_active for each in self._branches)

    @property
    def is_open(self) -> bool:
        return bool(self._branches)

    def take(self, word: str, holds: Callable[[], bool]) -> None:
        """Take a command; `holds` reads the condition, where it counts."""
        if word == "\\if":
            active = self.is_active
            value = active and holds()
            self._branches.append(_Branch(value, value or not active))
            return
        if not self._branches:
            raise InvalidRequest(f"{word}: no matching \\if")
        branch = self._branches[-1]
        if word == "\\endif":
            self._branches.pop()
            return
        if branch.has_else:
            raise InvalidRequest(f"{word}: cannot occur after \\else")
        if word == "\\else":
            branch.has_else = True
            branch.is_active = not branch.was_taken
        else:
            branch.is_active = not branch.was_taken and holds()
        branch.was_taken = branch.was_taken or branch.is_active
