"""Time zones by name (`Europe/Berlin`), abbreviation (`CEST`) or offset, as PostgreSQL knows them.

    zone_named('Europe/Berlin')   rules from the tz database
    zone_named('EST')             the offset in PostgreSQL's default list of abbreviations
    zone_named('UTC+3'), ('+3')   POSIX, whose sign is inverted: three hours west of Greenwich

The zone of the session, which SET TIME ZONE changes, is a context variable (`InSessionZone`):
whatever reads or prints a point in time asks for it here. It is None for UTC, the default.

The rules come from the package `tzdata`, never from the system, so that one release of qserver
gives one answer everywhere. Like a module of Python, they are read once, on first use.

A local time that a change of clocks skips or repeats is read as standard time, which is always
the smaller of the two offsets.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from datetime import UTC, datetime, time, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib.resources import files
from typing import Final
from zoneinfo import ZoneInfo

from qserver.errors import DatetimeFieldOverflow, InvalidParameterValue

_SECONDS_BY_ABBREVIATION: Final = {
    -39600: "nut",
    -36000: "ckt hst taht",
    -34200: "mart",
    -32400: "akst gamt",
    -28800: "akdt pst",
    -25200: "mst pdt",
    -21600: "cst galt mdt",
    -18000: "act cdt cot easst east est pet",
    -14400: "amt ast bot edt gyt vet",
    -12600: "nft nst",
    -10800: "adt arst art bra brt clst clt fkst fkt gft pmst pyst pyt uyt wgt",
    -9000: "ndt",
    -7200: "brst fnt pmdt uyst wgst",
    -3600: "azot egt fnst",
    0: "azost egst gmt uct ut utc wet z zulu",
    3600: "bst cet met mez wat wetdst",
    7200: "bdst cest cetdst eet ist mest mesz metdst sast",
    10800: "eat eest eetdst fet idt msk volt",
    12600: "irt",
    14400: "amst azst azt gest get msd mut ret sct",
    16200: "aft",
    18000: "mawt must mvt pkt tft tjt tmt uzt yekt",
    19800: "lkt",
    20700: "npt",
    21600: "almt bdt btt iot kgst kgt omsst omst pkst uzst xjt yekst",
    23400: "mmt",
    25200: "almst cxt davt ict krast krat novst novt wast",
    28800: "awst bnt bort cct hkt irkst irkt myt pht sgt ulat wadt",
    31500: "acwst",
    32400: "awsst jayt jst kst pwt ulast wdt yakst yakt",
    34200: "acst cast",
    36000: "aest chut ddut kdt ligt mpt pgt trut vlast vlat yapt",
    37800: "acdt acsst cadt lhst sadt",
    39600: "aedt aesst kost lhdt magst magt pont vut",
    43200: "anast anat fjt gilt mht nzst nzt petst pett tvt wakt wft",
    45900: "chast",
    46800: "fjst nzdt tkt tot",
    49500: "chadt",
    50400: "lint",
}
OFFSET_OF_ABBREVIATION: Final = {
    name: timedelta(seconds=seconds)
    for seconds, names in _SECONDS_BY_ABBREVIATION.items()
    for name in names.split()
}

SUMMER_ABBREVIATIONS: Final = frozenset(
    name
    for names in (
        "acdt acsst adt aedt aesst akdt almst awsst azost bdst brst bst cadt cdt cest cetdst",
        "chadt clst clt easst east edt eest eetdst egst fjst fnst idt kdt kgst lhdt mdt mest",
        "mesz metdst msd must ndt nzdt pdt pkst pmdt pyst sadt ulast uyst uzst wadt wdt",
        "wetdst wgst yekst",
    )
    for name in names.split()
)
"""Those of daylight saving time."""

_POSIX: Final = re.compile(
    r"(?:<[^>]*>|(?!<)[^\d,+-]*)([+-]?)(\d{1,3})(?::(\d\d?)(?::(\d\d?))?)?", re.ASCII
)
"""A name of any letters, then the offset; PostgreSQL requires no more."""
_POSIX_HOURS_MAX: Final = 167


def zone_named(name: str) -> tzinfo:
    """The zone of that name, in any case; raises if there is none."""
    offset = OFFSET_OF_ABBREVIATION.get(name.lower())
    if offset is not None:
        return timezone(offset)
    zone = find_zone(name) or posix_zone(name)
    if zone is None:
        raise InvalidParameterValue(f'time zone "{name}" not recognized')
    return zone


@lru_cache(maxsize=1024)
def find_zone(name: str) -> ZoneInfo | None:
    """A zone of the tz database, by its name in any case."""
    official = _official_names().get(name.lower())
    if official is None:
        return None
    resource = files("tzdata").joinpath("zoneinfo", *official.split("/"))
    with resource.open("rb") as data:
        return ZoneInfo.from_file(data, key=official)


@lru_cache(maxsize=1)
def _official_names() -> dict[str, str]:
    names = files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    return {name.lower(): name for name in names}


def zone_names() -> list[str]:
    """Return the names of all zones of the tz database, in their order."""
    return sorted(_official_names().values())


def posix_zone(name: str) -> timezone | None:
    """A zone that tells its own offset: a name, then the hours west of Greenwich."""
    match = _POSIX.fullmatch(name)
    if match is None:
        return None
    sign, hours, minutes, seconds = match.groups("0")
    size = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds))
    if int(minutes) > 59 or int(seconds) > 60:
        return None
    if int(hours) > _POSIX_HOURS_MAX or size >= timedelta(days=1):
        return None  # POSIX allows more than a day, Python does not
    return timezone(size if sign == "-" else -size)


def to_utc(local: datetime, zone: tzinfo) -> datetime:
    """The point in time at which the clocks of a zone show `local`."""
    try:
        return (local - _standard_offset(local, zone)).replace(tzinfo=UTC)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None


def to_local(moment: datetime, zone: tzinfo) -> datetime:
    """The local time of a zone at a point in time."""
    try:
        return moment.astimezone(zone).replace(tzinfo=None, fold=0)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None


def _standard_offset(local: datetime, zone: tzinfo) -> timedelta:
    first = local.replace(tzinfo=zone, fold=0).utcoffset()
    second = local.replace(tzinfo=zone, fold=1).utcoffset()
    assert first is not None and second is not None, "every zone has an offset"
    return min(first, second)


# --- the zone of the session ---------------------------------------------------------------------

WINTER: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""The day whose offset a time of day has if it has no day of its own."""

SESSION_ZONE: Final[ContextVar[tzinfo | None]] = ContextVar("session_zone", default=None)
"""None is UTC."""


class InSessionZone:
    """`with InSessionZone(zone):` work that is done on the clock of a session."""

    __slots__ = ("_token", "_zone")

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone

    def __enter__(self) -> None:
        self._token = SESSION_ZONE.set(self._zone)

    def __exit__(self, *_: object) -> None:
        SESSION_ZONE.reset(self._token)


def on_session_clock(moment: datetime) -> datetime:
    """The same point in time, whose fields are those of the session's zone."""
    zone = SESSION_ZONE.get()
    if zone is None:
        return moment
    try:
        return moment.astimezone(zone)
    except OverflowError:
        raise DatetimeFieldOverflow("timestamp out of range") from None


def session_local(moment: datetime) -> datetime:
    """The local time of the session's zone at a point in time."""
    return on_session_clock(moment).replace(tzinfo=None, fold=0)


def session_moment(local: datetime) -> datetime:
    """The point in time at which the clocks of the session's zone show `local`."""
    zone = SESSION_ZONE.get()
    return local.replace(tzinfo=UTC) if zone is None else to_utc(local, zone)


def session_offset(now: datetime) -> tzinfo:
    """The offset of the session's zone at a point in time, as a zone of its own."""
    zone = SESSION_ZONE.get()
    if zone is None:
        return UTC
    offset = now.astimezone(zone).utcoffset()
    assert offset is not None, "every zone has an offset"
    return timezone(offset)


def zone_word(moment: datetime) -> str:
    """The abbreviation of a moment's zone, `CEST`; of a zone without one, its offset."""
    name = moment.tzname() or "UTC"
    return name if name.isalpha() else offset_text(moment.utcoffset() or timedelta())


def offset_text(offset: timedelta) -> str:
    """`+02`, `-03:30`: an offset east of Greenwich as PostgreSQL prints it."""
    seconds = round(offset.total_seconds())
    minutes, second = divmod(abs(seconds), 60)
    hour, minute = divmod(minutes, 60)
    text = f"{'-' if seconds < 0 else '+'}{hour:02d}"
    if minute or second:
        text += f":{minute:02d}"
    return f"{text}:{second:02d}" if second else text


def offset_of(value: time | datetime) -> timedelta:
    offset = value.utcoffset()
    assert offset is not None, "a time with zone has an offset"
    return offset
