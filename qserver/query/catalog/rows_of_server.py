"""The rows of what a server has once: its database, its schemas and settings."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from qserver.query.catalog.roles import NAME
from qserver.query.catalog.search_path import OWN_SCHEMAS
from qserver.query.catalog.world import DATABASE, OWNER, World
from qserver.values.extensions import AVAILABLE, PLPGSQL, Extension
from qserver.values.interval import MICROSECONDS_PER_SECOND, Interval
from qserver.values.relations import Definition, Schema
from qserver.values.shared_comments import SharedComment
from qserver.values.zones import (
    OFFSET_OF_ABBREVIATION,
    SUMMER_ABBREVIATIONS,
    find_zone,
    zone_names,
)

Rows = Iterator[dict[str, Any]]

PUBLIC_ACCESS: Final = (f"{NAME}=UC/{NAME}", f"=U/{NAME}")


def own_schemas(world: World) -> Rows:
    for name, oid in OWN_SCHEMAS.items():
        yield _schema(oid, name)


def schemas(world: World, each: Definition) -> Rows:
    if isinstance(each, Schema):
        yield _schema(each.oid, each.name)


def _schema(oid: int, name: str) -> dict[str, Any]:
    """Everybody may use the schema public, which PostgreSQL, too, writes down."""
    row = {"oid": oid, "nspname": name, "nspowner": OWNER}
    return {**row, "nspacl": PUBLIC_ACCESS} if name == "public" else row


def databases(world: World) -> Rows:
    yield {
        "oid": DATABASE,
        "datname": world.server.database,
        "datdba": OWNER,
        "encoding": 6,
        "datlocprovider": "c",
        "datallowconn": True,
        "datconnlimit": -1,
        "dattablespace": 1663,
        "datcollate": "C",
        "datctype": "C.UTF-8",
    }


def shared_comments(world: World, each: Definition) -> Rows:
    if isinstance(each, SharedComment):
        oid, catalog = SHARED[each.about]
        yield {"objoid": oid, "classoid": catalog, "description": each.text}


SHARED: Final = {"database": (DATABASE, 1262), "role": (OWNER, 1260)}
"""What a comment can be about that belongs to no schema: its oid, and that of its catalog."""


def settings(world: World) -> Rows:
    """Every setting, with the value that it has in the session."""
    for each, value in world.settings.listed():
        yield {
            "name": each.name,
            "setting": value,
            "unit": each.unit or None,
            "category": each.category,
            "short_desc": each.description,
            "context": each.context,
            "vartype": each.kind,
            "source": world.settings.source(each),
            "min_val": each.least or None,
            "max_val": each.greatest or None,
            "enumvals": each.words or None,
            "boot_val": each.default,
            "reset_val": world.settings.reset_value(each),
            "pending_restart": False,
        }


# --- time zones ----------------------------------------------------------------------------------

ZONE_STEPS: Final = 256
"""What a zone costs: its rules are read and looked up."""


def zones(world: World) -> Rows:
    now = datetime.fromtimestamp(world.server.now(), UTC)
    for name in zone_names():
        world.steps += ZONE_STEPS
        local = now.astimezone(find_zone(name))
        yield {
            "name": name,
            "abbrev": local.tzname(),
            "utc_offset": _interval(local.utcoffset() or timedelta()),
            "is_dst": bool(local.dst()),
        }


def zone_abbreviations(world: World) -> Rows:
    for name, offset in sorted(OFFSET_OF_ABBREVIATION.items()):
        is_summer = name in SUMMER_ABBREVIATIONS
        yield {"abbrev": name.upper(), "utc_offset": _interval(offset), "is_dst": is_summer}


def _interval(length: timedelta) -> Interval:
    return Interval(microseconds=int(length.total_seconds()) * MICROSECONDS_PER_SECOND)


# --- extensions ----------------------------------------------------------------------------------

PLPGSQL_OID: Final = 13533
"""That of a fresh PostgreSQL 15."""


def own_extensions(world: World) -> Rows:
    yield _extension(PLPGSQL_OID, PLPGSQL, OWN_SCHEMAS["pg_catalog"])


def extensions(world: World, each: Definition) -> Rows:
    if isinstance(each, Extension):
        yield _extension(each.oid, each.name, world.schema_oid(each.schema))


def _extension(oid: int, name: str, schema: int) -> dict[str, Any]:
    return {
        "oid": oid,
        "extname": name,
        "extowner": OWNER,
        "extnamespace": schema,
        "extrelocatable": name != PLPGSQL,
        "extversion": AVAILABLE[name].version,
    }


def available_extensions(world: World) -> Rows:
    for name, each in AVAILABLE.items():
        is_there = name == PLPGSQL or world.catalog.find(Extension.key_of(name)) is not None
        yield {
            "name": name,
            "default_version": each.version,
            "installed_version": each.version if is_there else None,
            "comment": each.comment,
        }


def available_versions(world: World) -> Rows:
    for name, each in AVAILABLE.items():
        is_there = name == PLPGSQL or world.catalog.find(Extension.key_of(name)) is not None
        yield {
            "name": name,
            "version": each.version,
            "installed": is_there,
            "superuser": True,
            "trusted": True,
            "relocatable": name != PLPGSQL,
            "schema": "pg_catalog" if name == PLPGSQL else None,
            "comment": each.comment,
        }
