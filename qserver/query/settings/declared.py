"""Every setting of PostgreSQL 15, from `postgresql.tsv`, with its value here.

The file has one line for each: name, kind, context, unit, value, least and greatest value, words of
an enum, category, description. `pg_settings` shows them; SHOW knows a few more (`UNLISTED`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

import msgspec


class Setting(msgspec.Struct, frozen=True):
    name: str
    kind: str
    """bool, integer, real, enum or string."""
    context: str
    """Who may change it, in PostgreSQL's words: user, superuser, sighup, postmaster, internal …"""
    unit: str
    default: str
    """Its value here, before anybody changes it; without a unit."""
    least: str = ""
    greatest: str = ""
    words: tuple[str, ...] = ()
    """The values of an enum."""
    category: str = ""
    description: str = ""


UNLISTED: Final = (
    Setting("is_superuser", "bool", "internal", "", "on"),
    Setting("role", "string", "user", "", "none"),
    Setting("seed", "real", "user", "", "unavailable", "-1", "1"),
    Setting("session_authorization", "string", "user", "", "qserver"),
)
"""Settings that pg_settings and SHOW ALL leave out."""


@cache
def listed() -> tuple[Setting, ...]:
    """Return the settings that pg_settings shows, in its order."""
    text = files(__package__).joinpath("postgresql.tsv").read_text(encoding="utf-8")
    return tuple([_setting(*line.split("\t")) for line in text.splitlines()])


@cache
def declared() -> Mapping[str, Setting]:
    """Return all settings by their names in lower case."""
    return {each.name.lower(): each for each in (*listed(), *UNLISTED)}


def _setting(
    name: str,
    kind: str,
    context: str,
    unit: str,
    default: str,
    least: str,
    greatest: str,
    words: str,
    category: str,
    description: str,
) -> Setting:
    enum = tuple(words.split(",")) if words else ()
    return Setting(name, kind, context, unit, default, least, greatest, enum, category, description)
