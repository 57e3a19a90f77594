"""Plans vector trees: from the tree of a plan, before its joins are ordered, to parts.

A subquery in a condition becomes a join: IN a semi-join, NOT IN a join that knows NULL, and a
single value of a query without outer columns one row for all. An aggregate that the rows of the
outer query choose the rows of becomes a join with its groups:

    a.y < (SELECT avg(b.y) FROM b WHERE b.x = a.x)      b grouped by x, joined by x = a.x

For a row without a group the value is NULL, so the aggregate may not count. Groups that nobody asks
for are computed too, but they raise nothing: a tree is refused instead.

`NotVectorized` means that a plan has no tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from qserver.sql import plan
from qserver.sql.expressions import (
    AggregateCall,
    Apply,
    Case,
    Cast,
    Column,
    Constant,
    Expression,
    Folded,
    InQuery,
    Not,
    ScalarQuery,
    Slot,
)
from qserver.sql.join_conditions import KeyPair, divided_between, is_equality
from qserver.sql.plan import Plan
from qserver.sql.vectors.planning import constant_kind
from qserver.sql.vectors.plans import Check
from qserver.sql.vectors.program import NotVectorized, joined_columns
from qserver.sql.vectors.tree_ordering import Relation, RowsOf, ordered
from qserver.sql.vectors.tree_programs import Computed, Known, TreeProgram, tree_column
from qserver.sql.vectors.trees import (
    FilterPart,
    GroupCall,
    GroupPart,
    JoinPart,
    Output,
    Part,
    ProjectPart,
    ScanPart,
    Tree,
)
from qserver.sql.walk import (
    conjunction,
    conjuncts,
    free_sources,
    has_subquery,
    is_volatile,
    output_sources,
    rewritten,
    sources_named,
)
from qserver.values import vector_families as families
from qserver.values.types import Kind
from qserver.values.vector_families import family_of

_NUMBERS: Final = frozenset({families.INTEGER, families.NUMERIC})
_TIMES: Final = frozenset({families.DATE, families.TIMESTAMP, families.ZONED})
_KEYS: Final = _NUMBERS | _TIMES | {families.BOOLEAN, families.TEXT}
_ARGUMENTS: Final = {
    "sum": _NUMBERS,
    "avg": _NUMBERS,
    "min": _NUMBERS | _TIMES,
    "max": _NUMBERS | _TIMES,
}


class Planned:
    """What a planned tree needs for its execution, beside the tree."""

    def __init__(
        self,
        tree: Tree,
        scans: list[plan.Scan],
        constants: list[Expression],
        finishes: list[AggregateCall],
        known: Known,
    ) -> None:
        self.tree = tree
        self.scans = scans
        self.constants = constants
        self.finishes = finishes
        self.known = known


def planned_tree(node: Plan, above: Iterable[Column], rows_of: RowsOf) -> Planned:
    """Return the tree of a plan; `above` are the columns that others read of it."""
    if free_sources(node):
        raise NotVectorized
    return _Planner(rows_of).planned(node, above)


class _Planner:
    def __init__(self, rows_of: RowsOf) -> None:
        self._rows_of = rows_of
        self._known: Known = {}
        self._constants: list[Expression] = []
        self._scans: list[plan.Scan] = []
        self._finishes: list[AggregateCall] = []
        self._programs: list[TreeProgram] = []
        self._joins = 0
        self._groups = 0

    def planned(self, node: Plan, above: Iterable[Column]) -> Planned:
        root = self._part(node)
        wanted = {tree_column(column, self._known) for column in above}
        outputs = []
        for source in output_sources(node):
            maker = self._known[source]
            computed = isinstance(maker, Computed)
            width = len(maker.kinds) + 1 if isinstance(maker, Computed) else len(maker.columns)
            columns = sorted(each for each in wanted if each.source == source)
            if computed and not isinstance(root, GroupPart | FilterPart):
                raise NotVectorized
            outputs.append(Output(source, width, tuple(columns)))
        tree = Tree(
            root,
            tuple(outputs),
            joined_columns(*self._programs) | wanted,
            tuple(map(constant_kind, self._constants)),
            len(self._scans),
            self._joins,
            self._groups,
            sum([self._rows_of(plan.Scan(scan.source, scan.table)) for scan in self._scans]),
        )
        return Planned(tree, self._scans, self._constants, self._finishes, self._known)

    def _program(self) -> TreeProgram:
        program = TreeProgram(self._known, self._constants)
        self._programs.append(program)
        return program

    def _check(self, condition: Expression) -> Check:
        program = self._program()
        return Check(program, program.truth(condition))

    def _with_check(self, part: Part, condition: Expression) -> Part:
        program = self._program()
        check = Check(program, program.truth(condition))
        return FilterPart(part, check, condition, program.reads_averages)

    # --- parts ---

    def _part(self, node: Plan) -> Part:
        match node:
            case plan.Vectors():
                return self._part(node.input)
            case plan.Scan():
                return self._scan(node)
            case plan.Filter():
                return self._filtered(self._part(node.input), node.condition)
            case plan.Join(kind="inner" | "cross", lateral=False):
                return self._cluster(node)
            case plan.Join(kind="left" | "semi" | "anti", lateral=False):
                return self._outer(node)
            case plan.Project():
                return self._project(node)
            case plan.Aggregate(grouping_sets=None):
                return self._group(node)
        raise NotVectorized

    def _scan(self, node: plan.Scan) -> Part:
        if not node.table.has_tree or node.access != plan.Access():
            raise NotVectorized
        self._known[node.source] = node.table
        number = len(self._scans)
        self._scans.append(node)
        plain, others = _divided(node.condition)
        check = None if plain is None else self._check(plain)
        return self._filtered(ScanPart(node.source, number, check, plain), conjunction(others))

    def _filtered(self, part: Part, condition: Expression | None) -> Part:
        """Add conditions, which may have subqueries."""
        plain, others = _divided(condition)
        if plain is not None:
            part = self._with_check(part, plain)
        for each in others:
            part = self._with_subqueries(part, each)
        return part

    def _outer(self, node: plan.Join) -> Part:
        left, right = self._part(node.left), self._part(node.right)
        sides = frozenset(output_sources(node.left)), frozenset(output_sources(node.right))
        keys, rest = divided_between(conjuncts(node.condition), *sides)
        if rest is not None and (node.kind == "left" or has_subquery(rest)):
            raise NotVectorized
        return self._joined(node.kind, (left, right), keys, output_sources(node.right), rest)

    def _joined(
        self,
        kind: str,
        sides: tuple[Part, Part],
        keys: tuple[KeyPair, ...],
        right_sources: tuple[int, ...],
        rest: Expression | None,
    ) -> Part:
        if not keys:
            raise NotVectorized
        one, other = self._program(), self._program()
        numbers = []
        for left, right in keys:
            pair = one.value(left), other.value(right)
            kinds = {one.families[pair[0]], other.families[pair[1]]}
            if not kinds <= _KEYS or (len(kinds) > 1 and not kinds <= _NUMBERS):
                raise NotVectorized
            numbers.append(pair)
        checks = () if rest is None else (self._check(rest),)
        if any(program.reads_averages for program in (one, other, *self._programs[-1:])):
            raise NotVectorized  # many would be divided at once
        left_keys, right_keys = zip(*numbers, strict=True)
        self._joins += 1
        programs = one, left_keys, other, right_keys
        return JoinPart(kind, *sides, *programs, right_sources, checks, keys, rest)

    def _cluster(self, node: plan.Join) -> Part:
        nodes, conditions = _cluster_of(node)
        later = [each for each in conditions if has_subquery(each)]
        plain = [each for each in conditions if not has_subquery(each)]
        relations = []
        for each in nodes:
            bare = replace(each, condition=None) if isinstance(each, plan.Scan) else each
            rows, all_rows = self._rows_of(each), self._rows_of(bare)
            own = frozenset(output_sources(each))
            relations.append(Relation(self._part(each), output_sources(each), own, rows, all_rows))

        def join(left: Relation, right: Relation, ties: list[Expression]) -> Part:
            keys, rest = divided_between(ties, left.owned, right.owned)
            return self._joined("inner", (left.part, right.part), keys, right.sources, rest)

        part, rest = ordered(relations, plain, join)
        for condition in rest:
            part = self._with_check(part, condition)
        for condition in later:
            part = self._with_subqueries(part, condition)
        return part

    def _project(self, node: plan.Project) -> Part:
        part = self._part(node.input)
        program = self._program()
        steps: list[int | None] = []
        rounded = set()
        for at, expression in enumerate(node.expressions):
            if at in node.unread or isinstance(expression, Constant | Slot | Folded):
                steps.append(None)
                continue
            steps.append(program.value(expression))
            if program.is_rounded(steps[-1] or 0):
                rounded.add(at)
        kinds = [None if step is None else program.families[step] for step in steps]
        self._known[node.source] = Computed(kinds, frozenset(rounded))
        return ProjectPart(part, node.source, program, tuple(steps))

    # --- groups ---

    def _group(self, node: plan.Aggregate) -> Part:
        return self._grouped(self._part(node.input), node.source, node.keys, node.calls)

    def _grouped(
        self,
        part: Part,
        source: int,
        keys: tuple[Expression, ...],
        calls: tuple[AggregateCall, ...],
    ) -> Part:
        program = self._program()
        numbers = []
        for key in keys:
            numbers.append(program.exact(key))
            if program.families[numbers[-1]] not in _KEYS:
                raise NotVectorized
        planned = tuple([self._call(program, call) for call in calls])
        kinds = [program.families[number] for number in numbers]
        for call in calls:
            family = family_of(call.type)
            if family is None:
                raise NotVectorized
            kinds.append(family)
        own = [
            at for at, call in enumerate(planned, len(keys)) if call.name == "avg" or call.is_mixed
        ]
        self._known[source] = Computed([*kinds], frozenset(own))
        self._groups += 1
        return GroupPart(part, source, program, tuple(numbers), planned, tuple(kinds), keys)

    def _call(self, program: TreeProgram, call: AggregateCall) -> GroupCall:
        name = call.aggregate.name
        if call.order_by or len(call.arguments) > 1 or (call.distinct and name != "count"):
            raise NotVectorized
        kept = None if call.filter is None else program.truth(call.filter)
        if name == "count":
            argument = program.exact(call.arguments[0]) if call.arguments else None
            if call.distinct and (argument is None or program.families[argument] not in _KEYS):
                raise NotVectorized
            return GroupCall(name, "", argument, kept, call.distinct, -1)
        if name not in _ARGUMENTS or len(call.arguments) != 1:
            raise NotVectorized
        given = call.arguments[0]
        is_mixed = name == "sum" and isinstance(given, Case) and given.type.kind is Kind.NUMERIC
        if isinstance(given, Case) and is_mixed:
            argument = program.mixed(given)
        else:
            argument = program.exact(given)
        family = program.families[argument]
        if family not in _ARGUMENTS[name] or family != family_of(call.aggregate.parameters[0]):
            raise NotVectorized
        finish = -1
        if name == "avg":
            finish = len(self._finishes)
            self._finishes.append(call)
        return GroupCall(name, family, argument, kept, False, finish, is_mixed)

    # --- subqueries ---

    def _with_subqueries(self, part: Part, condition: Expression) -> Part:
        negated, bare = False, condition
        while isinstance(bare, Not):
            negated, bare = not negated, bare.operand
        if isinstance(bare, InQuery):
            return self._member(part, bare, negated != bare.negated)
        replaced = {}
        for query in _outer_queries(condition):
            if not isinstance(query, ScalarQuery):
                raise NotVectorized
            part, value = self._with_value(part, query, condition)
            replaced[id(query)] = value
        changed = rewritten(condition, lambda each: replaced.get(id(each)))
        return self._with_check(part, changed)

    def _member(self, part: Part, condition: InQuery, negated: bool) -> Part:
        query = condition.plan
        if negated and len(condition.operands) > 1:
            raise NotVectorized
        if free_sources(query) or not isinstance(query, plan.Project):
            raise NotVectorized
        if any(map(has_subquery, condition.operands)) or is_volatile(query):
            raise NotVectorized
        right = self._part(query)
        columns = [
            Column(query.source, at, each.type, True) for at, each in enumerate(query.expressions)
        ]
        pairs = tuple(zip(condition.operands, columns, strict=True))
        return self._joined(
            "not_in" if negated else "semi", (part, right), pairs, (query.source,), None
        )

    def _with_value(
        self, part: Part, query: ScalarQuery, condition: Expression
    ) -> tuple[Part, Expression]:
        """Join the value of a query; a row for which it is NULL goes if the condition drops it."""
        project = query.plan
        if not isinstance(project, plan.Project) or is_volatile(project):
            raise NotVectorized
        below = project.input
        if isinstance(below, plan.Vectors):
            below = below.input
        if not isinstance(below, plan.Aggregate) or below.keys or below.grouping_sets is not None:
            raise NotVectorized
        value = Column(project.source, 0, query.type, True)
        outer = free_sources(query)
        if not outer:
            right = self._part(project)
            self._joins += 1
            empty = self._program()
            sources = (project.source,)
            return JoinPart("one", part, right, empty, (), self._program(), (), sources), value
        own, pairs = _decorrelated(below.input, outer)
        if any(call.aggregate.name == "count" for call in below.calls):
            raise NotVectorized
        if not is_null_of_null(project.expressions[0]):
            raise NotVectorized
        inner = tuple([pair[1] for pair in pairs])
        grouped = self._grouped(self._part(own), below.source, inner, below.calls)

        def moved(each: Any) -> Any:
            if type(each) is Column and each.source == below.source:
                return replace(each, position=each.position + len(inner))
            return None

        ties = tuple(
            [
                (pair[0], Column(below.source, at, pair[1].type, True))
                for at, pair in enumerate(pairs)
            ]
        )
        kind = "inner" if is_null_of_null(condition) else "left"
        joined = self._joined(kind, (part, grouped), ties, (below.source,), None)
        return joined, rewritten(project.expressions[0], moved)


def _divided(condition: Expression | None) -> tuple[Expression | None, list[Expression]]:
    """Return what has no subquery, and the conditions that have one."""
    every = conjuncts(condition)
    plain = conjunction([each for each in every if not has_subquery(each)])
    return plain, [each for each in every if has_subquery(each)]


def _cluster_of(node: Plan) -> tuple[list[Plan], list[Expression]]:
    if isinstance(node, plan.Vectors):
        return _cluster_of(node.input)
    if isinstance(node, plan.Join) and node.kind in ("inner", "cross") and not node.lateral:
        left, conditions = _cluster_of(node.left)
        right, others = _cluster_of(node.right)
        return left + right, conditions + others + list(conjuncts(node.condition))
    return [node], []


def _outer_queries(condition: Expression) -> list[Expression]:
    """Return the subqueries of an expression, without those inside of them."""
    found: list[Expression] = []

    def visit(each: Any) -> Any:
        if type(each) is not Column and getattr(each, "plan", None) is not None:
            found.append(each)
            return each
        return None

    rewritten(condition, visit)
    return found


def _decorrelated(node: Plan, outer: frozenset[int]) -> tuple[Plan, tuple[KeyPair, ...]]:
    """Return a plan without the equalities that tie it to outer rows, and these as pairs."""
    nodes, conditions = _cluster_of(node)
    pairs: list[KeyPair] = []
    own: list[Expression] = []
    bare: list[Plan] = []
    for each in nodes:
        while isinstance(each, plan.Filter):
            conditions += conjuncts(each.condition)
            each = each.input
        if isinstance(each, plan.Scan):
            conditions += conjuncts(each.condition)
            each = replace(each, condition=None)
        if free_sources(each):
            raise NotVectorized
        bare.append(each)
    for condition in conditions:
        named = free_sources(condition)
        if not named & outer:
            own.append(condition)
            continue
        if not is_equality(condition) or has_subquery(condition):
            raise NotVectorized
        assert isinstance(condition, Apply)
        one, other = condition.arguments
        if sources_named(other) and sources_named(other) <= outer:
            one, other = other, one
        if not sources_named(one) <= outer or sources_named(other) & outer:
            raise NotVectorized
        pairs.append((one, other))
    if not pairs:
        raise NotVectorized
    return _rejoined(bare, own), tuple(pairs)


def _rejoined(nodes: list[Plan], conditions: list[Expression]) -> Plan:
    """Return a plan of these relations, each with the conditions that are of it alone."""
    left_over = conditions
    joined: Plan | None = None
    for node in nodes:
        made = frozenset(output_sources(node))
        own = [each for each in left_over if sources_named(each) <= made]
        left_over = [each for each in left_over if each not in own]
        condition = conjunction(own)
        if condition is not None:
            if isinstance(node, plan.Scan):
                node = replace(node, condition=condition)
            else:
                node = plan.Filter(node, condition)
        joined = node if joined is None else plan.Join("inner", joined, node, None)
    assert joined is not None, "a cluster has a relation"
    rest = conjunction(left_over)
    if isinstance(joined, plan.Join):
        return replace(joined, condition=rest)
    return joined if rest is None else plan.Filter(joined, rest)


def is_null_of_null(expression: Expression) -> bool:
    """Whether a value is NULL if a column or a query in it is, and has one."""
    waiting, leaves = [expression], 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, Apply) and each.function.strict:
            waiting += each.arguments
        elif isinstance(each, Cast):
            waiting.append(each.operand)
        elif isinstance(each, Column | ScalarQuery):
            leaves += 1
        elif not isinstance(each, Constant | Slot | Folded):
            return False
    return leaves > 0
