"""Comments on what belongs to no schema: COMMENT ON DATABASE, COMMENT ON ROLE.

There is one database and one role to say something about, so each has one comment or none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

ABOUT: Final = ("database", "role")


@dataclass(frozen=True, slots=True)
class SharedComment:
    """A comment. It is a definition, because it is kept, branched and restored as these are."""

    about: str
    text: str
    oid: int = field(default=0, compare=False)

    @staticmethod
    def key_of(about: str) -> str:
        return f"\0comment\0{about}"

    @property
    def key(self) -> str:
        return self.key_of(self.about)

    @property
    def name(self) -> str:
        return self.about

    def to_plain(self) -> list[Any]:
        return [self.about, self.text, self.oid]

    @staticmethod
    def from_plain(plain: Any) -> SharedComment:
        return SharedComment(*plain)
