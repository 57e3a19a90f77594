"""Roles: the one that there is, and those that PostgreSQL has made before anybody else.

Nobody can be, or have, one of the predefined roles. They are there because tools list them, and
GRANT may name them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.query.catalog.world import OWNER, World

NAME: Final = "qserver"
"""The name of the role."""
PREDEFINED: Final = {
    "pg_monitor": 3373,
    "pg_read_all_settings": 3374,
    "pg_read_all_stats": 3375,
    "pg_stat_scan_tables": 3377,
    "pg_signal_backend": 4200,
    "pg_checkpoint": 4544,
    "pg_read_server_files": 4569,
    "pg_write_server_files": 4570,
    "pg_execute_server_program": 4571,
    "pg_database_owner": 6171,
    "pg_read_all_data": 6181,
    "pg_write_all_data": 6182,
}
ROLES: Final = {NAME: OWNER, **PREDEFINED}
ROLE_NAMES: Final = {oid: name for name, oid in ROLES.items()}
_MEMBERSHIPS: Final = tuple(
    (PREDEFINED[name], PREDEFINED["pg_monitor"])
    for name in ("pg_read_all_settings", "pg_read_all_stats", "pg_stat_scan_tables")
)

Rows = Iterator[dict[str, Any]]


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
    for name, oid in PREDEFINED.items():
        yield {"oid": oid, "rolname": name, "rolinherit": True, "rolconnlimit": -1}


def memberships(world: World) -> Rows:
    for role, member in _MEMBERSHIPS:
        yield {"roleid": role, "member": member, "grantor": OWNER}


def is_member(user: int, role: int) -> bool:
    """Tell whether a role has the rights of another: the owner has all."""
    return user in (OWNER, role) or (role, user) in _MEMBERSHIPS
