"""Which relations and columns can be written: tables, and views that select from one."""

from __future__ import annotations

from typing import Final

from qserver.query.catalog.objects import CatalogObjects as Objects
from qserver.query.catalog.parts import columns_of
from qserver.query.catalog.world import EXPRESSION_STEPS
from qserver.sql import view_facts
from qserver.values.relations import View
from qserver.values.schema import Table

CHANGES: Final = 4 | 8 | 16
"""UPDATE, INSERT, DELETE."""


def is_updatable(objects: Objects, oid: int, with_triggers: bool) -> int:
    for each in objects.world.with_oid(oid):
        if each.oid == oid and isinstance(each, Table | View):
            return CHANGES if isinstance(each, Table) or _columns_below(objects, each) else 0
    return 0


def column_is_updatable(objects: Objects, oid: int, number: int, with_triggers: bool) -> bool:
    for each in objects.world.with_oid(oid):
        if each.oid != oid:
            continue
        if isinstance(each, View):
            below = _columns_below(objects, each)
            return 1 <= number <= len(below) and below[number - 1] is not None
        if isinstance(each, Table):
            return number in dict(columns_of(each))
    return False


def _columns_below(objects: Objects, view: View) -> list[str | None]:
    """Return the column of its table that each column of a view is; None for an expression.

    There are none if the view is only read.
    """
    objects.world.steps += EXPRESSION_STEPS
    facts = view_facts(view.text)
    if not facts.is_simple or not view.uses or len(facts.plain) != len(view.columns):
        return []
    used = objects.world.catalog.find(view.uses[0])
    if isinstance(used, View):
        below = _columns_below(objects, used)
        names = [name for name, _ in used.columns]
        found = dict(zip(names, below, strict=True)) if below else {}
        return [found.get(name or "") for name in facts.plain] if below else []
    if not isinstance(used, Table):
        return []
    return [name if name in used.positions else None for name in facts.plain]
