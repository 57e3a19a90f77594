"""What EXPLAIN answers: lines of text, or one value of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from qserver.query.plan_cache import CachedPlan
from qserver.sql import Rows, ast, explain, explain_as_json, explain_live
from qserver.values.types import JSON, TEXT, SqlType

UTILITY = "Utility Statement"
"""What PostgreSQL says of a statement without a plan."""


class Counts(msgspec.Struct, frozen=True):
    """What ANALYZE has seen."""

    rows: int
    changed: int | None
    """None for a query."""
    loaded: int
    """Pages."""
    seconds: float


def columns_of_explain(node: ast.Explain) -> tuple[tuple[str, ...], tuple[SqlType, ...]]:
    return ("QUERY PLAN",), (JSON if _is_json(node) else TEXT,)


def _is_json(node: ast.Explain) -> bool:
    formats = [option for option in node.options if option.startswith("format ")]
    return formats[-1:] == ["format json"]


def shown_without_plan(node: ast.Explain) -> Rows:
    return [(json.dumps([UTILITY], indent=2) if _is_json(node) else UTILITY,)]


def shown(node: ast.Explain, plan: CachedPlan, slots: Any, counts: Counts | None) -> Rows:
    """Return the rows that show a plan, and what was counted if it was run."""
    if _is_json(node):
        return [(json.dumps([_tree(node, plan, slots, counts)], indent=2, ensure_ascii=False),)]
    return [(line,) for line in _lines(node, plan, slots, counts)]


def _lines(node: ast.Explain, plan: CachedPlan, slots: Any, counts: Counts | None) -> Iterator[str]:
    yield from explain(plan.statement)
    if counts is not None:
        changed = "" if counts.changed is None else f", changed: {counts.changed}"
        yield f"Actual rows: {counts.rows}{changed}"
        if counts.loaded:
            yield f"Pages loaded: {counts.loaded}"
    if "live" in node.options:
        yield explain_live(plan.statement, slots)
    if "code" in node.options:
        yield ""
        yield from plan.compiled.source.splitlines()


def _tree(node: ast.Explain, plan: CachedPlan, slots: Any, counts: Counts | None) -> dict[str, Any]:
    tree = explain_as_json(plan.statement)
    found: dict[str, Any] = {"Plan": tree}
    if counts is not None:
        tree["Actual Rows"] = counts.rows
        if counts.changed is not None:
            found["Changed Rows"] = counts.changed
        found["Pages Loaded"] = counts.loaded
        found["Execution Time"] = round(1000 * counts.seconds, 3)
    if "live" in node.options:
        found["Live"] = explain_live(plan.statement, slots).removeprefix("Live: ")
    if "code" in node.options:
        found["Code"] = plan.compiled.source
    return found
