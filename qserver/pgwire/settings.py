"""The settings of a session: those of its startup, and what they change.

statement_timeout                      bounds each statement, within the organization's limits
idle_in_transaction_session_timeout    ends a session that forgets its transaction
idle_session_timeout                   ends one that does nothing
application_name                       shown
others                                 as SET takes them, see `query.settings`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from qserver import __version__
from qserver.errors import InvalidParameterValue
from qserver.pgwire.limits import TRANSACTION_IDLE_SECONDS
from qserver.query.session import Session
from qserver.query.settings.declared import declared

_OPTION: Final = re.compile(r"(?:[^\\\s]|\\.)+", re.DOTALL)
_TIME: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*")
_UNITS_MS: Final = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_REPORTED: Final = (
    "server_encoding", "client_encoding", "integer_datetimes", "standard_conforming_strings",
    "default_transaction_read_only",
)  # fmt: skip
_MAY_CHANGE: Final = (
    "client_encoding", "standard_conforming_strings", "default_transaction_read_only", "DateStyle",
    "TimeZone", "IntervalStyle", "application_name",
)  # fmt: skip
"""Of what a client is told, what SET can change."""
_NO_SETTINGS: Final = frozenset({"user", "database", "options", "replication"})


class SessionSettings:
    def __init__(self) -> None:
        self.application_name = ""
        self.statement_timeout_ms: float | None = None
        """What the session asks for; None: as its organization has it."""
        self.transaction_idle_seconds: float = TRANSACTION_IDLE_SECONDS
        self.idle_seconds: float | None = None
        self.session = Session()
        """What SET changes; it begins with all of these."""
        self._told = self.session.settings

    @classmethod
    def of(cls, startup: Mapping[str, str]) -> SessionSettings:
        """Return the settings that a startup asks for; raise if one cannot be so."""
        made, given = cls(), {}
        for name, value in options_of(startup.get("options", "")):
            given[name] = value
        for name, value in startup.items():
            if name not in _NO_SETTINGS and not name.startswith("_pq_."):
                given[name] = value
        for name, value in given.items():
            made.apply(name, value)
        made.session = Session(given)
        return made

    def apply(self, name: str, value: str) -> None:
        """Take a setting of the startup; raise if it cannot be so."""
        match name.lower():
            case "application_name":
                self.application_name = "".join(c if c.isprintable() else "?" for c in value)[:63]
            case "statement_timeout":
                self.statement_timeout_ms = _milliseconds(name, value) or None
            case "idle_in_transaction_session_timeout":
                asked = _milliseconds(name, value) / 1000
                most = TRANSACTION_IDLE_SECONDS
                self.transaction_idle_seconds = min(asked or most, most)
            case "idle_session_timeout":
                self.idle_seconds = _milliseconds(name, value) / 1000 or None

    def reports(self, user: str) -> Iterator[tuple[str, str]]:
        """Yield what a client is told when it has entered."""
        yield "server_version", f"{declared()['server_version'].default} (qserver {__version__})"
        for name in (*_REPORTED, "DateStyle", "TimeZone", "IntervalStyle"):
            yield name, self.session.settings.value(name)
        yield "is_superuser", "off"
        yield "session_authorization", user
        yield "application_name", self.application_name
        yield "in_hot_standby", "off"
        self._told = self.session.settings

    @property
    def has_changed(self) -> bool:
        """Whether anything has been set since the client was told."""
        return self.session.settings is not self._told

    def changes(self) -> Iterator[tuple[str, str]]:
        """Yield what a client was told otherwise; it is told once."""
        now, told = self.session.settings, self._told
        self._told = now
        for name in _MAY_CHANGE:
            value = now.value(name)
            if value != told.value(name):
                yield name, value


def options_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in `options` of the startup: -c name=value, or --name=value."""
    words = iter([re.sub(r"\\(.)", r"\1", each) for each in _OPTION.findall(text)])
    for word in words:
        if word == "-c":
            word = next(words, "")
        elif word.startswith(("--", "-c")):
            word = word[2:]
        else:
            raise InvalidParameterValue(f"invalid command-line argument for server: {word}")
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidParameterValue(f"-c {word} requires a value")
        yield name.replace("-", "_"), value


def _milliseconds(name: str, value: str) -> float:
    found = _TIME.fullmatch(value)
    if found is None:
        raise InvalidParameterValue(f'invalid value for parameter "{name}": "{value}"')
    return float(found[1]) * _UNITS_MS[found[2] or "ms"]
