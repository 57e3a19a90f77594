"""From a statement to a plan that can be run: bound, improved, compiled, and kept.

    text ─► lifted: shape and literals ─► kept? ─► syntax ─► bound ─► improved ─► compiled ─► kept

The types of parameters are inferred in a first binding; a second one takes them as declared, so
that compiled code is given values of those types, however they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from qserver.engine.catalog_names import CatalogNames
from qserver.engine.plan_cache import Plan, PlanCache
from qserver.errors import NotInPrerequisiteState, ProtocolViolation, StatementTooComplex
from qserver.limits import PLANS_KEPT_MAX
from qserver.sql import syntax
from qserver.sql.binder import Bound, Literals, bind
from qserver.sql.binder.table_expressions import ROW_ID_SLOT
from qserver.sql.bound import Apply, Slot
from qserver.sql.codegen import compile_statement
from qserver.sql.functions.registry import Function
from qserver.sql.lift import Lifted, lift
from qserver.sql.parameters import Given, parameter_list, types_of_values
from qserver.sql.parser import Parsed, parse
from qserver.sql.plan import Change
from qserver.sql.rules import RULES, Rule, improve
from qserver.sql.walk import everything, rebuilt
from qserver.storage.catalog import Catalog
from qserver.storage.view import View
from qserver.values.types import BIGINT, SqlType

TEXT_REMEMBERED_LENGTH_MAX = 1024
"""Longer texts are not worth their memory."""

NEXT_ROW_ID = Function(
    "next_row_id",
    (),
    BIGINT,
    lambda context: context.next_row_id(),
    volatile=True,
    needs_context=True,
)


class Planner:
    """Makes plans, and keeps those that may be wanted again.

    With fewer `rules` every statement answers the same, only more slowly: tests hold it to that.
    """

    def __init__(self, rules: tuple[Rule, ...] = RULES) -> None:
        self.rules = rules
        self.cache = PlanCache()
        self._parsed: tuple[str, Parsed] | None = None
        self._lifted: dict[str, Lifted] = {}
        self._last: tuple[str, Lifted] | None = None

    def lift(self, sql: str, given: Given) -> Lifted:
        """Shape and literals of a text. One whose values come beside it is probably sent again and
        again just as it is, so it is remembered. So is the last of all: who has tried a statement
        without waiting, and could not, tries it again.
        """
        if given:
            remembered = self._lifted.get(sql)
            if remembered is not None:
                return remembered
        if self._last is not None and self._last[0] == sql:
            return self._last[1]
        lifted = lift(sql)
        self._last = sql, lifted
        if given and len(sql) <= TEXT_REMEMBERED_LENGTH_MAX:
            if len(self._lifted) >= PLANS_KEPT_MAX:
                self._lifted.clear()
            self._lifted[sql] = lifted
        return lifted

    def find(
        self, lifted: Lifted, catalog: Catalog, view: View, given: Given = None
    ) -> Plan | None:
        """A plan that was made for a statement of this shape and still holds."""
        return self.cache.find((lifted.shape, lifted.kinds), lifted.literals, catalog, view, given)

    def look(self, lifted: Lifted, catalog: Catalog, given: Given = None) -> Plan | None:
        """The same if it can be run where one stands, as far as is known; nothing is counted."""
        plan = self.cache.look((lifted.shape, lifted.kinds), lifted.literals, catalog, given)
        return None if plan is None or plan.takes_turns or plan.system_tables else plan

    def parse(self, sql: str) -> Parsed:
        """The statement of a text. The last one is remembered: a transaction may run again."""
        if self._parsed is None or self._parsed[0] != sql:
            self._parsed = sql, parse(sql)
        return self._parsed[1]

    def make(
        self,
        lifted: Lifted,
        parsed: Parsed,
        catalog: Catalog,
        view: View,
        given: Given = None,
    ) -> Plan:
        """A plan for a statement that came as text."""
        literals = Literals(lifted.literals)
        plan = make_plan(parsed.statement, literals, catalog, view, given=given, rules=self.rules)
        self.cache.keep((lifted.shape, lifted.kinds), lifted.literals, plan, given)
        return plan

    def plan_of(
        self,
        name: tuple[str, ...],
        statement: syntax.Statement,
        types: Sequence[SqlType],
        catalog: Catalog,
        view: View,
    ) -> Plan:
        """A plan for a statement of the engine's own, kept under a name."""
        plan = self.cache.find(name, (), catalog, view)
        if plan is None:
            declared: dict[int | str, SqlType] = dict(enumerate(types, 1))
            plan = make_plan(statement, Literals(()), catalog, view, declared, rules=self.rules)
            self.cache.keep(name, (), plan)
        return plan


def slots_of(plan: Plan, literals: Sequence[Any], given: Given) -> Any:
    """What compiled code gets of one execution: literals by index, parameters by name."""
    if plan.parameters is not None:
        return plan.parameters.slots(literals, given)
    if given:
        raise ProtocolViolation("the statement has no parameters, but some were given")
    return literals


def only_reads(statement: syntax.Statement) -> bool:
    """Can it be run on a view, without a transaction?"""
    return isinstance(statement, syntax.Query) and all(
        only_reads(table.statement) for table in statement.common_tables
    )


def make_plan(
    statement: syntax.Statement,
    literals: Literals,
    catalog: Catalog,
    view: View,
    declared: Mapping[int | str, SqlType] | None = None,
    given: Given = None,
    rules: tuple[Rule, ...] = RULES,
) -> Plan:
    """`declared`: the types of parameters, where they are known; otherwise they are inferred from
    where they stand, or from what is `given`."""
    names = CatalogNames(catalog, view)
    try:
        bound = _bound(statement, literals, names, declared, given)
        improved = improve(rebuilt(bound.statement, _with_row_id), names.row_count, rules)
        compiled = compile_statement(improved, bound.tables)
    except (RecursionError, SyntaxError):  # of Python: it nests loops and calls only so deep
        raise StatementTooComplex(
            "the statement is nested too deeply",
            hint="Split it into several, or use fewer terms, joins or set operations.",
        ) from None
    changes = not only_reads(statement)
    if changes and names.system_tables:
        _refuse_system_tables(improved)
    return Plan(
        compiled,
        improved,
        catalog,
        names.found,
        system_tables=names.system_tables,
        parameters=parameter_list(bound.parameters) if bound.parameters else None,
        pinned=bound.pinned,
        undecided=bound.undecided,
        sizes={table.id: view.count(table.id) for table in bound.tables},
        writes=changes,
        watched=changes
        and any(table.foreign_keys or table.referenced_by for table in bound.tables),
    )


def _refuse_system_tables(statement: Any) -> None:
    for node in everything(statement):
        if isinstance(node, Change) and node.table.id < 0:
            raise NotInPrerequisiteState(
                f'cannot change "{node.table.name}": it shows what is defined'
            )


def _with_row_id(node: Any) -> Any:
    """Row ids are numbers that each row takes for itself, not a value of the whole execution."""
    if type(node) is Slot and node.name == ROW_ID_SLOT:
        return Apply(NEXT_ROW_ID, (), BIGINT, nullable=False)
    return node


def _bound(
    statement: syntax.Statement,
    literals: Literals,
    names: CatalogNames,
    declared: Mapping[int | str, SqlType] | None,
    given: Given,
) -> Bound:
    if declared is not None:
        return bind(statement, literals, names, declared)
    found = bind(statement, literals, names, None, types_of_values(given))
    if not found.parameters:
        return found
    return replace(bind(statement, literals, names, found.parameters), undecided=found.undecided)
