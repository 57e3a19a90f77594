"""Compiles a plan once more, for EXPLAIN ANALYZE: the same loops, which tell a `Profile` of rows.

    meter_0.begin()
    for page in scan_values(…):            Scan
        for r0 in page:
            meter_0.looked_at += 1
            if r0[2] > slot0:
                meter_0.row()
                out.append(…)              the consumer
                meter_0.back()
    meter_0.end()

Nothing else differs, but that a plain scan is not read by comprehensions. Row code sees nothing of
the chunks that an aggregate or a join takes as vectors: there `_Watched` counts. The function is of
one execution, since its meters are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.measuring import Meter, Profile
from qserver.sql.plan import Change, Plan, Select
from qserver.sql.vectors.scans import VectorAggregate, VectorBuild, VectorFilter, VectorTop
from qserver.sql.vectors.trees import Part, Tree
from qserver.sql.walk import everything


class MeasuredPipeline(Pipeline):
    """Prints the calls of meters around and into the loops of each node."""

    is_measured = True
    profile: Profile

    def produce(self, node: Plan, rows: RowVariables, consume: Consumer) -> None:
        meter = self.profile.of(node)
        if meter is None:  # it was made while this was printed: its time is that of the one above
            super().produce(node, rows, consume)
            return
        name, line = self.source.known(meter, "meter"), self.source.line

        def inside(inner: RowVariables) -> None:
            line(f"{name}.row()")
            consume(inner)
            line(f"{name}.back()")

        line(f"{name}.begin()")
        super().produce(node, rows, inside)
        line(f"{name}.end()")

    @contextmanager
    def changing(self, statement: Change) -> Iterator[None]:
        meter = self.profile.of(statement)
        assert meter is not None, "every change of a statement is shown"
        name = self.source.known(meter, "meter")
        self.source.line(f"{name}.begin()")
        yield
        self.source.line(f"{name}.end()")

    def count_changed(self, statement: Change, rows: str) -> None:
        name = self.source.known(self.profile.of(statement), "meter")
        self.source.line(f"{name}.add({rows})")

    def look_at(self, node: plan.Scan) -> None:
        meter = self.profile.of(node)
        if meter is not None:
            self.source.line(f"{self.source.known(meter, 'meter')}.looked_at += 1")

    def inside_a_function(self) -> Pipeline:
        inner = MeasuredPipeline(self.source, self.printer, self.producers, may_yield=False)
        inner.profile = self.profile
        self.source.functions += 1
        return inner


# --- vectors -------------------------------------------------------------------------------------


def watch_vectors(namespace: dict[str, Any], statement: Select | Change, profile: Profile) -> None:
    """Have what computes over vectors tell of its chunks."""
    scans: dict[int, Meter | None] = {}
    chains: dict[int, list[list[Meter]]] = {}
    workers: dict[int, Meter | None] = {}
    for node in everything(statement):
        if type(node) is plan.Scan:
            scans[node.source] = profile.of(node)
        elif type(node) is plan.Aggregate and node.vectors:
            source, chain = _chain(node.input, profile)
            workers[source], chains[source] = profile.of(node), chain
    for name, made in namespace.items():
        if isinstance(made, Tree):
            namespace[name] = replace(made, watch=_WatchedTree(profile))
        if not isinstance(made, VectorAggregate | VectorBuild | VectorFilter | VectorTop):
            continue
        source = made.condition.program.source
        scan = scans.get(source)
        if scan is None:
            continue
        if isinstance(made, VectorAggregate):
            made = replace(made, watch=_Watched(workers[source] or scan, scan, chains[source]))
        elif isinstance(made, VectorBuild):
            made = replace(made, watch=_Watched(scan, scan, [[scan]]))
        namespace[name] = _LookedAt(made, scan)


def _chain(node: Plan, profile: Profile) -> tuple[int, list[list[Meter]]]:
    """Return the source of the scan at the end of a chain of joins, and the meters of each step.

    A filter is applied with the join below it, so both count the rows that are left.
    """
    if isinstance(node, plan.Scan):
        source, chain = node.source, list[list[Meter]]()
    else:
        assert isinstance(node, plan.Join | plan.Filter)
        source, chain = _chain(node.left if isinstance(node, plan.Join) else node.input, profile)
    meter = profile.of(node)
    here = [] if meter is None else [meter]
    if isinstance(node, plan.Filter):
        chain[-1] += here
    else:
        chain.append(here)
    return source, chain


class _Watched:
    """Told of each batch of chunks: before it is tried, and how many rows went through."""

    def __init__(self, worker: Meter, scan: Meter, steps: list[list[Meter]]) -> None:
        self._worker = worker
        self._scan = scan
        self._steps = steps

    def before(self) -> None:
        self._worker.back()

    def after(self, lengths: list[int]) -> None:
        """`lengths`: the rows of the scan, then those after each join; none if it was refused."""
        for meters, rows in zip(self._steps, lengths, strict=False):
            for meter in meters:
                meter.add(rows)
        self._scan.back()


class _WatchedTree:
    """Counts the rows of each part of a vector tree."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def batches(self, part: Part, batches: Iterator[Any]) -> Iterator[Any]:
        meter = self._profile.of(part)
        assert meter is not None, "every part has a meter"
        meter.begin()
        for batch in batches:
            if batch is not None:
                meter.add(batch.length)
            self._profile.turn_to(meter.parent)
            yield batch
            meter.back()
        meter.end()

    def looked_at(self, part: Part, rows: int) -> None:
        meter = self._profile.of(part)
        assert meter is not None, "every part has a meter"
        meter.looked_at += rows


class _LookedAt:
    """Counts the rows of the chunks that a scan reads."""

    def __init__(self, vectors: Any, scan: Meter) -> None:
        self._vectors = vectors
        self._scan = scan

    def pages(self, parts: Iterable[Any], *rest: Any) -> Iterator[Any]:
        pages: Iterator[Any] = self._vectors.pages(self._counted(parts), *rest)
        return pages

    def _counted(self, parts: Iterable[Any]) -> Iterator[Any]:
        for part in parts:
            self._scan.looked_at += len(part) if isinstance(part, list) else part.length
            yield part
