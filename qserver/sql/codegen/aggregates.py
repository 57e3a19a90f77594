"""Aggregation in one pass: a dict from the group's key to its states.

    groups = {}                                without keys the states are local variables:
    …                                          s0 = 0; s1 = None
        g = groups.get(k)                      …
        if g is None:                              s0 += 1
            g = groups[k] = [0, None]          …
        g[0] += 1                              r9 = (s0, s1)
    for k, g in groups.items():
        r9 = (k, g[0], g[1])

The columns of the new source are the keys, then the aggregates, then the bit mask of GROUPING.

A call with ORDER BY collects sort keys and arguments, and runs its steps in order at the end. Calls
that would collect the same share one list and one sort: percentiles of a column differ only in the
fraction, which is the same for all rows and so is not collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from qserver.functions.costs import BYTES_SMALL
from qserver.sql import plan
from qserver.sql.codegen.charges import costly_finish, multiplies_long, size_code, step_cost
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.long_values import is_long
from qserver.sql.codegen.nans import may_be_nan, one_nan, rows_told_apart, told_apart
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.codegen.sorted_rows import sorted_pairs
from qserver.sql.codegen.sorting import key_elements
from qserver.sql.codegen.vectors import take_into_groups
from qserver.sql.expressions import (
    AggregateCall,
    Constant,
    Expression,
    Folded,
    GroupKey,
    Slot,
)
from qserver.sql.walk import rewritten
from qserver.values.keys import Descending
from qserver.values.sizes import is_sized, size_of

COLLECTED_ROW_BYTES: Final = 192
"""What a row of an ordered call takes beside its values: three tuples."""

CALL_BYTES: Final = 8
"""The place of a value in the state of each call that shares it."""


def produce_aggregate(
    pipeline: Pipeline, node: plan.Aggregate, rows: RowVariables, consume: Consumer
) -> None:
    _AggregatePrinter(pipeline, node).print(rows, consume)


class _States:
    """The initial states of all calls in one list, and the index of each call's first state."""

    def __init__(self, calls: tuple[AggregateCall, ...]) -> None:
        self.initial: list[str] = []
        self.first: list[int] = []
        self.extra: list[int | None] = []
        """The index of a DISTINCT call's set, or of the list of ordered calls."""
        self.collected: dict[int, list[int]] = {}
        """By the index of a list: the ordered calls that share it. The first fills it."""
        lists: dict[Any, int] = {}
        for number, call in enumerate(calls):
            self.first.append(len(self.initial))
            self.initial += call.aggregate.initial
            self.extra.append(None)
            if call.order_by:
                arguments = tuple(collected_arguments(call))
                same = call.order_by, call.filter, arguments, call.aggregate.strict
                at = lists.setdefault(same, len(self.initial))
                if at == len(self.initial):
                    self.initial.append("[]")
                self.extra[-1] = at
                self.collected.setdefault(at, []).append(number)
            elif call.distinct:
                self.extra[-1] = len(self.initial)
                self.initial.append("set()")


def _varies(argument: Expression) -> bool:
    return not isinstance(argument, Slot | Constant | Folded)


def collected_arguments(call: AggregateCall) -> list[Expression]:
    """Return the arguments of an ordered call that may differ from row to row."""
    return [each for each in call.arguments if _varies(each)]


class _AggregatePrinter:
    def __init__(self, pipeline: Pipeline, node: plan.Aggregate) -> None:
        self.pipeline = pipeline
        self.source = pipeline.source
        self.printer = pipeline.printer
        self.node = node
        self.states = _States(node.calls)
        self.holder = ""
        """The variable of the list that has the states of a call in it."""
        self.is_new = ""
        """The variable that tells whether the row is the first of its group, where that matters."""
        self.present: tuple[int, ...] = ()
        """The keys of the grouping set whose states are being updated."""
        self.kept = self.source.fresh("n")
        """The variable that counts bytes of values held to the end, over all calls and groups."""
        for call in node.calls:
            for name, value in call.aggregate.names.items():
                self.source.name(name, value)

    def print(self, rows: RowVariables, consume: Consumer) -> None:
        self.source.line(f"{self.kept} = 0")
        if self.node.in_order:
            self._grouped_in_order(rows, consume)
        elif self.node.keys or self.node.grouping_sets is not None:
            self._grouped(rows, consume)
        else:
            self._ungrouped(rows, consume)

    def _ungrouped(self, rows: RowVariables, consume: Consumer) -> None:
        names = [self.source.fresh("s") for _ in self.states.initial]
        groups = ""
        if self.node.vectors:  # the states are in a list, as those of a group
            groups, group = self.source.fresh("groups"), self.source.fresh("g")
            self.source.line(f"{groups} = {{(): {self._new_group()}}}")
            self.source.line(f"{group} = {groups}[()]")
            names = [f"{group}[{position}]" for position in range(len(self.states.initial))]
            self.holder = group
        else:
            for name, initial in zip(names, self.states.initial, strict=True):
                self.source.line(f"{name} = {initial}")
            holding = self._holding(names)
            if holding:
                self.holder = self.source.fresh("held")
                self.source.line(f"{self.holder} = [{', '.join(holding)}]")

        def inside(inner: RowVariables) -> None:
            for number in range(len(self.node.calls)):
                self._step(number, names, inner)

        self._produce(rows, inside, groups)
        self._give((), names, 0, rows, consume)

    def _holding(self, names: list[str]) -> list[str]:
        """Return the states that hold what all rows have brought, for calls that keep that."""
        found = [names[at] for at in self.states.extra if at is not None]
        for number, call in enumerate(self.node.calls):
            if call.aggregate.keeps and not call.order_by:
                own = zip(self._own(number, names), call.aggregate.initial, strict=True)
                found += [name for name, initial in own if initial == "[]"]
        return found

    def _new_group(self) -> str:
        return f"[{', '.join(self.states.initial)}]"

    def _produce(self, rows: RowVariables, inside: Consumer, groups: str) -> None:
        """Print the loops of the input; vectors take what they can of it."""
        if self.node.vectors:
            take_into_groups(self.pipeline, self.node, rows, groups, self._new_group())
        self.pipeline.produce(self.node.input, rows, inside)

    def _grouped(self, rows: RowVariables, consume: Consumer) -> None:
        sets = self.node.grouping_sets
        if sets is None:
            sets = (tuple(range(len(self.node.keys))),)
        dicts = [self.source.fresh("groups") for _ in sets]
        for groups, positions in zip(dicts, sets, strict=True):
            empty = "{}" if positions else f"{{(): {self._new_group()}}}"
            self.source.line(f"{groups} = {empty}")

        def inside(inner: RowVariables) -> None:
            keys, long = self._keys(inner)
            for groups, positions in zip(dicts, sets, strict=True):
                self.present = positions
                self._update(groups, [keys[at] for at in positions], long, inner)

        self._produce(rows, inside, dicts[0])
        if len(dicts) == 1:
            self._replay(dicts[0], sets[0], rows, consume)
            return
        everything = self.source.fresh("rows")
        self.source.line(f"{everything} = []")
        for groups, positions in zip(dicts, sets, strict=True):
            self._replay(
                groups,
                positions,
                rows,
                lambda inner: self.source.line(
                    f"{everything}.append({inner.row(self.node.source)})"
                ),
            )
        self.pipeline.loop(self.node.source, everything, rows, consume)

    def _keys(self, rows: RowVariables) -> tuple[list[str], list[str]]:
        """Print the keys of a row; return their names, and those of keys that may be long."""
        keys = []
        for key in self.node.keys:
            keys.append(self.source.fresh("k"))
            code = self.printer.value(key, rows)
            self.source.line(f"{keys[-1]} = {code}")
            alike = told_apart(self.source, key.type, keys[-1])
            if alike != keys[-1]:
                self.source.line(f"{keys[-1]} = {alike}")
        self.pipeline.count_looks(zip(self.node.keys, keys, strict=True))
        pairs = zip(keys, self.node.keys, strict=True)
        return keys, [key for key, each in pairs if is_long(each, self.node.input)]

    def _grouped_in_order(self, rows: RowVariables, consume: Consumer) -> None:
        """Print a generator that holds one group, and gives it when the next begins."""
        source, pipeline = self.source, self.pipeline
        made, groups, row = source.fresh("made"), source.fresh("groups"), source.fresh("r")
        positions = tuple(range(len(self.node.keys)))

        def give(inner: RowVariables) -> None:
            source.line(f"yield {inner.row(self.node.source)}")

        def inside(inner: RowVariables) -> None:
            keys, long = self._keys(inner)
            key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
            with source.block(f"if {groups} and {key} not in {groups}:"):
                self._replay(groups, positions, rows, give)
                source.line(f"{groups}.clear()")
            self._update(groups, keys, long, inner)

        hands_out, pipeline.hands_out = pipeline.hands_out, False
        with source.block(f"def {made}():"):
            source.line(f"{groups} = {{}}")
            source.line(f"{self.kept} = 0")
            pipeline.produce(self.node.input, rows, inside)
            self._replay(groups, positions, rows, give)
            source.line("return")
            source.line("yield")
        pipeline.hands_out = hands_out
        with pipeline.for_each(row, f"{made}()"):
            if pipeline.may_yield:
                with source.block(f"if {row} is None:"):
                    pipeline.yield_check()
                    source.line("continue")
            consume(rows.with_row(self.node.source, row))

    def _update(self, groups: str, keys: list[str], long: list[str], rows: RowVariables) -> None:
        key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
        group = self.holder = self.source.fresh("g")
        self.source.line(f"{group} = {groups}.get({key})")
        self.is_new = ""
        if any(map(self._holds_one, self.node.calls)):
            self.is_new = self.source.fresh("n")
            self.source.line(f"{self.is_new} = {group} is None")
        with self.source.block(f"if {group} is None:"):
            self.source.line(f"{group} = {groups}[{key}] = {self._new_group()}")
            self.pipeline.charge_memory(groups, 1 + len(self.states.initial) // 4)
            if long:
                self.pipeline.count_bytes(self.kept, long)
        names = [f"{group}[{position}]" for position in range(len(self.states.initial))]
        for number in range(len(self.node.calls)):
            self._step(number, names, rows)

    def _replay(
        self, groups: str, positions: tuple[int, ...], rows: RowVariables, consume: Consumer
    ) -> None:
        key, group = self.source.fresh("k"), self.source.fresh("g")
        absent = 0
        for at in range(len(self.node.keys)):
            absent = 2 * absent + (at not in positions)
        if len(positions) == 1:
            parts = {positions[0]: key}
        else:
            parts = {at: f"{key}[{place}]" for place, at in enumerate(positions)}
        keys = tuple(parts.get(at, "None") for at in range(len(self.node.keys)))
        with self.pipeline.loop_by_pages(f"{key}, {group}", f"{groups}.items()"):
            names = [f"{group}[{position}]" for position in range(len(self.states.initial))]
            self._give(keys, names, absent, rows, consume)

    def _give(
        self,
        keys: tuple[str, ...],
        names: list[str],
        absent: int,
        rows: RowVariables,
        consume: Consumer,
    ) -> None:
        """Print the output row of a complete group."""
        ordered: dict[int, str] = {}
        for extra, numbers in self.states.collected.items():
            self._finish_ordered(names[extra], numbers, names, rows, ordered)
        finished = [
            ordered.get(number) or self._finished(number, names)
            for number in range(len(self.node.calls))
        ]
        row = self.source.fresh("r")
        self.source.line(f"{row} = ({', '.join([*keys, *finished, str(absent)])},)")
        consume(rows.with_row(self.node.source, row))

    def _finished(self, number: int, names: list[str]) -> str:
        """Return the code of a call's value; a value built from all held values may be too long."""
        call = self.node.calls[number]
        own = self._own(number, names)
        value = self.printer.fill(call.aggregate.finish, [], own)
        if multiplies_long(call.aggregate, call.arguments):
            self.source.name("size_of", size_of)
            slow = self.printer.costly(costly_finish(call.aggregate), own)
            return f"({value} if size_of({own[-1]}) < {BYTES_SMALL} else {slow})"
        if not (call.aggregate.keeps and is_sized(call.type)):
            return value
        self.source.functions += 1
        return f"weigh({value})"

    def _own(self, number: int, names: list[str]) -> list[str]:
        first = self.states.first[number]
        return names[first : first + len(self.node.calls[number].aggregate.initial)]

    # --- one call ---

    def _step(self, number: int, names: list[str], rows: RowVariables) -> None:
        """Print the effect of a row on the states of one call."""
        call = self.node.calls[number]
        if call.order_by:
            extra = self.states.extra[number]
            assert extra is not None
            if number != self.states.collected[extra][0]:
                return  # another call collects for it
        if call.filter is not None:
            wanted = self._in_set(call.filter)
            with self.source.block(f"if {self.printer.truth(wanted, rows)}:"):
                self._step_filtered(number, names, rows)
        else:
            self._step_filtered(number, names, rows)

    def _step_filtered(self, number: int, names: list[str], rows: RowVariables) -> None:
        call = self.node.calls[number]
        codes, checks = [], []
        arguments = collected_arguments(call) if call.order_by else call.arguments
        for argument in arguments:
            code = self.printer.value(self._in_set(argument), rows)
            if argument.nullable or not code.isidentifier():
                name = self.source.fresh("v")
                self.source.line(f"{name} = {code}")
                code = name
            codes.append(code)
            if argument.nullable and call.aggregate.strict:
                checks.append(f"{code} is not None")
        with self.source.block_if(checks):
            extra = self.states.extra[number]
            if call.order_by:
                assert extra is not None
                self._collect(call, names[extra], codes, rows)
                keys = any(is_sized(key.expression.type) for key in call.order_by)
                more = COLLECTED_ROW_BYTES + CALL_BYTES * len(self.states.collected[extra])
                sizes = [str(more), *[f"size_of({names[extra]}[-1][0])"] * keys]
                self._count_kept(arguments, codes, sizes)
            elif extra is not None:
                key = codes[0] if len(codes) == 1 else f"({', '.join(codes)})"
                types = [each.type for each in call.arguments]
                key = rows_told_apart(self.source, types, key)
                self.pipeline.count_looks(zip(call.arguments, codes, strict=True))
                with self.source.block(f"if {key} not in {names[extra]}:"):
                    self.source.line(f"{names[extra]}.add({key})")
                    self._count_kept(arguments, codes)
                    self._count_steps(call, codes)
                    self._run_step(call, self._own(number, names), codes)
            else:
                if call.aggregate.keeps:
                    self._count_kept(arguments, codes)
                elif self.is_new and self._holds_one(call):
                    with self.source.block(f"if {self.is_new}:"):
                        self.pipeline.count_bytes(self.kept, codes)
                self._count_steps(call, codes)
                self._run_step(call, self._own(number, names), codes)

    def _in_set(self, expression: Expression) -> Expression:
        """Return the expression with the keys of the grouping set, and NULL for others."""

        def change(node: Any) -> Any:
            if type(node) is not GroupKey:
                return None
            return node.key if node.position in self.present else Constant(None, node.type)

        found: Expression = rewritten(expression, change)
        return found

    def _holds_one(self, call: AggregateCall) -> bool:
        """Tell whether the state of a group is about as long as one value, as that of max is."""
        if call.aggregate.keeps or not is_sized(call.type):
            return False
        return any(is_long(argument, self.node.input) for argument in call.arguments)

    def _count_kept(
        self, arguments: Sequence[Expression], codes: list[str], others: Sequence[str] = ()
    ) -> None:
        self.source.name("size_of", size_of)
        sizes = [
            f"size_of({code})"
            for argument, code in zip(arguments, codes, strict=True)
            if is_sized(argument.type)
        ]
        self.pipeline.count_kept(self.kept, [*sizes, *others], self.holder)

    def _count_steps(self, call: AggregateCall, codes: list[str]) -> None:
        """Print the charge for the steps that long arguments cost."""
        for argument, code in zip(call.arguments, codes, strict=True):
            cost = step_cost(call.aggregate, argument)
            if cost is None:
                continue
            size = size_code(argument, code)
            self.source.name("size_of", size_of)
            there = f"{code} is not None and " * (argument.nullable and not call.aggregate.strict)
            with self.source.block(f"if {there}{size} >= {BYTES_SMALL}:"):
                name = call.aggregate.name
                self.pipeline.charge_call(name, f"{self.source.known(cost, 'cost')}({code})")

    def _run_step(self, call: AggregateCall, states: list[str], codes: list[str]) -> None:
        for statement in self.printer.fill(call.aggregate.step, codes, states).split("\n"):
            self.source.line(statement)

    def _collect(
        self, call: AggregateCall, name: str, codes: list[str], rows: RowVariables
    ) -> None:
        """Print the collection of a row's sort key and arguments; steps run in order at the end."""
        self.source.name("Descending", Descending)
        elements = []
        for key in call.order_by:
            parts = key_elements(self.pipeline, key, rows)
            elements += [f"Descending({part})" for part in parts] if key.descending else parts
        values = f"({', '.join(codes)},)" if codes else "()"
        self.source.line(f"{name}.append((({', '.join(elements)},), {values}))")

    def _finish_ordered(
        self,
        collected: str,
        numbers: list[int],
        names: list[str],
        rows: RowVariables,
        finished: dict[int, str],
    ) -> None:
        """Print the sort of a list, and the values of the calls that share it."""
        pairs = self.source.fresh("rows")
        order = self.node.calls[numbers[0]].order_by
        may_be_long = any(is_sized(key.expression.type) for key in order)
        call = f"sorted_pairs(context, {collected}, {may_be_long})"
        steps = self.pipeline.steps(call, sorted_pairs)
        self.source.line(f"{pairs} = {steps}")
        for number in numbers:
            self._run_in_order(number, pairs, names, rows)
            finished[number] = self.source.fresh("v")
            self.source.line(f"{finished[number]} = {self._finished(number, names)}")
            own = self._own(number, names)
            for name, initial in zip(own, self.node.calls[number].aggregate.initial, strict=True):
                self.source.line(f"{name} = {initial}")  # the next call needs the memory

    def _run_in_order(self, number: int, pairs: str, names: list[str], rows: RowVariables) -> None:
        call = self.node.calls[number]
        codes, taken, checks = [], [], []
        for argument in call.arguments:
            if _varies(argument):
                codes.append(self.source.fresh("v"))
                taken.append(codes[-1])
                continue
            codes.append(self.printer.value(argument, rows))
            if argument.nullable and call.aggregate.strict:
                checks.append(f"{codes[-1]} is not None")
        target = f"({', '.join(taken)},)" if taken else "_"
        if call.distinct:
            if any(may_be_nan(each.type) for each in collected_arguments(call)):
                self.source.name("one_nan", one_nan)
                pairs = f"map(one_nan, {pairs})"
            pairs = f"dict.fromkeys({pairs})"
        with self.source.block_if(checks), self.pipeline.loop_by_pages(target, pairs):
            self._count_steps(call, codes)
            self._run_step(call, self._own(number, names), codes)
