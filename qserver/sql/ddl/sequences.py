"""CREATE and ALTER SEQUENCE, with PostgreSQL's defaults and errors.

A sequence has a definition, and a state that the definition names. A change of how it counts, or of
its position, creates a new state; so the change takes effect with its transaction.
"""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import replace
from typing import Any, Final

from qserver.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NotInPrerequisiteState,
    SqlSyntaxError,
)
from qserver.sql import ast
from qserver.sql.ddl.names import find_table, is_taken, new_place, require_free
from qserver.sql.ddl.port import TAKEN, DdlPort, DdlSteps
from qserver.values.admission import admitter
from qserver.values.identifiers import catalog_key
from qserver.values.relations import Sequence
from qserver.values.schema import Table
from qserver.values.types import BIGINT, INTEGER_BITS, SqlType

SequenceOptions = Many[tuple[str, Any]]

_admit: Final = admitter(BIGINT)

WORDS: Final = {
    "start": "START value",
    "restart": "RESTART value",
    "minvalue": "MINVALUE",
    "maxvalue": "MAXVALUE",
}


def create_sequence(work: DdlPort, node: ast.CreateSequence) -> DdlSteps:
    schema, name = new_place(work, node.name, temporary=node.temporary)
    key = catalog_key(schema, name)
    if node.if_not_exists and is_taken(work, key):
        work.skip(f'relation "{name}" already exists', TAKEN)
        return 0
    sql_type = BIGINT if node.type is None else sequence_type(work, node.type)
    made = make_sequence(work, schema, name, sql_type, node.options)
    require_free(work, key)
    work.transaction.define(key, made)
    return 0
    yield


def sequence_type(work: DdlPort, node: ast.TypeName) -> SqlType:
    sql_type = work.type(node)
    if sql_type.kind not in INTEGER_BITS:
        raise InvalidParameterValue("sequence type must be smallint, integer, or bigint")
    return sql_type


def make_sequence(
    work: DdlPort, schema: str, name: str, sql_type: SqlType, options: SequenceOptions
) -> Sequence:
    number = work.transaction.next_tree(schema)
    given = _given(work, options)
    increment = given.get("increment", 1)
    blank = Sequence(
        number,
        name,
        increment=increment or 1,
        minimum=0,
        start=0,
        type=sql_type,
        schema=schema,
    )
    made = _counting(blank, given, _bounds(sql_type, increment))
    made = replace(made, start=_start(made, given))
    first = given.get("restart", made.start)
    _refuse_outside(made, "restart", first)
    work.statements.begin_sequence(made, first, called=False)
    return _owned(work, made, options)


def restart_sequence(work: DdlPort, sequence: Sequence, value: int) -> None:
    work.transaction.define(sequence.key, _renewed(work, sequence, value, called=False))


def _renewed(work: DdlPort, sequence: Sequence, value: int, called: bool) -> Sequence:
    """Replace the state of a sequence by a new one, which belongs to this transaction."""
    work.statements.end_sequence(sequence)
    renewed = replace(sequence, state=work.transaction.next_tree(sequence.schema))
    work.statements.begin_sequence(renewed, value, called)
    return renewed


def alter_sequence(work: DdlPort, old: Sequence, options: SequenceOptions) -> None:
    """Change the options of a sequence, which continues from its current value."""
    given = _given(work, options)
    sql_type = old.type
    for word, value in options:
        if word == "as":
            sql_type = sequence_type(work, value)
    low, high = _bounds(sql_type, given.get("increment", old.increment))
    was_low, was_high = _bounds(old.type, old.increment)
    kept = (
        low if old.minimum == was_low and sql_type != old.type else old.minimum,
        high if old.maximum == was_high and sql_type != old.type else old.maximum,
    )
    if "no minvalue" in dict(options):
        kept = low, kept[1]
    if "no maxvalue" in dict(options):
        kept = kept[0], high
    made = _counting(replace(old, type=sql_type), given, kept)
    start = given.get("start", old.start)
    _refuse_outside(made, "start", start)
    made = replace(made, start=start)
    if "restart" in dict(options):
        value = given.get("restart", made.start)
        _refuse_outside(made, "restart", value)
        made = _renewed(work, made, value, called=False)
    elif _counts_otherwise(old, made):
        value, called = work.statements.sequence_state(old)
        _refuse_outside(made, "restart", value)
        made = _renewed(work, made, value, called)
    work.transaction.define(made.key, _owned(work, made, options))


def _counts_otherwise(old: Sequence, new: Sequence) -> bool:
    """Tell whether the following values differ."""
    return (old.increment, old.minimum, old.maximum, old.cycle) != (
        new.increment,
        new.minimum,
        new.maximum,
        new.cycle,
    )


def _given(work: DdlPort, options: SequenceOptions) -> dict[str, int]:
    """Return the options by name: numbers, and CYCLE as a bool."""
    given: dict[str, int] = {}
    seen: set[str] = set()
    for word, value in options:
        kind = word.removeprefix("no ")
        if kind in seen:
            raise SqlSyntaxError("conflicting or redundant options")
        seen.add(kind)
        if kind == "cycle":
            given[kind] = word == "cycle"
        elif value is not None and kind not in ("owned by", "as"):
            given[kind] = _number(work, value)
    return given


def _bounds(sql_type: SqlType, increment: int) -> tuple[int, int]:
    """Return the default minimum and maximum of a sequence."""
    half: int = 2 ** (INTEGER_BITS[sql_type.kind] - 1)
    return (1, half - 1) if increment > 0 else (-half, -1)


def _counting(sequence: Sequence, given: dict[str, int], bounds: tuple[int, int]) -> Sequence:
    """Return the sequence with increment, bounds, cycle and cache; its start is not yet set."""
    increment = given.get("increment", sequence.increment)
    if increment == 0:
        raise InvalidParameterValue("INCREMENT must not be zero")
    low, high = given.get("minvalue", bounds[0]), given.get("maxvalue", bounds[1])
    half: int = 2 ** (INTEGER_BITS[sequence.type.kind] - 1)
    for word, value in (("MAXVALUE", high), ("MINVALUE", low)):
        if not -half <= value < half:
            raise InvalidParameterValue(
                f"{word} ({value}) is out of range for sequence data type {sequence.type}"
            )
    if low >= high:
        raise InvalidParameterValue(f"MINVALUE ({low}) must be less than MAXVALUE ({high})")
    cache = given.get("cache", sequence.cache)
    if cache <= 0:
        raise InvalidParameterValue(f"CACHE ({cache}) must be greater than zero")
    return replace(
        sequence,
        increment=increment,
        minimum=low,
        maximum=high,
        start=min(max(sequence.start, low), high),
        cycle=bool(given.get("cycle", sequence.cycle)),
        cache=cache,
    )


def _start(sequence: Sequence, given: dict[str, int]) -> int:
    default = sequence.minimum if sequence.increment > 0 else sequence.maximum
    start = given.get("start", default)
    _refuse_outside(sequence, "start", start)
    return start


def _refuse_outside(sequence: Sequence, word: str, value: int) -> None:
    if value < sequence.minimum:
        raise InvalidParameterValue(
            f"{WORDS[word]} ({value}) cannot be less than MINVALUE ({sequence.minimum})"
        )
    if value > sequence.maximum:
        raise InvalidParameterValue(
            f"{WORDS[word]} ({value}) cannot be greater than MAXVALUE ({sequence.maximum})"
        )


def _owned(work: DdlPort, sequence: Sequence, options: SequenceOptions) -> Sequence:
    """Apply OWNED BY table.column, or NONE."""
    for word, value in options:
        if word != "owned by":
            continue
        _require_no_identity(work, sequence)
        if not value.parts or value.parts == ("none",):
            return replace(sequence, owner=None)
        if len(value.parts) < 2:
            raise SqlSyntaxError(
                "invalid OWNED BY option",
                hint="Specify OWNED BY table.column or OWNED BY NONE.",
            )
        table = find_table(work, value.parts[:-1])
        if table.schema != sequence.schema:
            raise NotInPrerequisiteState("sequence must be in same schema as table it is linked to")
        return replace(sequence, owner=(table.key, table.column(value.parts[-1]).name))
    return sequence


def _require_no_identity(work: DdlPort, sequence: Sequence) -> None:
    table = None if sequence.owner is None else work.find(sequence.owner[0])
    if not isinstance(table, Table) or sequence.owner is None:
        return
    if table.column(sequence.owner[1]).identity is not None:
        raise FeatureNotSupported(
            "cannot change ownership of identity sequence",
            detail=f'Sequence "{sequence.name}" is linked to table "{table.name}".',
        )


def _number(work: DdlPort, expression: ast.Expression) -> int:
    return int(_admit(_written(work, expression)))


def _written(work: DdlPort, expression: ast.Expression) -> int:
    match expression:
        case ast.Operator(symbol="-", left=None, right=right):
            return -_written(work, right)
        case ast.Operator(symbol="+", left=None, right=right):
            return _written(work, right)
        case ast.Literal():
            value = work.value(expression)
            if int(value) != value:
                raise InvalidTextRepresentation("a whole number is wanted here")
            return int(value) * (-1 if expression.negative else 1)
        case _:
            raise SqlSyntaxError("a number is wanted here", position=expression.position + 1)
