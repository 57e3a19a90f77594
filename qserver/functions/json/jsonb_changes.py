"""Modifies JSONB: || - #-, jsonb_set and similar.

Structures are shared with a cache, so functions here never mutate them: they copy along the path
and share the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from qserver.errors import (
    ArraySubscriptError,
    InvalidParameterValue,
    InvalidTextRepresentation,
    NullValueNotAllowed,
)
from qserver.functions.costs import changed_cost
from qserver.functions.json.json_access import index_of
from qserver.functions.registry import Function
from qserver.values.jsonb import Jsonb, Structure, jsonb_of
from qserver.values.types import BOOLEAN, INTEGER, JSONB, TEXT, SqlType, array_of

_TEXTS: Final = array_of(TEXT)
_CONTAINERS: Final = (list, dict)

Path = tuple[str | None, ...]


# --- concatenation and deletion ------------------------------------------------------------------


def concatenate(left: Jsonb, right: Jsonb) -> Jsonb:
    """Merge objects; everything else becomes one array."""
    first, second = left.value, right.value
    if isinstance(first, dict) and isinstance(second, dict):
        return jsonb_of({**first, **second})
    return jsonb_of([*_as_list(first), *_as_list(second)])


def _as_list(value: Structure) -> list[Structure]:
    return value if isinstance(value, list) else [value]


def delete_key(value: Jsonb, key: str) -> Jsonb:
    return delete_keys(value, (key,))


def delete_keys(value: Jsonb, keys: Path) -> Jsonb:
    """Delete keys of an object, or elements of an array that are these texts."""
    structure = value.value
    if isinstance(structure, dict):
        return jsonb_of({key: part for key, part in structure.items() if key not in keys})
    if isinstance(structure, list):
        return jsonb_of(
            [each for each in structure if not (isinstance(each, str) and each in keys)]
        )
    raise InvalidParameterValue("cannot delete from scalar")


def delete_element(value: Jsonb, index: int) -> Jsonb:
    structure = value.value
    if isinstance(structure, dict):
        raise InvalidParameterValue("cannot delete from object using integer index")
    if not isinstance(structure, list):
        raise InvalidParameterValue("cannot delete from scalar")
    if not -len(structure) <= index < len(structure):
        return value
    at = index % len(structure)
    return jsonb_of(structure[:at] + structure[at + 1 :])


def delete_path(value: Jsonb, path: Path) -> Jsonb:
    structure = value.value
    if not isinstance(structure, _CONTAINERS):
        raise InvalidParameterValue("cannot delete path in scalar")
    _check_path(path)
    return jsonb_of(_changed(structure, path, _Delete(), 0)) if path and structure else value


# --- assignment ----------------------------------------------------------------------------------


class _Delete:
    """Removes the value at the path."""

    creates = False

    def at_key(self, members: dict[str, Structure], key: str) -> dict[str, Structure]:
        return {other: part for other, part in members.items() if other != key}

    def at_index(self, elements: list[Structure], at: int) -> list[Structure]:
        return elements[:at] + elements[at + 1 :]


class _Replace:
    """Replaces the value at the path, or adds it if there is none and `creates` is true."""

    def __init__(self, value: Structure, creates: bool) -> None:
        self.value = value
        self.creates = creates

    def at_key(self, members: dict[str, Structure], key: str) -> dict[str, Structure]:
        return {**members, key: self.value}

    def at_index(self, elements: list[Structure], at: int) -> list[Structure]:
        return [*elements[:at], self.value, *elements[at + 1 :]]


class _Insert(_Replace):
    """Inserts a value beside an element; an object accepts only new keys."""

    def __init__(self, value: Structure, after: bool) -> None:
        super().__init__(value, creates=True)
        self.after = after

    def at_key(self, members: dict[str, Structure], key: str) -> dict[str, Structure]:
        if key in members:
            raise InvalidParameterValue(
                "cannot replace existing key",
                hint="Try using the function jsonb_set to replace key value.",
            )
        return super().at_key(members, key)

    def at_index(self, elements: list[Structure], at: int) -> list[Structure]:
        at += self.after
        return [*elements[:at], self.value, *elements[at:]]


def set_path(value: Jsonb, path: Path, replacement: Jsonb, create: bool = True) -> Jsonb:
    structure = value.value
    if not isinstance(structure, _CONTAINERS):
        raise InvalidParameterValue("cannot set path in scalar")
    _check_path(path)
    if not path or (not structure and not create):
        return value
    return jsonb_of(_changed(structure, path, _Replace(replacement.value, create), 0))


def insert_path(value: Jsonb, path: Path, new: Jsonb, after: bool = False) -> Jsonb:
    structure = value.value
    if not isinstance(structure, _CONTAINERS):
        raise InvalidParameterValue("cannot set path in scalar")
    _check_path(path)
    return jsonb_of(_changed(structure, path, _Insert(new.value, after), 0)) if path else value


def set_path_lax(
    value: Jsonb | None,
    path: Path | None,
    replacement: Jsonb | None,
    create: bool | None = True,
    treatment: str | None = "use_json_null",
) -> Jsonb | None:
    """`set_path` with a choice of what NULL as a new value means."""
    if value is None or path is None or create is None:
        return None
    if replacement is not None:
        return set_path(value, path, replacement, create)
    if treatment is None:
        raise NullValueNotAllowed(
            'null_value_treatment must be "delete_key", "return_target",'
            ' "use_json_null", or "raise_exception"'
        )
    if treatment == "raise_exception":
        raise NullValueNotAllowed(
            "JSON value must not be null",
            detail='Exception was raised because null_value_treatment is "raise_exception".',
            hint="To avoid, either change the null_value_treatment argument or ensure that an SQL"
            " NULL is not passed.",
        )
    if treatment == "use_json_null":
        return set_path(value, path, Jsonb("null"), create)
    if treatment == "delete_key":
        return delete_path(value, path)
    if treatment == "return_target":
        return value
    raise InvalidParameterValue(
        'null_value_treatment must be "delete_key", "return_target",'
        ' "use_json_null", or "raise_exception"'
    )


def _check_path(path: Path) -> None:
    if path and isinstance(path[0], tuple):
        raise ArraySubscriptError("wrong number of array subscripts")


def _changed(structure: Structure, path: Path, change: _Delete | _Replace, level: int) -> Structure:
    """Apply the change at the path; a path that leads nowhere changes nothing."""
    step = path[level]
    if step is None:
        raise NullValueNotAllowed(f"path element at position {level + 1} is null")
    if not isinstance(structure, _CONTAINERS):
        return structure
    last = level == len(path) - 1
    if isinstance(structure, list):
        return _changed_array(structure, path, change, level)
    if step not in structure:
        return change.at_key(structure, step) if last and change.creates else structure
    if last:
        return change.at_key(structure, step)
    return {**structure, step: _changed(structure[step], path, change, level + 1)}


def _changed_array(
    array: list[Structure], path: Path, change: _Delete | _Replace, level: int
) -> list[Structure]:
    step, last = path[level], level == len(path) - 1
    index = index_of(step or "")
    if index is None:
        raise InvalidTextRepresentation(
            f'path element at position {level + 1} is not an integer: "{step}"'
        )
    at = index + len(array) if index < 0 else index
    if 0 <= at < len(array):
        if last:
            return change.at_index(array, at)
        return [*array[:at], _changed(array[at], path, change, level + 1), *array[at + 1 :]]
    if not (last and change.creates):
        return array
    assert isinstance(change, _Replace), "to delete creates nothing"
    return [change.value, *array] if at < 0 else [*array, change.value]


# --- the tables ----------------------------------------------------------------------------------


def _operators() -> Iterator[Function]:
    table: tuple[tuple[str, SqlType, Any], ...] = (
        ("||", JSONB, concatenate),
        ("-", TEXT, delete_key),
        ("-", INTEGER, delete_element),
        ("-", _TEXTS, delete_keys),
        ("#-", _TEXTS, delete_path),
    )
    for symbol, right, call in table:
        yield Function(symbol, (JSONB, right), JSONB, call, symbol=symbol, cost=changed_cost)


def _functions() -> Iterator[Function]:
    setting = (JSONB, _TEXTS, JSONB)
    for parameters in (setting, (*setting, BOOLEAN)):
        yield Function("jsonb_set", parameters, JSONB, set_path, cost=changed_cost)
        yield Function("jsonb_insert", parameters, JSONB, insert_path, cost=changed_cost)
    for extra in ((), (BOOLEAN,), (BOOLEAN, TEXT)):
        yield Function(
            "jsonb_set_lax",
            (*setting, *extra),
            JSONB,
            set_path_lax,
            strict=False,
            cost=changed_cost,
            gives_null=True,
        )
    named: tuple[tuple[str, SqlType, Any], ...] = (
        ("jsonb_concat", JSONB, concatenate),
        ("jsonb_delete", TEXT, delete_key),
        ("jsonb_delete", INTEGER, delete_element),
        ("jsonb_delete_path", _TEXTS, delete_path),
    )
    for name, right, call in named:
        yield Function(name, (JSONB, right), JSONB, call, cost=changed_cost)


OPERATORS: Final = tuple(_operators())
FUNCTIONS: Final = tuple(_functions())
