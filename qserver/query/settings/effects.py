"""Which settings may be changed here, and to what.

    effective    search_path, TimeZone, statement_timeout, the transaction's mode, a name with a dot
    free         planner costs, logging, memory …: kept and shown
    fixed        a value that means something else than what is so here is refused (0A000)
    not by SET   what the server decides at its start: refused as PostgreSQL does (55P02)

No answer depends on the free ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from decimal import Decimal
from functools import lru_cache
from typing import Final

from qserver.errors import (
    CannotChangeSetting,
    FeatureNotSupported,
    InvalidName,
    InvalidParameterValue,
    UndefinedObject,
)
from qserver.query.settings.declared import Setting, declared
from qserver.query.settings.reading import invalid, read_value
from qserver.values.identifiers import identifiers, quote_identifier
from qserver.values.zones import find_zone, offset_text, posix_zone

ALIASES: Final = {"time zone": "timezone", "names": "client_encoding"}

_CUSTOM_NAME: Final = re.compile(r"[A-Za-z_\x80-\uffff][\w$]*(\.[A-Za-z_\x80-\uffff][\w$]*)+")
_HOURS_EAST: Final = re.compile(r"\s*[+-]?\d+(\.\d+)?\s*")
_POSIX_TEXT: Final = re.compile(r"<([+-])(\d\d(?::\d\d){0,2})>[+-]\d\d(?::\d\d){0,2}")
_UTC_NAMES: Final = frozenset(
    {
        *("utc", "uct", "gmt", "gmt0", "gmt+0", "gmt-0", "greenwich", "universal", "zulu"),
        *(f"etc/{each}" for each in ("utc", "uct", "gmt", "gmt0", "gmt+0", "gmt-0")),
        *("etc/greenwich", "etc/universal", "etc/zulu"),
    }
)


def named(name: str) -> Setting | None:
    """Return the declared setting of a name; None for a custom name; raise for any other."""
    key = name.lower()
    found = declared().get(ALIASES.get(key, key))
    if found is not None:
        return found
    if "." not in name:
        raise unknown(name)
    if _CUSTOM_NAME.fullmatch(name) is None:
        raise InvalidName(
            f'invalid configuration parameter name "{name}"',
            detail="Custom parameter names must be two or more simple identifiers separated by"
            " dots.",
        )
    return None


def unknown(name: str) -> UndefinedObject:
    return UndefinedObject(f'unrecognized configuration parameter "{name}"')


def changed_value(setting: Setting, text: str) -> str:
    """Return the value as it is kept after a change; raise if it cannot be changed to it."""
    check_changeable(setting)
    read = _READERS.get(setting.name)
    value = read_value(setting, text) if read is None else read(setting, text)
    if setting.name in _FIXED and value != setting.default:
        raise _fixed(setting, text)
    return value


def _fixed(setting: Setting, text: str) -> FeatureNotSupported:
    return FeatureNotSupported(
        f'parameter "{setting.name}" cannot be set to "{text}": it is "{setting.default}"'
        " for everyone"
    )


def check_changeable(setting: Setting) -> None:
    if setting.context == "internal":
        raise CannotChangeSetting(f'parameter "{setting.name}" cannot be changed')
    if setting.context == "postmaster":
        raise CannotChangeSetting(
            f'parameter "{setting.name}" cannot be changed without restarting the server'
        )
    if setting.context == "sighup":
        raise CannotChangeSetting(f'parameter "{setting.name}" cannot be changed now')
    if setting.context in ("backend", "superuser-backend"):
        raise CannotChangeSetting(
            f'parameter "{setting.name}" cannot be set after connection start'
        )


# --- values with a form of their own --------------------------------------------------------------


def _encoding(setting: Setting, text: str) -> str:
    plain = re.sub(r"[^a-z0-9]", "", text.lower())
    return "UTF8" if plain in ("utf8", "unicode") else text


_STYLES: Final = {"iso": "ISO", "sql": "SQL", "german": "German"}
_ORDERS: Final = {
    **dict.fromkeys(("mdy", "us", "noneuropean", "noneuro"), "MDY"),
    **dict.fromkeys(("dmy", "euro", "european"), "DMY"),
    "ymd": "YMD",
}


def _date_style(setting: Setting, text: str) -> str:
    style, order = setting.default.split(", ")
    for word in (each.strip().lower() for each in text.split(",")):
        if word in _ORDERS:
            order = _ORDERS[word]
        elif word.startswith("postgres"):
            style = "Postgres"
        elif word in _STYLES:
            style = _STYLES[word]
        elif word != "default":
            raise invalid(setting, text, detail=f'Unrecognized key word: "{word}".')
    return f"{style}, {order}"


def _interval_style(setting: Setting, text: str) -> str:
    value = read_value(setting, text)
    if value not in (setting.default, "iso_8601"):
        raise _fixed(setting, text)
    return value


def _search_path(setting: Setting, text: str) -> str:
    try:
        parts = split_names(text)
    except ValueError:
        raise InvalidParameterValue(
            f'invalid value for parameter "search_path": "{text}"',
            detail="List syntax is invalid.",
        ) from None
    return ", ".join(map(_quoted, parts))


def _quoted(name: str) -> str:
    return quote_identifier(name) if name else '""'


def split_names(text: str) -> list[str]:
    """Return the names of a list: in quotes as they are, others in lower case."""
    names: list[str] = []
    if not text.strip():
        return names
    for part in re.findall(r'\s*((?:"(?:[^"]|"")*"|[^,"])*)(?:,|$)', text)[: _count(text)]:
        found = identifiers(part)
        if len(found) != 1 or not part.strip():
            raise ValueError(text)
        names.append(found[0])
    return names


def _count(text: str) -> int:
    return len(re.sub(r'"(?:[^"]|"")*"', "", text).split(","))


def _time_zone(setting: Setting, text: str) -> str:
    if _HOURS_EAST.fullmatch(text):
        return _fixed_offset(Decimal(text.strip()))
    zone = find_zone(text)
    if zone is not None:
        return str(zone.key)
    if posix_zone(text) is None and _POSIX_TEXT.fullmatch(text) is None:
        raise invalid(setting, text)
    return text


def _fixed_offset(hours: Decimal) -> str:
    """Return the name of a zone at so many hours east, as PostgreSQL writes it: `<+02>-02`."""
    if abs(hours) > 167:
        raise InvalidParameterValue(f'invalid value for parameter "TimeZone": "{hours}"')
    if abs(hours) >= 24:
        raise FeatureNotSupported("a time zone is less than a day away from Greenwich here")
    east = timedelta(seconds=int(hours * 3600))
    return f"<{offset_text(east)}>{offset_text(-east)}" if east else "<+00>-00"


@lru_cache(maxsize=256)
def zone_of(value: str) -> tzinfo | None:
    """Return the zone of a value of TimeZone; None for UTC, under all its names."""
    if value.lower() in _UTC_NAMES:
        return None
    match = _POSIX_TEXT.fullmatch(value)
    if match is not None:
        hours, minutes, seconds = (*map(int, match.group(2).split(":")), 0, 0)[:3]
        size = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        zone: tzinfo = timezone(-size if match.group(1) == "-" else size)
    else:
        found = find_zone(value) or posix_zone(value)
        assert found is not None, f"{value!r} was checked"
        zone = found
    return None if zone == UTC else zone


def _role(setting: Setting, text: str) -> str:
    if text.lower() in ("none", "default", "qserver"):
        return setting.default
    raise InvalidParameterValue(f'role "{text}" does not exist')


_READERS: Final[Mapping[str, Callable[[Setting, str], str]]] = {
    "DateStyle": _date_style,
    "IntervalStyle": _interval_style,
    "TimeZone": _time_zone,
    "client_encoding": _encoding,
    "role": _role,
    "search_path": _search_path,
    "session_authorization": _role,
}

_FIXED: Final = frozenset(
    {
        *("DateStyle", "allow_system_table_mods", "array_nulls"),
        *("backslash_quote", "client_encoding", "default_table_access_method"),
        *("default_tablespace", "dynamic_library_path"),
        *("ignore_checksum_failure", "lc_messages", "lc_monetary", "lc_numeric", "lc_time"),
        *("local_preload_libraries", "quote_all_identifiers", "session_preload_libraries"),
        *("session_replication_role", "standard_conforming_strings", "timezone_abbreviations"),
        *("transform_null_equals", "zero_damaged_pages"),
    }
)
"""Other values of these would mean something else than what is so here."""
