"""Joins: a hash table of the right side, key look-ups, or a loop over materialized rows.

The consumer is printed once, whatever the kind of join. An outer join loops over the matches or, if
there are none, over one row of NULLs; a full join is materialized before it is consumed; a semi- or
anti-join is only a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from qserver.sql import plan
from qserver.sql.codegen.charges import is_costly
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.materialize import LOOPS_MOST, loops_of, pattern
from qserver.sql.codegen.nans import told_apart
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.codegen.runtime import pages_of
from qserver.sql.codegen.vectors import keep_for_vectors
from qserver.sql.expressions import Expression
from qserver.sql.join_conditions import hash_keys, residual
from qserver.sql.walk import has_subquery, output_sources

MATCHES_FEW = 64


def produce_join(
    pipeline: Pipeline, node: plan.Join, rows: RowVariables, consume: Consumer
) -> None:
    assert node.kind != "right", "a rule has turned right joins around"
    if node.kind == "full":
        _full(pipeline, node, rows, consume)
        return
    left = node.left
    prepared = _prepare_right(pipeline, node, rows)

    def inside(inner: RowVariables) -> None:
        _PRINTERS[node.kind](pipeline, node, prepared, inner, consume)

    if loops_of(left) >= LOOPS_MOST:
        name = pipeline.keep(left, rows)
        pipeline.replay(name, left, rows, inside)
    else:
        pipeline.produce(left, rows, inside)


def _prepare_right(pipeline: Pipeline, node: plan.Join, rows: RowVariables) -> str:
    """Print the hash table or list of the right side; return its name, or "" if there is none."""
    if node.lateral or node.method == "index":
        return ""
    if node.method != "hash":
        return pipeline.keep(node.right, rows)
    source = pipeline.source
    name = source.fresh("hash")
    source.line(f"{name} = {{}}")
    sources = output_sources(node.right)
    keys = tuple(right for _, right in hash_keys(node))
    if node.vectors:
        keep_for_vectors(pipeline, node, rows, keys, name)
        return name
    measure = pipeline.measure(node.right, sources)

    def inside(inner: RowVariables) -> None:
        key, checks = _key(pipeline, keys, inner)
        item = pattern(sources, inner)
        with source.block_if(checks):
            found = source.fresh("found")
            source.line(f"{found} = {name}.get({key})")
            with source.block(f"if {found} is None:"):
                source.line(f"{name}[{key}] = [{item}]")
                pipeline.charge_memory(name, len(sources))
            with source.block("else:"):
                source.line(f"{found}.append({item})")
                pipeline.charge_memory(found, len(sources))
            measure(inner)

    pipeline.produce(node.right, rows, inside)
    return name


def _key(
    pipeline: Pipeline, keys: tuple[Expression, ...], rows: RowVariables
) -> tuple[str, list[str]]:
    """Print the variables of a hash key; return the key, and checks that no part is NULL."""
    names, checks = [], []
    for key in keys:
        code = told_apart(pipeline.source, key.type, pipeline.printer.value(key, rows))
        name = pipeline.source.fresh("k")
        pipeline.source.line(f"{name} = {code}")
        names.append(name)
        if key.nullable:
            checks.append(f"{name} is not None")
    pipeline.count_looks(zip(keys, names, strict=True))
    return (names[0] if len(names) == 1 else f"({', '.join(names)})"), checks


def _matches(pipeline: Pipeline, node: plan.Join, prepared: str, rows: RowVariables) -> str:
    """Return the code of the right rows that may match the left row, before the condition."""
    if node.method != "hash":
        return prepared
    key, _ = _key(pipeline, tuple(left for left, _ in hash_keys(node)), rows)
    return f"{prepared}.get({key}, ())"


def _named_matches(pipeline: Pipeline, node: plan.Join, prepared: str, rows: RowVariables) -> str:
    """Assign the possible matches to a variable, and charge their steps."""
    found = pipeline.source.fresh("found")
    pipeline.source.line(f"{found} = {_matches(pipeline, node, prepared, rows)}")
    _pace_many(pipeline, found)
    return found


def _inner(
    pipeline: Pipeline, node: plan.Join, prepared: str, rows: RowVariables, consume: Consumer
) -> None:
    condition = residual(node)

    def inside(inner: RowVariables) -> None:
        if condition is None:
            consume(inner)
            return
        with pipeline.source.block(f"if {pipeline.printer.truth(condition, inner)}:"):
            consume(inner)

    if not prepared:
        pipeline.produce(node.right, rows, inside)
        return
    _loop_over_matches(pipeline, node, prepared, rows, inside)


def _loop_over_matches(
    pipeline: Pipeline, node: plan.Join, prepared: str, rows: RowVariables, inside: Consumer
) -> None:
    sources = output_sources(node.right)
    if node.method != "hash":
        pipeline.loop_over(prepared, sources, rows, inside)
        return
    found = _named_matches(pipeline, node, prepared, rows)
    target, inner = pipeline.unpack(sources, rows)
    with pipeline.for_each(target, found):
        inside(inner)


def _pace_many(pipeline: Pipeline, found: str) -> None:
    """Charge many matches. Few cost nothing beside the left row, whose own loop is charged."""
    with pipeline.source.block(f"if len({found}) > {MATCHES_FEW}:"):
        pipeline.charge_rows(f"len({found})")


def _left(
    pipeline: Pipeline, node: plan.Join, prepared: str, rows: RowVariables, consume: Consumer
) -> None:
    source = pipeline.source
    sources = output_sources(node.right)
    nulls = _nulls(pipeline, node.right)
    condition = residual(node)
    if not prepared:
        found = source.fresh("found")
        source.line(f"{found} = []")

        def inside(inner: RowVariables) -> None:
            item = pattern(sources, inner)
            if condition is None:
                source.line(f"{found}.append({item})")
                return
            with source.block(f"if {pipeline.printer.truth(condition, inner)}:"):
                source.line(f"{found}.append({item})")

        pipeline.produce(node.right, rows, inside)
        candidates = found
    else:
        candidates = _named_matches(pipeline, node, prepared, rows)
        if condition is not None:
            candidates = _chosen(pipeline, node, condition, candidates, rows)
    target, inner = pipeline.unpack(sources, rows)
    with pipeline.for_each(target, f"{candidates} or {nulls}"):
        consume(inner)


def _chosen(
    pipeline: Pipeline, node: plan.Join, condition: Expression, candidates: str, rows: RowVariables
) -> str:
    """Print the list of candidates that satisfy the condition; return its name.

    A comprehension selects among few; the loop over many has yield checks.
    """
    source, sources = pipeline.source, output_sources(node.right)
    found = source.fresh("found")
    target, inner = pipeline.unpack(sources, rows)
    item = target if len(sources) == 1 else pattern(sources, inner)
    truth = pipeline.printer.truth(condition, inner)
    if is_costly(condition) or has_subquery(condition):
        source.line(f"{found} = []")
        with pipeline.loop_by_pages(target, candidates), source.block(f"if {truth}:"):
            source.line(f"{found}.append({item})")
        return found
    with source.block(f"if len({candidates}) <= {MATCHES_FEW}:"):
        source.line(f"{found} = [{item} for {target} in {candidates} if {truth}]")
    with source.block("else:"):
        page = source.fresh("page")
        source.name("pages_of", pages_of)
        source.line(f"{found} = []")
        with source.block(f"for {page} in pages_of({candidates}):"):
            pipeline.charge_rows(f"len({page})")
            source.line(f"{found} += [{item} for {target} in {page} if {truth}]")
    return found


def _any(
    pipeline: Pipeline, node: plan.Join, condition: Expression, candidates: str, rows: RowVariables
) -> str:
    """Print whether one of the candidates satisfies the condition; return the result's name."""
    source, sources = pipeline.source, output_sources(node.right)
    found = source.fresh("found")
    target, inner = pipeline.unpack(sources, rows)
    truth = pipeline.printer.truth(condition, inner)
    counted = is_costly(condition) or has_subquery(condition)
    page = source.fresh("page")
    source.name("pages_of", pages_of)
    source.line(f"{found} = False")
    with source.block(f"for {page} in pages_of({candidates}):"):
        pipeline.charge_rows(f"len({page})" if counted else f"(len({page}) > {MATCHES_FEW})")
        if not counted:
            source.line(f"{found} = any(True for {target} in {page} if {truth})")
        else:
            with pipeline.for_each(target, page), source.block(f"if {truth}:"):
                source.line(f"{found} = True")
                source.line("break")
        with source.block(f"if {found}:"):
            source.line("break")
    return found


def _nulls(pipeline: Pipeline, node: plan.Plan) -> str:
    """Return a list with one item, the rows of NULLs that stand for no match."""
    widths = [_width(node, made) for made in output_sources(node)]
    rows = tuple((None,) * width for width in widths)
    return pipeline.source.known([rows[0] if len(rows) == 1 else rows], "nulls")


def _width(node: plan.Plan, made: int) -> int:
    from qserver.sql.walk import everything

    for each in everything(node):
        if getattr(each, "source", None) != made:
            continue
        if isinstance(each, plan.Scan):
            return len(each.table.columns)
        if isinstance(each, plan.Count):
            return 2
        if isinstance(each, plan.Aggregate):
            return len(each.keys) + len(each.calls) + 1
        if isinstance(each, plan.Window):
            return len(each.calls)
        if isinstance(each, plan.FunctionScan):
            return len(each.columns) + each.ordinality
        if hasattr(each, "columns"):
            return len(each.columns)
    raise AssertionError(f"nobody makes source {made}")


def _if_any(
    head: str,
    pipeline: Pipeline,
    node: plan.Join,
    prepared: str,
    rows: RowVariables,
    consume: Consumer,
) -> None:
    assert prepared, "a semi-join keeps its right side"
    candidates = _named_matches(pipeline, node, prepared, rows)
    condition = residual(node)
    if condition is not None:
        candidates = _any(pipeline, node, condition, candidates, rows)
    with pipeline.source.block(head.format(candidates)):
        consume(rows)


def _full(pipeline: Pipeline, node: plan.Join, rows: RowVariables, consume: Consumer) -> None:
    """Materialize the matches, then add the unmatched rows of both sides."""
    source = pipeline.source
    line = source.line
    right = pipeline.keep(node.right, rows)
    found, matched, both = source.fresh("found"), source.fresh("matched"), source.fresh("rows")
    line(f"{both}, {matched} = [], set()")
    left_sources, right_sources = output_sources(node.left), output_sources(node.right)
    by_key = source.fresh("hash")
    condition = residual(node)
    keys = hash_keys(node) if node.method == "hash" else ()
    if keys:
        line(f"{by_key} = {{}}")
        number = source.fresh("n")
        target, inner = pipeline.unpack(right_sources, rows)
        with pipeline.loop_by_pages(f"{number}, {target}", f"enumerate({right})"):
            key, _ = _key(pipeline, tuple(each for _, each in keys), inner)
            line(f"{by_key}.setdefault({key}, []).append({number})")

    def inside(inner: RowVariables) -> None:
        line(f"{found} = False")
        if not keys:
            pipeline.charge_rows(f"len({right})")
        if keys:
            key, checks = _key(pipeline, tuple(each for each, _ in keys), inner)
            numbers = f"{by_key}.get({key}, ())"
            if checks:
                numbers = f"({numbers} if {' and '.join(checks)} else ())"
        else:
            numbers = f"range(len({right}))"
        number = source.fresh("n")
        target, deeper = pipeline.unpack(right_sources, inner)
        with pipeline.for_each(number, numbers):
            line(f"{target} = {right}[{number}]")
            truth = "True"
            if condition is not None:
                truth = pipeline.printer.truth(condition, deeper)
            with source.block(f"if {truth}:"):
                line(f"{found} = True")
                line(f"{matched}.add({number})")
                line(f"{both}.append({pattern(left_sources + right_sources, deeper)})")
                pipeline.charge_memory(both, len(left_sources + right_sources))
        with source.block(f"if not {found}:"):
            nulls = f"{_nulls(pipeline, node.right)}[0]"
            theirs = nulls if len(right_sources) == 1 else f"*{nulls}"
            mine = ", ".join(inner.row(made) for made in left_sources)
            line(f"{both}.append(({mine}, {theirs}))")

    pipeline.produce(node.left, rows, inside)
    number, item = source.fresh("n"), source.fresh("t")
    with pipeline.loop_by_pages(f"{number}, {item}", f"enumerate({right})"):
        with source.block(f"if {number} not in {matched}:"):
            nulls = f"{_nulls(pipeline, node.left)}[0]"
            mine = nulls if len(left_sources) == 1 else f"*{nulls}"
            theirs = item if len(right_sources) == 1 else f"*{item}"
            line(f"{both}.append(({mine}, {theirs}))")
    pipeline.loop_over(both, left_sources + right_sources, rows, consume)


_PRINTERS: Mapping[str, Callable[..., None]] = {
    "inner": _inner,
    "cross": _inner,
    "left": _left,
    "semi": partial(_if_any, "if {}:"),
    "anti": partial(_if_any, "if not {}:"),
}
