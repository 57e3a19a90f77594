"""Prints window functions: materializes rows, computes each call over its partitions."""

from __future__ import annotations

import operator
from typing import Any, Final

from qserver.errors import FeatureNotSupported, QserverError
from qserver.functions.resolve import resolve_operator
from qserver.sql import plan
from qserver.sql.codegen.current_rows import RowVariables
from qserver.sql.codegen.long_values import is_long
from qserver.sql.codegen.nans import rows_told_apart
from qserver.sql.codegen.pipeline import Consumer, Pipeline
from qserver.sql.codegen.sorting import has_long_key, key_elements
from qserver.sql.codegen.window_functions import is_reversed, window_values
from qserver.sql.expressions import Expression, SortKey, WindowCall, WindowFrame
from qserver.sql.walk import output_sources
from qserver.values.casts import cast_function
from qserver.values.interval import Interval
from qserver.values.keys import NULL_KEY, Descending, canonical
from qserver.values.types import FLOAT_KINDS, INTEGER_KINDS, TIME_KINDS
from qserver.values.zoned_time import ZonedTime


def produce_window(
    pipeline: Pipeline, node: plan.Window, rows: RowVariables, consume: Consumer
) -> None:
    """Materialize the input, compute a column for each call, and loop over both together."""
    source = pipeline.source
    kept = pipeline.keep(node.input, rows)
    sources = output_sources(node.input)
    columns = [_column(pipeline, node, call, kept, rows) for call in node.calls]
    values = source.fresh("r")
    target, inner = pipeline.unpack(sources, rows)
    both = f"zip({kept}, zip({', '.join(columns)}))"
    with pipeline.loop_by_pages(f"{target}, {values}", both):
        consume(inner.with_row(node.source, values))


def _column(
    pipeline: Pipeline, node: plan.Window, call: WindowCall, kept: str, rows: RowVariables
) -> str:
    """Print the computation of one call for all rows; return the name of the list of its values."""
    sources = output_sources(node.input)
    source, printer = pipeline.source, pipeline.printer
    item = source.fresh("t")
    inner = rows
    for position, made in enumerate(sources):
        inner = inner.with_row(made, item if len(sources) == 1 else f"{item}[{position}]")
    offsets = []
    for _, expression in (call.frame.start, call.frame.end):
        offsets.append("None" if expression is None else printer.value(expression, rows))
    chosen, raw, steps = "None", "None", "None"
    with printer.without_yielding():  # `window_values` does so between rows
        keys = printer.values(call.partition_by, inner)
        keys = rows_told_apart(pipeline.source, [each.type for each in call.partition_by], keys)
        partition = f"lambda {item}: {keys}"
        order = f"lambda {item}: {_order(pipeline, call.order_by, inner)}"
        arguments = f"lambda {item}: {printer.values(call.arguments, inner)}"
        if call.filter is not None:
            chosen = f"lambda {item}: {printer.truth(call.filter, inner)}"
        if call.frame.mode == "range" and offsets != ["None", "None"]:
            key = call.order_by[0].expression
            is_time = key.type.kind in TIME_KINDS
            known = _TimeSteps() if is_time else _Steps(key, call.frame)
            steps = source.known(known, "steps")
            raw = f"lambda {item}: {printer.value(key, inner)}"
    name = source.fresh("column")
    specification = source.known(call, "window")
    values = (
        f"window_values(context, {specification}, {kept}, {partition}, {order}, {arguments},"
        f" {chosen}, {offsets[0]}, {offsets[1]}, {raw}, {steps}, {_made(node, call)})"
    )
    source.line(f"{name} = {pipeline.steps(values, window_values)}")
    return name


def _made(node: plan.Window, call: WindowCall) -> tuple[bool, bool, bool]:
    """Tell whether partitions, orders and arguments are new values that may be long."""
    orders = [key.expression for key in call.order_by]
    return (
        any(is_long(each, node.input) for each in call.partition_by),
        any(is_long(each, node.input) or has_long_key(each.type) for each in orders),
        any(is_long(each, node.input) for each in call.arguments),
    )


class _Steps:
    """RANGE offsets: the addition that moves a bound, and how its results compare."""

    def __init__(self, key: Expression, frame: WindowFrame) -> None:
        offset = next(each for _, each in (frame.start, frame.end) if each is not None)
        try:
            add = resolve_operator("+", key.type, offset.type)
            subtract = resolve_operator("-", key.type, offset.type)
        except QserverError:
            raise FeatureNotSupported(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type"
                f" {key.type} and offset type {offset.type}"
            ) from None
        self.add, self.subtract = add.function.call, subtract.function.call
        if key.type.kind in (*INTEGER_KINDS, *FLOAT_KINDS):  # a bound may be beyond all values
            self.add, self.subtract = operator.add, operator.sub
        self._as_operand = cast_function(key.type, add.parameters[0])
        self._as_result = cast_function(key.type, add.returns)
        self._offset_as_operand = cast_function(offset.type, add.parameters[1])

    def operand(self, value: Any) -> Any:
        return self._as_operand(value)

    def offset(self, value: Any) -> Any:
        return self._offset_as_operand(value)

    def goes_back(self, offset: Any) -> bool:
        """Is it no distance? NaN is none."""
        if isinstance(offset, Interval):
            return offset.span < 0
        return bool(offset != offset or offset < 0)

    def comparable(self, value: Any) -> Any:
        """Convert a value of the key for comparison with the addition's results."""
        return NULL_KEY if value is None else canonical(self._as_result(value))


class _TimeSteps:
    """The same for times of day: a frame ends with the day, where `+` goes on at midnight."""

    def operand(self, value: Any) -> Any:
        return self.comparable(value)

    def offset(self, value: Interval) -> int:
        """The days and months of an interval are nothing to a time of day."""
        return value.microseconds * _ZONES

    def goes_back(self, offset: Interval) -> bool:
        return offset.microseconds < 0

    def add(self, value: int, offset: int) -> int:
        return value + offset

    def subtract(self, value: int, offset: int) -> int:
        return value - offset

    def comparable(self, value: Any) -> Any:
        """Microseconds first, then the zone."""
        if value is None:
            return NULL_KEY
        if isinstance(value, ZonedTime):
            moment, west = value.moment_and_zone()
            return moment * _ZONES + west
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return (seconds * 1_000_000 + value.microsecond) * _ZONES


_ZONES: Final = 1_000_000
"""More than there are seconds in the offset of a zone."""


def _order(pipeline: Pipeline, keys: tuple[SortKey, ...], rows: RowVariables) -> str:
    pipeline.source.name("Descending", Descending)
    elements: list[str] = []
    reverse = is_reversed(keys)
    for key in keys:
        parts = key_elements(pipeline, key, rows)
        turned = key.descending and not reverse
        elements += [f"Descending({part})" for part in parts] if turned else parts
    return f"({', '.join(elements)},)" if elements else "()"
