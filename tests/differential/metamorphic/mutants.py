"""Planted bugs: what rules, generated code and the engine could do wrong, to see that it is found.

A net that catches nothing proves something only if it would have caught a bug. Each mutant replaces
one function of the product for the time of a hunt, from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any, Final

from qserver.query import planning
from qserver.query.row_stream import RowStream
from qserver.sql import parameters, plan
from qserver.sql.codegen import compile as compiling
from qserver.sql.codegen import joins, set_operations, subqueries
from qserver.sql.codegen.expressions import Printer
from qserver.sql.codegen.pipeline import Pipeline
from qserver.sql.codegen.set_operations import produce_distinct
from qserver.sql.codegen.subqueries import Subqueries
from qserver.sql.expressions import Expression
from qserver.sql.optimizer.estimate import estimate
from qserver.sql.vectors import operations
from qserver.sql.walk import conjunction, conjuncts, rebuilt, sources_named
from qserver.storage import columns, transaction
from qserver.values.vectors import Vector
from simulations.mutants.mutant import Mutant, planted
from tests.differential.metamorphic.campaign import Campaign, Report
from tests.differential.metamorphic.cases import ORDINARY, SAME
from tests.differential.metamorphic.relations import RELATIONS

# The packages name the functions as they name their modules.
prepare = import_module("qserver.sql.prepare")
(
    access_path_selection,
    aggregate_elimination,
    join_ordering,
    or_factoring,
    orders,
    predicate_pushdown,
    sort_elimination,
    subquery_unnesting,
) = (
    import_module(f"qserver.sql.optimizer.{name}")
    for name in (
        "access_path_selection",
        "aggregate_elimination",
        "join_ordering",
        "or_factoring",
        "orders",
        "predicate_pushdown",
        "sort_elimination",
        "subquery_unnesting",
    )
)

Change = Callable[[Any], Any]

LITERALS_OF_SHAPE: Final = 3


# --- rules ---------------------------------------------------------------------------------------


def _lose_conditions_in_common_tables(original: Any) -> Any:
    """Joins of a common table are ordered twice; the second time drops what the first hashed."""

    def without_equalities(node: Any) -> Any:
        if isinstance(node, plan.Join) and node.method == "hash":
            kept = [
                each for each in conjuncts(node.condition) if not join_ordering.is_equality(each)
            ]
            return replace(node, method="loop", condition=conjunction(kept))
        return node

    def in_common_tables(node: Any) -> Any:
        if isinstance(node, plan.CommonTable) and not isinstance(node.plan, plan.Change):
            return replace(node, plan=rebuilt(node.plan, without_equalities))
        return node

    def optimize(*arguments: Any) -> Any:
        return rebuilt(original(*arguments), in_common_tables)

    return optimize


def _join_by_one_condition(original: Any) -> Any:
    def conjunction_of_first(conditions: Any) -> Any:
        return original(list(conditions)[:1])

    return conjunction_of_first


def _hash_the_wrong_side(original: Any) -> Any:
    def with_method(node: Any, statistics: Any, left_rows: Any = None) -> Any:
        made = original(node, statistics, left_rows)
        is_smaller = estimate(made.left, statistics) < estimate(made.right, statistics)
        if made.kind == "left" and made.method == "hash" and is_smaller:
            return replace(made, left=made.right, right=made.left)
        return made

    return with_method


def _outer_join_becomes_inner(original: Any) -> Any:
    def refuses_null(condition: Expression, sources: Any) -> bool:
        return bool(sources_named(condition) & frozenset(sources))

    return refuses_null


def _conditions_of_left_join_go_left(original: Any) -> Any:
    """What ON says of the left side alone filters the left side."""

    def push_left(node: plan.Join, conditions: Any) -> Any:
        right = frozenset(predicate_pushdown.output_sources(node.right))
        on = conjuncts(node.condition)
        moved = tuple(each for each in on if not sources_named(each) & right)
        kept = [each for each in on if sources_named(each) & right]
        return original(replace(node, condition=conjunction(kept)), (*conditions, *moved))

    return push_left


def _anti_join_for_not_in(original: Any) -> Any:
    """NOT IN becomes an anti-join, as if no value were NULL."""

    def joined(left: Any, condition: Any) -> Any:
        if isinstance(condition, subquery_unnesting.Not):
            inner = condition.operand
            if isinstance(inner, subquery_unnesting.InQuery) and not inner.negated:
                made = subquery_unnesting._semi_join_in(left, inner)
                return None if made is None else replace(made, kind="anti")
        if isinstance(condition, subquery_unnesting.InQuery) and condition.negated:
            made = subquery_unnesting._semi_join_in(left, replace(condition, negated=False))
            return None if made is None else replace(made, kind="anti")
        return original(left, condition)

    return joined


def _bounds_are_never_included(original: Any) -> Any:
    def note(scan: Any, terms: Any, column: Any, symbol: str, *rest: Any) -> Any:
        return original(scan, terms, column, symbol.removesuffix("=") or symbol, *rest)

    return note


def _limit_before_the_condition(original: Any) -> Any:
    """LIMIT is pushed below the condition of the scan that it stands on."""

    def limit(node: plan.Limit, *others: Any) -> Any:
        made = original(node, *others)
        if not isinstance(made, plan.Limit) or not isinstance(made.input, plan.Scan):
            return made
        scan = made.input
        if scan.condition is None:
            return made
        return plan.Filter(replace(made, input=replace(scan, condition=None)), scan.condition)

    return limit


def _read_forward_whatever_is_asked(original: Any) -> Any:
    def direction(*arguments: Any) -> bool | None:
        return None if original(*arguments) is None else False

    return direction


# --- generated code ------------------------------------------------------------------------------


def _null_is_false(original: Any) -> Any:
    def falsity(self: Printer, expression: Expression, rows: Any) -> str:
        return f"(not {self.truth(expression, rows)})"

    return falsity


def _null_equals_null(original: Any) -> Any:
    def key(*arguments: Any) -> tuple[str, list[str]]:
        code, _ = original(*arguments)
        return code, []

    return key


def _semi_join_gives_every_match(original: Any) -> Any:
    return {**original, "semi": original["inner"]}


def _distinct_is_lost(original: Any) -> Any:
    def distinct(pipeline: Pipeline, node: plan.Distinct, rows: Any, consume: Any) -> None:
        if node.on:
            produce_distinct(pipeline, node, rows, consume)
        else:
            pipeline.produce(node.input, rows, consume)

    return {**original, plan.Distinct: distinct}


def _in_is_never_null(original: Any) -> Any:
    def is_in(value: Any, found: Any) -> bool:
        return bool(original(value, found))

    return is_in


def _except_all_as_except(original: Any) -> Any:
    return lambda context, left, right, every: original(context, left, right, False)


def _remember_by_fewer_columns(original: Any) -> Any:
    """The answer of a subquery is remembered by all but the last of the columns that it needs."""

    def function(self: Subqueries, name: str, arguments: list[str], *rest: Any) -> None:
        with self.source.set_aside() as lines:
            original(self, name, arguments, *rest)
        whole, fewer = f"({', '.join(arguments)})", f"({', '.join(arguments[:-1])},)"
        for line in lines:
            is_key = len(arguments) > 1 and "memory" in line
            self.source._lines.append(line.replace(whole, fewer) if is_key else line)

    return function


def _greatest_may_be_null(original: Any) -> Any:
    def extreme(*arguments: Any) -> Any:
        made = original(*arguments)
        if made is None:
            return made
        scan = made.input.input
        access = replace(scan.access, range=replace(scan.access.range, not_null=False))
        return replace(made, input=replace(made.input, input=replace(scan, access=access)))

    return extreme


def _rest_of_or_is_lost(original: Any) -> Any:
    """What all branches of an OR demand is taken out of it, and the OR is thrown away."""

    def factored(condition: Expression) -> list[Expression]:
        made: list[Expression] = original(condition)
        return made[:-1] or made

    return factored


# --- vectors -------------------------------------------------------------------------------------


def _null_is_a_value_the_second_time(original: Any) -> Any:
    """Vectors that an earlier statement filled have lost their NULLs."""

    def column(self: columns.Chunk, wanted: Any) -> Any:
        found = original(self, wanted)
        if self.filled:
            return found
        return Vector(found.values, None, found.low, found.high, found.scale, found.words)

    return column


def _bounds_that_touch_do_not_overlap(original: Any) -> Any:
    """Two columns whose bounds have one value in common are compared as if they had none."""

    def known(symbol: str, left: Any, right: Any) -> bool | None:
        below, above = left.high <= right.low, left.low >= right.high
        if below or above:
            return symbol in ("<>", "<", "<=") if below else symbol in ("<>", ">", ">=")
        decided: bool | None = original(symbol, left, right)
        return decided

    return known


def _bound_arrays_lose_their_end(original: Any) -> Any:
    return lambda value: original(value)[:-1]


# --- the engine ----------------------------------------------------------------------------------


def _plans_are_for_the_first_literals(original: Any) -> Any:
    """Literals become constants of a plan that is kept for all of its shape."""
    return lambda values, fixed=True: original(values, fixed=True)


def _own_writes_are_not_scanned(original: Any) -> Any:
    return lambda stream, own, backward: original(stream, {}, backward)


def _stream_loses_the_end_of_a_page(original: Any) -> Any:
    """Of each page but the first, a stream leaves out the last row."""

    async def step(self: RowStream) -> Any:
        page = await original(self)
        return page[:-1] if page and self._given > len(page) else page

    return step


def _stream_ends_at_a_pause(original: Any) -> Any:
    """A pause behind the first page is taken for the end."""

    async def step(self: RowStream) -> Any:
        page = await original(self)
        if page is None and self._given:
            self._end()
        return page

    return step


def _mutant(
    name: str, explanation: str, question: str, owner: Any, attribute: str, change: Change
) -> Mutant:
    """`question`: the way, or the relation, that is expected to notice."""
    return Mutant(name, explanation, (question,), ((owner, attribute, change),))


SEEDS: Final = {
    "join-in-with": 100,
    "one-condition": 111,
    "wrong-side": 101,
    "inner-for-outer": 107,
    "on-as-where": 200,
    "not-in-as-anti-join": 118,
    "bounds": 306,
    "limit-first": 101,
    "forward": 104,
    "null-is-false": 101,
    "null-equals-null": 101,
    "semi-join-duplicates": 100,
    "distinct": 100,
    "in-is-never-null": 100,
    "except-all": 100,
    "first-literals": 100,
    "own-writes": 100,
    "subquery-memory": 100,
    "greatest-is-null": 101,
    "end-of-a-page": 100,
    "end-at-a-pause": 100,
    "rest-of-or": 101,
    "null-the-second-time": 311,
    "touching-bounds": 1,
    "end-of-an-array": 101,
}
"""Where the hunts of the tests begin: not far from what each of them catches."""


async def hunt(mutant: Mutant, first_seed: int, queries: int) -> Report:
    """Ask in the mutant's way, or relation, until an answer differs; or for so many queries."""
    (question,) = mutant.workloads
    focus = (question, ORDINARY) if question in RELATIONS else (SAME, question)
    campaign = Campaign(literals_of_shape=LITERALS_OF_SHAPE, focus=[focus])
    with planted(mutant):
        return await campaign.run(first_seed, queries)


MUTANTS: Final = (
    _mutant(
        "join-in-with",
        "a join inside WITH loses its equalities",
        "common table",
        prepare,
        "optimize",
        _lose_conditions_in_common_tables,
    ),
    _mutant(
        "one-condition",
        "of several conditions between the same relations only the first is kept",
        "without rules",
        join_ordering,
        "conjunction",
        _join_by_one_condition,
    ),
    _mutant(
        "wrong-side",
        "the smaller side of a left join is hashed, whichever it is",
        "without join_ordering",
        join_ordering,
        "with_method",
        _hash_the_wrong_side,
    ),
    _mutant(
        "inner-for-outer",
        "a left join becomes an inner one when a condition names its right side",
        "without predicate_pushdown",
        predicate_pushdown,
        "refuses_null",
        _outer_join_becomes_inner,
    ),
    _mutant(
        "on-as-where",
        "what ON says of the left side of a left join filters the left side",
        "without predicate_pushdown",
        predicate_pushdown,
        "_push_left",
        _conditions_of_left_join_go_left,
    ),
    _mutant(
        "not-in-as-anti-join",
        "a correlated NOT IN becomes an anti-join, as if nothing were NULL",
        "without subquery_unnesting",
        subquery_unnesting,
        "_joined",
        _anti_join_for_not_in,
    ),
    _mutant(
        "bounds",
        "a range by key leaves out its ends",
        "without access_path_selection",
        access_path_selection,
        "_note",
        _bounds_are_never_included,
    ),
    _mutant(
        "limit-first",
        "LIMIT cuts the rows of a scan before its condition has been looked at",
        "without sort_elimination",
        sort_elimination,
        "_limit",
        _limit_before_the_condition,
    ),
    _mutant(
        "forward",
        "a scan in descending order reads forward",
        "without sort_elimination",
        orders,
        "_direction",
        _read_forward_whatever_is_asked,
    ),
    _mutant(
        "null-is-false",
        "NOT of NULL is true",
        "condition within",
        Printer,
        "falsity",
        _null_is_false,
    ),
    _mutant(
        "null-equals-null",
        "hash joins find NULL for NULL",
        "without join_ordering",
        joins,
        "_key",
        _null_equals_null,
    ),
    _mutant(
        "semi-join-duplicates",
        "a semi-join gives a row once for each match",
        "semi-join with itself",
        joins,
        "_PRINTERS",
        _semi_join_gives_every_match,
    ),
    _mutant("distinct", "DISTINCT is lost", "distinct", compiling, "PRODUCERS", _distinct_is_lost),
    _mutant(
        "in-is-never-null",
        "IN of a query is false where it should be NULL",
        "not in itself",
        subqueries,
        "is_in",
        _in_is_never_null,
    ),
    _mutant(
        "except-all",
        "EXCEPT ALL is EXCEPT",
        "doubled, except all itself",
        set_operations,
        "except_rows",
        _except_all_as_except,
    ),
    _mutant(
        "first-literals",
        "a kept plan answers for the literals that it was made for",
        "fresh plan",
        planning,
        "Literals",
        _plans_are_for_the_first_literals,
    ),
    _mutant(
        "subquery-memory",
        "what a subquery has answered is remembered by fewer columns than it depends on",
        "subquery again for each row",
        Subqueries,
        "_function",
        _remember_by_fewer_columns,
    ),
    _mutant(
        "greatest-is-null",
        "the greatest of an index may be NULL",
        "without aggregate_elimination",
        aggregate_elimination,
        "_extreme",
        _greatest_may_be_null,
    ),
    _mutant(
        "end-of-a-page",
        "a stream leaves out the last row of a page that is not the first",
        "streamed",
        RowStream,
        "step",
        _stream_loses_the_end_of_a_page,
    ),
    _mutant(
        "end-at-a-pause",
        "a stream takes a pause for its end",
        "streamed",
        RowStream,
        "step",
        _stream_ends_at_a_pause,
    ),
    _mutant(
        "own-writes",
        "a transaction does not see its own writes when it scans",
        "own writes",
        transaction,
        "_overlaid",
        _own_writes_are_not_scanned,
    ),
    _mutant(
        "rest-of-or",
        "an OR is lost when what its branches have in common is taken out of it",
        "without or_factoring",
        or_factoring,
        "_factored",
        _rest_of_or_is_lost,
    ),
    _mutant(
        "null-the-second-time",
        "vectors that are there already have no NULLs",
        "again",
        columns.Chunk,
        "column",
        _null_is_a_value_the_second_time,
    ),
    _mutant(
        "touching-bounds",
        "two columns are taken for different everywhere if the bounds of one end where those of"
        " the other begin",
        "again",
        operations,
        "_known",
        _bounds_that_touch_do_not_overlap,
    ),
    _mutant(
        "end-of-an-array",
        "an array that is given as a parameter loses its last element",
        "bound",
        parameters,
        "_listed",
        _bound_arrays_lose_their_end,
    ),
)
