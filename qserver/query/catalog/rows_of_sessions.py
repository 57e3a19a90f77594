"""The rows of what a session has: prepared statements and cursors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from qserver.query.catalog.world import World
from qserver.values.object_names import ObjectName

Rows = Iterator[dict[str, Any]]


def prepared_statements(world: World) -> Rows:
    if world.session is None:
        return
    for each in world.session.statements:
        yield {
            "name": each.name,
            "statement": each.sql,
            "prepare_time": each.created,
            "parameter_types": tuple(
                [ObjectName(world.type_oid(kind), str(kind.bare)) for kind in each.parameters]
            ),
            "from_sql": each.from_sql,
            "generic_plans": 0,
            "custom_plans": 0,
        }


def cursors(world: World) -> Rows:
    if world.session is None:
        return
    for each in world.session.portals.values():
        yield {
            "name": each.name,
            "statement": each.sql,
            "is_holdable": each.hold,
            "is_binary": each.is_binary,
            "is_scrollable": each.scroll,
            "creation_time": each.created,
        }
