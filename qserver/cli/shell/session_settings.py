"""Settings that last: SET and RESET hold for the shell, though each request is its own session.

After SET the shell asks the server, in the same transaction, which settings the session has, and
sends these with every later request. A transaction that is rolled back changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from qserver.cli.splitting import Statement

SETTINGS_NOW: Final = (
    "SELECT name, setting FROM pg_catalog.pg_settings WHERE source = 'session' ORDER BY name"
)
_TIME_ZONE: Final = ("time", "zone")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SettingWords:
    """The names that statements SET and RESET; None is all of them."""

    names: tuple[str | None, ...] = ()

    @staticmethod
    def of(statements: Iterable[Statement]) -> SettingWords:
        named = (_named(each.words(4)) for each in statements)
        return SettingWords(tuple(name for names in named for name in names))

    @property
    def is_empty(self) -> bool:
        return not self.names

    def with_more(self, more: SettingWords) -> SettingWords:
        return SettingWords(self.names + more.names)

    def merged(self, before: SessionSettings, now: Iterable[tuple[Any, ...]]) -> SessionSettings:
        """The settings when these statements have run, and the session has those of `now`."""
        kept = {} if None in self.names else dict(before.values)
        changed = {name for name in self.names if name is not None}
        kept = {name: value for name, value in kept.items() if name.lower() not in changed}
        return SessionSettings(kept | {name: str(value) for name, value in now})


def _named(words: tuple[str, ...]) -> list[str | None]:
    if words[:2] in (("reset", "all"), ("discard", "all")):
        return [None]
    if words[:1] not in (("set",), ("reset",)):
        return []
    rest = words[2:] if words[1:2] == ("session",) else words[1:]
    if rest[:1] in (("local",), ("transaction",), ("constraints",), ("characteristics",)):
        return []
    if rest[:2] == _TIME_ZONE:
        return ["timezone"]
    return [rest[0]] if rest else []
