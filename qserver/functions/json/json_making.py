"""Creates JSON and JSONB from values: to_json, json_build_object, row_to_json, json_agg …

Each type has one writer, which is cached. Numbers and booleans are themselves, JSON is copied,
dates are ISO with a T, arrays and records are written by their parts, and all else is its text in
quotes. JSON and JSONB differ only in blanks, in the order of keys and in duplicate keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from functools import lru_cache, partial
from hashlib import sha256
from typing import Any, Final

from qserver.errors import (
    ArraySubscriptError,
    InvalidParameterValue,
    NullValueNotAllowed,
    UndefinedFunction,
)
from qserver.functions.costs import refuse_steps
from qserver.functions.registry import Aggregate, Function
from qserver.functions.signatures import Generic
from qserver.limits import STEPS_AT_ONCE_MAX
from qserver.values.arrays import Array, dimensions
from qserver.values.json_input import jsonb_from_text
from qserver.values.jsonb import Jsonb, key_order, quoted
from qserver.values.text_output import shown_function, text_of_numeric, text_of_timestamp
from qserver.values.types import (
    ANY,
    ANYARRAY,
    ANYELEMENT,
    BOOLEAN,
    JSON,
    JSONB,
    NUMBER_KINDS,
    TEXT,
    Kind,
    SqlType,
    array_of,
    type_of_value,
)
from qserver.values.zones import offset_text, on_session_clock

Write = Callable[[Any], str]

MEMBER_STEPS: Final = 2
"""The cost of adding a member to an object."""

_STRUCTURED: Final = {"array_to_json": Kind.ARRAY, "row_to_json": Kind.RECORD}
_NOT_A_KEY: Final = (Kind.ARRAY, Kind.RECORD, Kind.JSON, Kind.JSONB)
_TEXTS: Final = array_of(TEXT)


# --- one writer per type -------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def json_writer(sql_type: SqlType, canonical: bool = False, line: str = "") -> Write:
    """Return the function from a value to its JSON text; `canonical` for the text of a JSONB.

    `line` goes between the elements of the outermost array or record.
    """
    kind = sql_type.kind
    if kind is Kind.BOOLEAN:
        return lambda value: "true" if value else "false"
    if kind in NUMBER_KINDS:
        return _number_writer(sql_type, canonical)
    if kind is Kind.JSON:
        return (lambda value: jsonb_from_text(value).text) if canonical else str
    if kind is Kind.JSONB:
        return str
    if kind is Kind.TIMESTAMP:
        return lambda value: f'"{text_of_timestamp(value).replace(" ", "T")}"'
    if kind is Kind.TIMESTAMPTZ:
        return _moment_text
    if sql_type.element is not None:
        return _array_writer(json_writer(sql_type.element, canonical), canonical, line)
    if kind is Kind.RECORD:
        return partial(_write_record, sql_type, canonical, line)
    show = shown_function(sql_type)
    return lambda value: quoted(show(value))


def _moment_text(value: datetime) -> str:
    """A point in time by the clocks of the session's zone, with its offset."""
    local = on_session_clock(value)
    text = text_of_timestamp(local).replace(" ", "T")
    offset = offset_text(local.utcoffset() or timedelta())
    return f'"{text}{offset}"' if ":" in offset else f'"{text}{offset}:00"'


def _number_writer(sql_type: SqlType, canonical: bool) -> Write:
    show = shown_function(sql_type)

    def write(value: Any) -> str:
        text = show(value)
        if not text[-1].isdigit():
            return f'"{text}"'  # NaN and Infinity are no JSON
        if canonical and ("e" in text or text == "-0"):  # JSONB has numerics
            return text_of_numeric(Decimal("0" if text == "-0" else text))
        return text

    return write


def _array_writer(write: Write, canonical: bool, line: str) -> Write:
    separator = ", " if canonical else ","

    def write_array(array: Array, between: str = line) -> str:
        if array and type(array[0]) is tuple:
            parts = [write_array(part, "") for part in array]
        else:
            parts = ["null" if each is None else write(each) for each in array]
        return f"[{(separator + between).join(parts)}]"

    return write_array


def _write_record(sql_type: SqlType, canonical: bool, line: str, record: tuple[Any, ...]) -> str:
    columns = sql_type.columns or tuple(
        (f"f{at}", TEXT if value is None else type_of_value(value))
        for at, value in enumerate(record, 1)
    )
    members = [
        (name, "null" if value is None else json_writer(each, canonical)(value))
        for (name, each), value in zip(columns, record, strict=True)
    ]
    if canonical:
        return canonical_object(members)
    return f"{{{f',{line}'.join(f'{quoted(key)}:{part}' for key, part in members)}}}"


def canonical_object(members: Mapping[str, str] | Iterable[tuple[str, str]]) -> str:
    """Return the text of a JSONB object from canonical texts; the last of equal keys wins."""
    parts = dict(members)
    if MEMBER_STEPS * len(parts) > STEPS_AT_ONCE_MAX:
        raise refuse_steps("a JSONB object", MEMBER_STEPS * len(parts))
    ordered = sorted(parts, key=key_order)
    return f"{{{', '.join(f'{quoted(key)}: {parts[key]}' for key in ordered)}}}"


# --- to_json and similar -------------------------------------------------------------------------


def _to_json(types: tuple[SqlType, ...]) -> Function:
    return Function("to_json", types, JSON, json_writer(types[0]))


def _to_jsonb(types: tuple[SqlType, ...]) -> Function:
    write = json_writer(types[0], canonical=True)
    return Function("to_jsonb", types, JSONB, lambda value: Jsonb(write(value)))


def _with_lines(name: str) -> Callable[[tuple[SqlType, ...]], Function]:
    """Return array_to_json or row_to_json, which may add line feeds."""

    def make(types: tuple[SqlType, ...]) -> Function:
        if types[0].kind is not _STRUCTURED[name]:
            raise UndefinedFunction(
                f"function {name}({', '.join(map(str, types))}) does not exist",
                hint="No function matches the given name and argument types. "
                "You might need to add explicit type casts.",
            )
        plain, pretty = json_writer(types[0]), json_writer(types[0], line="\n ")
        return Function(
            name, types, JSON, lambda value, lines=False: (pretty if lines else plain)(value)
        )

    return make


# --- json_build_object and similar ---------------------------------------------------------------


def _build_array(name: str, canonical: bool) -> Callable[[tuple[SqlType, ...]], Function]:
    wrap: Callable[[str], Any] = Jsonb if canonical else str

    def make(types: tuple[SqlType, ...]) -> Function:
        writers = [json_writer(each, canonical) for each in types]

        def build(*values: Any) -> Any:
            parts = [
                "null" if value is None else write(value)
                for write, value in zip(writers, values, strict=True)
            ]
            return wrap(f"[{', '.join(parts)}]")

        return Function(name, types, JSONB if canonical else JSON, build, strict=False)

    return make


def _build_object(name: str, canonical: bool) -> Callable[[tuple[SqlType, ...]], Function]:
    def make(types: tuple[SqlType, ...]) -> Function:
        if len(types) % 2:
            raise InvalidParameterValue(
                "argument list must have even number of elements",
                hint=f"The arguments of {name}() must consist of alternating keys and values.",
            )
        keys = [_key_writer(each) for each in types[::2]]
        writers = [json_writer(each, canonical) for each in types[1::2]]

        def build(*values: Any) -> Any:
            members = []
            for at, (key, value) in enumerate(zip(values[::2], values[1::2], strict=True)):
                if key is None:
                    raise _null_key(at * 2 + 1, canonical)
                members.append((keys[at](key), "null" if value is None else writers[at](value)))
            return Jsonb(canonical_object(members)) if canonical else _spaced_object(members)

        return Function(name, types, JSONB if canonical else JSON, build, strict=False)

    return make


def _null_key(argument: int, canonical: bool) -> InvalidParameterValue:
    if canonical:
        return InvalidParameterValue(f"argument {argument}: key must not be null")
    return InvalidParameterValue(
        f"argument {argument} cannot be null", hint="Object keys should be text."
    )


def _key_writer(sql_type: SqlType) -> Write:
    if sql_type.kind in _NOT_A_KEY:

        def refuse(value: Any) -> str:
            raise InvalidParameterValue("key value must be scalar, not array, composite, or json")

        return refuse
    if sql_type.kind is Kind.BOOLEAN:
        return lambda value: "true" if value else "false"
    if sql_type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        write = json_writer(sql_type)
        return lambda value: write(value)[1:-1]
    return shown_function(sql_type)


def _spaced_object(members: Iterable[tuple[str, str]]) -> str:
    return f"{{{', '.join(f'{quoted(key)} : {value}' for key, value in members)}}}"


def _object_of_texts(canonical: bool) -> Callable[..., Any]:
    """json_object: keys and values in one array, in pairs, or in two."""

    def build(first: Array, second: Array | None = None) -> Any:
        pairs = _pairs(first) if second is None else _zipped(first, second)
        members = []
        for key, value in pairs:
            if key is None:
                raise NullValueNotAllowed("null value not allowed for object key")
            members.append((key, "null" if value is None else quoted(value)))
        return Jsonb(canonical_object(members)) if canonical else _spaced_object(members)

    return build


def _pairs(array: Array) -> Array:
    sizes = dimensions(array)
    if len(sizes) > 2:
        raise ArraySubscriptError("wrong number of array subscripts")
    if len(sizes) == 2:
        if sizes[1] != 2:
            raise ArraySubscriptError("array must have two columns")
        return array
    if len(array) % 2:
        raise ArraySubscriptError("array must have even number of elements")
    return tuple(zip(array[::2], array[1::2], strict=True))


def _zipped(keys: Array, values: Array) -> Array:
    if len(dimensions(keys)) > 1 or len(dimensions(keys)) != len(dimensions(values)):
        raise ArraySubscriptError("wrong number of array subscripts")
    if len(keys) != len(values):
        raise ArraySubscriptError("mismatched array dimensions")
    return tuple(zip(keys, values, strict=True))


# --- aggregates ----------------------------------------------------------------------------------


def _array_aggregate(name: str, canonical: bool) -> Callable[[tuple[SqlType, ...]], Aggregate]:
    wrap: Callable[[str], Any] = Jsonb if canonical else str

    def make(types: tuple[SqlType, ...]) -> Aggregate:
        write = json_writer(types[0], canonical)
        lines = types[0].kind in _STRUCTURED.values() and not canonical

        def add(texts: list[str] | None, value: Any) -> list[str]:
            texts = [] if texts is None else texts
            texts.append("null" if value is None else write(value))
            return texts

        def finish(texts: list[str]) -> Any:
            return wrap(f"[{(', ' + chr(10) + ' ' if lines else ', ').join(texts)}]")

        return _aggregate(name, types, canonical, add, finish, "{s0}, {0}")

    return make


def _object_aggregate(name: str, canonical: bool) -> Callable[[tuple[SqlType, ...]], Aggregate]:
    def make(types: tuple[SqlType, ...]) -> Aggregate:
        write_key, write = _key_writer(types[0]), json_writer(types[1], canonical)

        def member(key: Any, value: Any) -> tuple[str, str]:
            if key is None:
                raise InvalidParameterValue("field name must not be null")
            return write_key(key), "null" if value is None else write(value)

        def add(members: list[tuple[str, str]] | None, key: Any, value: Any) -> Any:
            members = [] if members is None else members
            members.append(member(key, value))
            return members

        def put(members: dict[str, str] | None, key: Any, value: Any) -> Any:
            members = {} if members is None else members
            members.update((member(key, value),))  # once: a window asks for the object at each row
            return members

        def finish(members: list[tuple[str, str]]) -> Any:
            return f"{{ {_spaced_object(members)[1:-1]} }}"

        if canonical:
            return _aggregate(name, types, True, put, _finished_object, "{s0}, {0}, {1}")
        return _aggregate(name, types, False, add, finish, "{s0}, {0}, {1}")

    return make


def _finished_object(members: dict[str, str]) -> Jsonb:
    return Jsonb(canonical_object(members))


def _aggregate(
    name: str,
    types: tuple[SqlType, ...],
    canonical: bool,
    add: Callable[..., Any],
    finish: Callable[..., Any],
    arguments: str,
) -> Aggregate:
    # A name means one object in a statement, which may call the aggregate for several types.
    mark = sha256(repr(types).encode()).hexdigest()[:16]
    adds, finishes = f"add_{name}_{mark}", f"finish_{name}_{mark}"
    return Aggregate(
        name,
        types,
        JSONB if canonical else JSON,
        ("None",),
        f"{{s0}} = {adds}({arguments})",
        f"(None if {{s0}} is None else {finishes}({{s0}}))",
        {adds: add, finishes: finish},
        strict=False,
        ordered=True,
        keeps=True,
    )


# --- the tables ----------------------------------------------------------------------------------


def _functions() -> Iterator[Function | Generic]:
    yield Generic("to_json", (ANYELEMENT,), _to_json)
    yield Generic("to_jsonb", (ANYELEMENT,), _to_jsonb)
    for name, own in (("array_to_json", ANYARRAY), ("row_to_json", ANYELEMENT)):
        yield Generic(name, (own,), _with_lines(name))
        yield Generic(name, (own, BOOLEAN), _with_lines(name))
    for prefix, canonical, returns in (("json", False, JSON), ("jsonb", True, JSONB)):
        build_array, build_object = f"{prefix}_build_array", f"{prefix}_build_object"
        yield _build_array(build_array, canonical)(())
        yield _build_object(build_object, canonical)(())
        yield Generic(build_array, (ANY,), _build_array(build_array, canonical), variadic=True)
        yield Generic(build_object, (ANY,), _build_object(build_object, canonical), variadic=True)
        for parameters in ((_TEXTS,), (_TEXTS, _TEXTS)):
            yield Function(f"{prefix}_object", parameters, returns, _object_of_texts(canonical))


def _aggregates() -> Iterator[Generic]:
    for prefix, canonical in (("json", False), ("jsonb", True)):
        for name, parameters, make in (
            (f"{prefix}_agg", (ANYELEMENT,), _array_aggregate),
            (f"{prefix}_object_agg", (ANY, ANY), _object_aggregate),
        ):
            yield Generic(name, parameters, make(name, canonical))


FUNCTIONS: Final = tuple(_functions())
AGGREGATES: Final = tuple(_aggregates())
