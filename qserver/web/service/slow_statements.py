"""Reports slow statements: one line of JSON in the server's log, with the plan and no values.

    {"kind": "slow statement", "queryid": "…", "query": "… $1", "ms": …, "cpu_ms": …, "rows": …,
     "organization": "…", "database": "…", "key_id": "…", "request_id": "…", "plan": {…}}

The plan has the kinds of its nodes, the relations and the estimated rows, but no condition: one
may show a value on which the plan depends.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from qserver.query.statement_counting import MS
from qserver.query.statement_statistics import SlowRun
from qserver.sql import explain_as_json
from qserver.web.service.log_lines import FIELDS
from qserver.web.statements.json_values import encode_json

SHOWN: Final = frozenset(
    {"Node Type", "Operation", "Relation Name", "Alias", "Index Name", "Scan Direction"}
    | {"Parent Relationship", "Plan Rows"}
)
"""What of a node is shown: nothing that a value could be in."""
logger: Final = logging.getLogger("qserver")


def report_to_log(name_of: Callable[[str], str]) -> Callable[[SlowRun], None]:
    """Return what reports a run. `name_of` finds the name of a database."""

    def report(run: SlowRun) -> None:
        fields = fields_of(run, name_of(run.database))
        logger.warning("slow statement %s", encode_json(fields).decode(), extra={FIELDS: fields})

    return report


def fields_of(run: SlowRun, name: str) -> dict[str, Any]:
    plan = run.cursor.plan
    allowed, request_id = run.cursor.context.asked_by()
    return {
        "kind": "slow statement",
        "queryid": str(run.number),
        "query": run.text,
        "ms": round(run.seconds * MS, 3),
        "cpu_ms": round(max(0.0, run.seconds - run.waited) * MS, 3),
        "rows": run.rows,
        "memory_bytes": run.cursor.context.held,
        "organization": run.organization,
        "database_id": run.database,
        "database": name,
        "key_id": allowed.key_id or None,
        "request_id": request_id,
        "plan": None if plan is None else without_values(explain_as_json(plan.statement)),
    }


def without_values(node: Mapping[str, Any]) -> dict[str, Any]:
    """Return a node of a plan, and those below it, without conditions."""
    shown = {name: value for name, value in node.items() if name in SHOWN}
    if "Plans" in node:
        shown["Plans"] = [without_values(each) for each in node["Plans"]]
    return shown
