"""The rows of what a server has once: its role, its database, its schemas and settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.query.catalog.search_path import OWN_SCHEMAS
from qserver.query.catalog.world import DATABASE, OWNER, World
from qserver.values.relations import Definition, Schema

Rows = Iterator[dict[str, Any]]

NAME: Final = "qserver"
"""The name of the role."""


def own_schemas(world: World) -> Rows:
    for name, oid in OWN_SCHEMAS.items():
        yield {"oid": oid, "nspname": name, "nspowner": OWNER}


def schemas(world: World, each: Definition) -> Rows:
    if isinstance(each, Schema):
        yield {"oid": each.oid, "nspname": each.name, "nspowner": OWNER}


def roles(world: World) -> Rows:
    yield {
        "oid": OWNER,
        "rolname": NAME,
        "rolsuper": True,
        "rolinherit": True,
        "rolcreaterole": True,
        "rolcreatedb": True,
        "rolcanlogin": True,
        "rolreplication": True,
        "rolbypassrls": True,
        "rolconnlimit": -1,
    }


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
        "datctype": "C",
    }


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
