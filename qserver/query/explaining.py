"""What EXPLAIN answers: lines of text, or one value of JSON, YAML or XML."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from qserver.errors import InvalidParameterValue
from qserver.query.explain_formats import WRITERS
from qserver.query.plan_cache import CachedPlan
from qserver.sql import Details, Profile, Rows, ast, explain, explain_as_json, explain_live
from qserver.values.types import JSON, TEXT, SqlType

UTILITY: Final = "Utility Statement"
"""What PostgreSQL says of a statement without a plan."""


class Options(msgspec.Struct, frozen=True):
    """The options of one EXPLAIN; where one is given twice the last counts."""

    format: str = "text"
    analyze: bool = False
    verbose: bool = False
    costs: bool = True
    buffers: bool = False
    timing: bool = True
    summary: bool = False
    code: bool = False
    live: bool = False


_WITHOUT_EFFECT: Final = frozenset({"settings", "wal"})
"""No setting changes a plan, and the log is written after a statement has ended."""


def options_of(node: ast.Explain) -> Options:
    given: dict[str, Any] = {}
    for option in node.options:
        name, _, value = option.partition(" ")
        given[name] = value if name == "format" else not value
    for name in ("wal", "timing"):
        if given.get(name) and not given.get("analyze"):
            raise InvalidParameterValue(f"EXPLAIN option {name.upper()} requires ANALYZE")
    given.setdefault("summary", given.get("analyze", False))
    return Options(**{name: each for name, each in given.items() if name not in _WITHOUT_EFFECT})


class Counts(msgspec.Struct, frozen=True):
    """What ANALYZE has seen of the whole statement."""

    changed: int | None
    """None for a query."""
    loaded: int
    """Pages."""
    seconds: float


class Explained(msgspec.Struct, frozen=True):
    """A plan, how long it took to make, and what was measured if it was run."""

    plan: CachedPlan
    slots: Any
    planning_seconds: float
    profile: Profile | None = None
    counts: Counts | None = None


def columns_of_explain(node: ast.Explain) -> tuple[tuple[str, ...], tuple[SqlType, ...]]:
    formats = [option for option in node.options if option.startswith("format ")]
    return ("QUERY PLAN",), (JSON if formats[-1:] == ["format json"] else TEXT,)


def shown_without_plan(options: Options, text: str = UTILITY) -> Rows:
    write = WRITERS.get(options.format)
    return [(text if write is None else write(text),)]


def shown(options: Options, made: Explained) -> Rows:
    """Return the rows that show a plan, and what was measured if it was run."""
    write = WRITERS.get(options.format)
    if write is None:
        return [(line,) for line in _lines(options, made)]
    return [(write(_tree(options, made)),)]


def _details(options: Options, made: Explained) -> Details:
    shown = options.costs, options.verbose, options.timing, options.buffers
    return Details(*shown, made.profile)


def _lines(options: Options, made: Explained) -> Iterator[str]:
    plan, counts = made.plan, made.counts
    yield from explain(plan.statement, _details(options, made))
    if counts is not None:
        if counts.changed is not None:
            yield f"Changed rows: {counts.changed}"
        if counts.loaded:
            yield f"Pages loaded: {counts.loaded}"
    if options.live:
        yield explain_live(plan.statement, made.slots)
    if options.summary:
        yield f"Planning Time: {1000 * made.planning_seconds:.3f} ms"
        if counts is not None:
            yield f"Execution Time: {1000 * counts.seconds:.3f} ms"
    if options.code:
        yield ""
        yield from plan.compiled.source.splitlines()


def _tree(options: Options, made: Explained) -> dict[str, Any]:
    plan, counts = made.plan, made.counts
    found: dict[str, Any] = {"Plan": explain_as_json(plan.statement, _details(options, made))}
    if counts is not None:
        if counts.changed is not None:
            found["Changed Rows"] = counts.changed
        found["Pages Loaded"] = counts.loaded
    if options.live:
        found["Live"] = explain_live(plan.statement, made.slots).removeprefix("Live: ")
    if options.summary:
        found["Planning Time"] = round(1000 * made.planning_seconds, 3)
    if counts is not None:
        found["Triggers"] = []
        if options.summary:
            found["Execution Time"] = round(1000 * counts.seconds, 3)
    if options.code:
        found["Code"] = plan.compiled.source
    return found
