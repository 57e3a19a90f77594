"""The settings of a session at one moment: an immutable value.

A change makes another one, so a savepoint or a rollback keeps a reference and takes it back.

    now      what holds
    after    what will hold when the transaction has committed: without SET LOCAL
    base     what RESET goes back to, if it is not the default: given when the session began

`scope` is the part on which plans depend; None for the defaults, under which almost all run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import tzinfo
from functools import lru_cache
from typing import Any, Final

import msgspec

from qserver.errors import FeatureNotSupported, InvalidParameterValue, ProgramLimitExceeded
from qserver.limits import SETTINGS_LENGTH_MAX
from qserver.query.settings.declared import Setting, listed
from qserver.query.settings.effects import (
    changed_value,
    check_changeable,
    named,
    split_names,
    unknown,
    zone_of,
)
from qserver.query.settings.reading import shown_value
from qserver.values.identifiers import PUBLIC, quote_identifier

_LISTS: Final = frozenset({"search_path", "temp_tablespaces"})
_USER: Final = "$user"


class Scope(msgspec.Struct, frozen=True):
    """What the meaning of a statement depends on beside its text."""

    path: tuple[str, ...]
    """The schemas in which names without one are looked for, in this order."""
    zone: str
    """The name of the time zone."""

    @property
    def tzinfo(self) -> tzinfo | None:
        return zone_of(self.zone)


class TextStyle(msgspec.Struct, frozen=True):
    """How a client of PostgreSQL gets values as texts, where its settings say so."""

    iso_intervals: bool
    """As ISO 8601 writes them."""
    float_digits: int
    """More digits than 15, of a real than 6; with more than 0, as many as the number needs."""
    escaped_bytes: bool
    """As characters, with a backslash before the others in octal, instead of hexadecimal."""


USUAL_STYLE: Final = TextStyle(iso_intervals=False, float_digits=1, escaped_bytes=False)


class Settings(msgspec.Struct, frozen=True):
    base: Mapping[str, str]
    now: Mapping[str, str]
    after: Mapping[str, str]

    # What every statement asks for, known from the beginning.
    scope: Scope | None = None
    """What plans depend on; None for what holds without any setting."""
    zone: tzinfo | None = None
    """The time zone; None for UTC."""
    statement_timeout_ms: int | None = None
    style: TextStyle | None = None
    """How a client of PostgreSQL gets texts; None for what holds without any setting."""

    def __post_init__(self) -> None:
        name = self.now.get("timezone", "UTC")
        for field, value in (
            ("scope", scope_of(self.path, name)),
            ("zone", zone_of(name)),
            ("style", _style_of(self.now)),
            ("statement_timeout_ms", int(self.now.get("statement_timeout", "0")) or None),
        ):
            msgspec.structs.force_setattr(self, field, value)

    # --- reading ---

    def value(self, name: str) -> str:
        """Return the value of a declared setting as it is kept: without a unit."""
        setting = named(name)
        assert setting is not None
        return self._value(setting)

    def _value(self, setting: Setting) -> str:
        key = setting.name.lower()
        value = self.now.get(key)
        if value is None and key in DEFAULT_MODES:
            value = self.now.get(DEFAULT_MODES[key])
        return setting.default if value is None else value

    def shown(self, name: str, missing_ok: bool = False) -> str | None:
        """Return what SHOW prints; None for an unknown one, if that may be missing."""
        try:
            setting = named(name)
        except Exception:
            if missing_ok:
                return None
            raise
        if setting is not None:
            return shown_value(setting, self._value(setting))
        value = self.now.get(name.lower())
        if value is None and not missing_ok:
            raise unknown(name)
        return value

    def listed(self) -> Iterator[tuple[Setting, str]]:
        """Yield each setting that pg_settings has, with its value as it is kept."""
        for setting in listed():
            yield setting, self._value(setting)

    def source(self, setting: Setting) -> str:
        """Return where the value comes from, as pg_settings says it."""
        name = setting.name.lower()
        if name not in self.now:
            return "default"
        return "client" if self.now[name] == self.base.get(name) else "session"

    def reset_value(self, setting: Setting) -> str:
        return self.base.get(setting.name.lower(), setting.default)

    @property
    def path(self) -> tuple[str, ...]:
        """The schemas of search_path; "$user" names none here."""
        value = self.now.get("search_path")
        return _DEFAULT_PATH if value is None else _path(value)

    @property
    def read_only(self) -> bool:
        """Whether the transaction may only read."""
        if not self.now:  # as for most statements
            return False
        default = self.now.get("default_transaction_read_only", "off")
        return self.now.get("transaction_read_only", default) == "on"

    # --- changing ---

    def set(self, name: str, values: Iterable[str] | None, local: bool = False) -> Settings:
        """Return the settings after SET, SET LOCAL, or, with None, RESET."""
        setting = named(name)
        key = name.lower() if setting is None else setting.name.lower()
        if values is None:
            if setting is not None:
                check_changeable(setting)
            return self._with(key, self.base.get(key, None if setting else ""), local)
        text = _joined(name, setting, list(values))
        value = text if setting is None else changed_value(setting, text)
        if key == "seed":
            raise FeatureNotSupported('"seed" cannot be set', hint="Call setseed().")
        return self._with(key, value, local or key in DEFAULT_MODES)

    def reset_all(self) -> Settings:
        return Settings(self.base, self.base, self.base)

    def committed(self) -> Settings:
        """Return the settings after the transaction: SET LOCAL has ended."""
        if self.after is self.now:
            return self
        return Settings(self.base, self.after, self.after)

    def _with(self, key: str, value: str | None, local: bool) -> Settings:
        def changed(values: Mapping[str, str]) -> dict[str, str]:
            new = dict(values)
            if value is None:
                new.pop(key, None)
            else:
                new[key] = value
            return new

        now = changed(self.now)
        if sum(len(name) + len(text) for name, text in now.items()) > SETTINGS_LENGTH_MAX:
            raise ProgramLimitExceeded(
                f"the settings of a session have at most {SETTINGS_LENGTH_MAX} characters"
            )
        return Settings(self.base, now, self.after if local else changed(self.after))

    def __repr__(self) -> str:
        return f"settings {dict(self.now)!r}"


DEFAULT_MODES: Final = {
    f"transaction_{each}": f"default_transaction_{each}"
    for each in ("isolation", "read_only", "deferrable")
}
"""These end with the transaction, however they were set; it begins with their defaults."""


def _style_of(now: Mapping[str, str]) -> TextStyle | None:
    style = TextStyle(
        now.get("intervalstyle") == "iso_8601",
        min(int(now.get("extra_float_digits", "1")), 1),
        now.get("bytea_output") == "escape",
    )
    return None if style == USUAL_STYLE else style


def settings_from(given: Mapping[str, Any]) -> Settings:
    """Return the settings with which a session begins; a name or value that is wrong raises."""
    settings = DEFAULTS
    for name, value in given.items():
        settings = settings.set(name, [value])
    return Settings(settings.now, settings.now, settings.now)


def _joined(name: str, setting: Setting | None, values: list[str]) -> str:
    if setting is not None and setting.name in _LISTS and len(values) > 0:
        return ", ".join(values)
    if len(values) > 1 and (setting is None or setting.name != "DateStyle"):
        raise InvalidParameterValue(f"SET {name} takes only one argument")
    return ", ".join(values)


def is_list(name: str) -> bool:
    """Return whether the value of a setting is a list of names."""
    return name.lower() in _LISTS


def written_list(values: Iterable[str]) -> list[str]:
    """Return the names of SET … TO a, "B c" as the text of a list has them."""
    return [quote_identifier(each) if each else '""' for each in values]


@lru_cache(maxsize=256)
def _path(value: str) -> tuple[str, ...]:
    return tuple([each for each in split_names(value) if each not in (_USER, "")])


@lru_cache(maxsize=256)
def scope_of(path: tuple[str, ...], zone: str) -> Scope | None:
    searched = tuple(each for each in path if each != "pg_catalog")
    if searched == (PUBLIC,) and zone_of(zone) is None:
        return None
    return Scope(path, "UTC" if zone_of(zone) is None else zone)


_DEFAULT_PATH: Final = (PUBLIC,)
DEFAULTS: Final = Settings({}, {}, {})
