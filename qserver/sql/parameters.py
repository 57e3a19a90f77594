"""Parameters: converts JSON values to the types that the binder inferred.

    type                 given as
    boolean, numbers     themselves; or a text, read like a literal
    text                 a text; a number or boolean becomes its text
    numeric              a number, exactly as written; or a text
    dates, uuid          a text
    bytea                a text in base64, as in answers
    json, jsonb          an object, a list, a number, a boolean; or a text, which is JSON itself
    array                a list, nested for more dimensions; or a text such as {1,2}

If nothing in the statement determines a parameter's type, its value does: `type_of_value`.

NULL is None for every type. A value that does not fit causes the error that its text would cause.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import msgspec

from qserver.errors import (
    InvalidTextRepresentation,
    ProgramLimitExceeded,
    ProtocolViolation,
    StatementTooComplex,
)
from qserver.limits import ARRAY_DIMENSIONS_MAX, JSON_DEPTH_MAX
from qserver.values.admission import admitter
from qserver.values.casts import cast_function
from qserver.values.records import Record
from qserver.values.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    INTEGER_BITS,
    JSONB,
    NUMERIC,
    TEXT,
    TEXT_KINDS,
    Kind,
    SqlType,
)

Converter = Callable[[Any], Any]
Given = Sequence[Any] | Mapping[str, Any] | None


class PartlyDeclared(dict[int | str, SqlType]):
    """The types that a client declares for some parameters; the binder infers the others."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: int | str) -> None:
        return None


@dataclass(frozen=True, slots=True)
class ParameterList:
    """The parameters of a statement, in order: `$1` … `$n` without gaps, or `:name`."""

    converters: tuple[tuple[str, Converter], ...]
    """The slot of each, and what makes a value for it."""
    types: tuple[SqlType, ...]
    names: tuple[str, ...] = ()
    """The names, if they have names."""

    def slots(self, literals: Sequence[Any], given: Given) -> dict[int | str, Any]:
        """Return literals and parameters of one execution, keyed for generated code."""
        slots: dict[int | str, Any] = dict(enumerate(literals))
        for (slot, convert), value in zip(self.converters, self.values(given), strict=True):
            slots[slot] = None if value is None else convert(value)
        return slots

    def values(self, given: Given) -> Sequence[Any]:
        """Return the given values in the order of the parameters; refuse too many and too few."""
        if self.names:
            named = self._checked_names(given)
            return [named[name] for name in self.names]
        values = () if given is None else given
        if type(values) is not list and isinstance(values, Mapping | str):
            if values:
                raise ProtocolViolation(
                    "the statement's parameters have numbers, but names were given"
                )
            values = ()
        if len(values) != len(self.converters):
            raise ProtocolViolation(
                f"the statement has {_counted(len(self.converters))},"
                f" but {len(values)} {'was' if len(values) == 1 else 'were'} given"
            )
        return values

    def _checked_names(self, given: Given) -> Mapping[str, Any]:
        if not isinstance(given, Mapping):
            raise ProtocolViolation(
                "the statement's parameters have names: give an object with a value for each",
                detail="They are " + ", ".join(f":{name}" for name in self.names) + ".",
            )
        for name in self.names:
            if name not in given:
                raise ProtocolViolation(f"parameter :{name} was not given")
        if len(given) > len(self.names):
            known = set(self.names)
            unknown = next(name for name in given if name not in known)
            raise ProtocolViolation(f"the statement has no parameter :{unknown}")
        return given


def type_of_value(value: Any) -> SqlType | None:
    """Return the type of a value alone: for numbers, the first type that holds all digits.

    None for a text, which may be of any type, and for NULL.
    """
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int):
        return next((each for each in _INTEGERS if _holds(each, value)), NUMERIC)
    if isinstance(value, float):
        return DOUBLE
    if isinstance(value, Decimal):
        return DOUBLE if Decimal(repr(float(value))) == value else NUMERIC
    return JSONB if isinstance(value, list | tuple | Mapping) else None


_INTEGERS: Final = (INTEGER, BIGINT)


def _holds(sql_type: SqlType, value: int) -> bool:
    half: int = 2 ** (INTEGER_BITS[sql_type.kind] - 1)
    return -half <= value < half


def type_of_given(given: Given, name: int | str) -> SqlType | None:
    """Return `type_of_value` of a parameter, by its number or name."""
    if isinstance(given, Mapping):
        return type_of_value(given.get(str(name)))
    values = given or ()
    is_there = isinstance(name, int) and name <= len(values)
    return type_of_value(values[int(name) - 1]) if is_there else None


def types_of(given: Given, names: tuple[int | str, ...]) -> tuple[SqlType | None, ...]:
    """Return `type_of_value` of some parameters, for the key of a plan that needs their types."""
    return tuple([type_of_given(given, name) for name in names])


def _counted(count: int) -> str:
    return f"{count} parameter" if count == 1 else f"{count} parameters"


def parameter_list(types: Mapping[int | str, SqlType]) -> ParameterList:
    numbers = sorted(name for name in types if isinstance(name, int))
    names = [name for name in types if isinstance(name, str)]
    if numbers and names:
        raise ProtocolViolation("a statement has parameters with numbers or with names, not both")
    if names:
        named = tuple((f":{name}", converter(types[name])) for name in names)
        return ParameterList(named, tuple(types[name] for name in names), tuple(names))
    count = numbers[-1] if numbers else 0
    in_order = tuple([types.get(number, TEXT) for number in range(1, count + 1)])
    known = {id(each): each for each in in_order}  # thousands have few types
    converters = {number: converter(each) for number, each in known.items()}
    numbered = tuple([(f"${n}", converters[id(each)]) for n, each in enumerate(in_order, 1)])
    return ParameterList(numbered, in_order)


@lru_cache(maxsize=1024)
def converter(sql_type: SqlType) -> Converter:
    """Return the function from a given value, never NULL, to a value of the type."""
    read = _text_reader(sql_type)
    kind = sql_type.kind
    if kind is Kind.ARRAY and sql_type.element is not None:
        return _array_converter(sql_type, sql_type.element, read)
    if kind in (Kind.JSON, Kind.JSONB):
        return lambda value: read(value if type(value) is str else json_of(value))
    if kind in INTEGER_BITS:
        return _integer_converter(sql_type, read)
    if kind is Kind.BYTEA:
        return _bytes_of
    if kind in TEXT_KINDS or kind is Kind.UNKNOWN:
        return lambda value: read(value if type(value) is str else _as_text(value))
    admit = admitter(sql_type)
    plain = _PLAIN.get(kind)
    if plain is None:
        return lambda value: read(value) if isinstance(value, str) else _other(value, admit, read)

    def convert(value: Any) -> Any:
        if type(value) in plain:
            return admit(Decimal(str(value)) if kind is Kind.NUMERIC else value)
        return read(value if type(value) is str else _as_text(value))

    return convert


_PLAIN: Final[Mapping[Kind, tuple[type, ...]]] = {
    Kind.BOOLEAN: (bool,),
    Kind.REAL: (int, float, Decimal),
    Kind.DOUBLE: (int, float, Decimal),
    Kind.NUMERIC: (int, float, Decimal),
}
_JSON_TYPES: Final = (bool, int, float, str, list, dict)


def _text_reader(sql_type: SqlType) -> Converter:
    """Return the function that reads a text as the type; it refuses surplus, never truncates."""
    if sql_type.kind in TEXT_KINDS:
        return admitter(sql_type)
    return admitter(TEXT) if sql_type.kind is Kind.UNKNOWN else cast_function(TEXT, sql_type)


def _bytes_of(value: Any) -> bytes:
    """Decode base64, the format of bytes in answers."""
    if isinstance(value, bytes):
        return value
    try:
        return b64decode(value, validate=True)
    except (TypeError, ValueError):
        raise InvalidTextRepresentation(
            "invalid value for a parameter of type bytea",
            hint="Give bytes as a text in base64, or write them into the statement: '\\x00ff'.",
        ) from None


def _integer_converter(sql_type: SqlType, read: Converter) -> Converter:
    half = 2 ** (INTEGER_BITS[sql_type.kind] - 1)

    def convert(value: Any) -> Any:
        if type(value) is int and -half <= value < half:
            return value
        return read(value if type(value) is str else _as_text(value))

    return convert


def _array_converter(sql_type: SqlType, element: SqlType, read: Converter) -> Converter:
    convert, admit = converter(element), admitter(sql_type)

    def inside(value: Any, depth: int = 1) -> Any:
        if isinstance(value, list | tuple) and type(value) is not Record:
            check_dimensions(depth)
            return tuple([inside(each, depth + 1) for each in value])
        return None if value is None else convert(value)

    return lambda value: read(value) if isinstance(value, str) else admit(inside(_listed(value)))


def check_dimensions(depth: int) -> None:
    """Refuse more than six dimensions; a list in a list is an array of two."""
    if depth > ARRAY_DIMENSIONS_MAX:
        raise ProgramLimitExceeded(
            f"number of array dimensions exceeds the maximum allowed ({ARRAY_DIMENSIONS_MAX})"
        )


def _listed(value: Any) -> Any:
    return value if isinstance(value, list | tuple) else [value]


def _other(value: Any, admit: Converter, read: Converter) -> Any:
    """Convert a Python value of the type itself, from a caller other than JSON."""
    return read(_as_text(value)) if isinstance(value, _JSON_TYPES) else admit(value)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        return json_of(value)
    return str(value)


def json_of(value: Any) -> str:
    """Return a list or an object as JSON text."""
    try:
        return _encode(value).decode()
    except RecursionError:  # deeper than any JSON that is accepted
        raise StatementTooComplex(
            "stack depth limit exceeded",
            detail=f"JSON may be nested {JSON_DEPTH_MAX} levels deep.",
        ) from None


_encode = msgspec.json.Encoder(decimal_format="number").encode
