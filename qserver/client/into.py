"""Rows as objects of a class of the caller: dataclasses, NamedTuples, models of msgspec, pydantic.

    columns ──► do they have the fields that the class needs, and no others? ──► each row, checked

A column goes into the field of its name. What JSON carries as a text becomes what the field says:
Decimal, date, datetime, UUID, bytes. What does not fit is an error that names row and column.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, get_type_hints

import msgspec

from qserver.errors import InvalidRequest

Made = TypeVar("Made")


def rows_into(
    made: type[Made], columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> list[Made]:
    needed, known, make = _maker(made)
    _check_names(made, columns, needed, known)
    found = []
    for number, row in enumerate(rows, 1):
        try:
            found.append(make(dict(zip(columns, row, strict=True))))
        except ValueError as error:  # of msgspec and pydantic
            raise InvalidRequest(
                f"row {number} does not fit into {made.__name__}: {_said(error)}",
                hint="Change the type of the field, or cast the column in the SQL.",
            ) from None
    return found


def _check_names(
    made: type, columns: Sequence[str], needed: frozenset[str], known: frozenset[str] | None
) -> None:
    for name in columns:
        if known is not None and name not in known:
            raise InvalidRequest(
                f'{made.__name__} has no field for the column "{name}"',
                hint="Name the columns that you want instead of *, or add the field.",
            )
    for name in sorted(needed.difference(columns)):
        raise InvalidRequest(
            f'the result has no column for the field "{name}" of {made.__name__}',
            hint=f"Select it, perhaps as: … AS {name}; or give the field a default.",
        )


def _maker(
    made: type[Made],
) -> tuple[frozenset[str], frozenset[str] | None, Callable[[dict[str, Any]], Made]]:
    """Names of fields that a class needs and of those that it has, and what makes one."""
    if dataclasses.is_dataclass(made):
        fields = [field for field in dataclasses.fields(made) if field.init]
        needed = {
            field.name
            for field in fields
            if field.default is field.default_factory is dataclasses.MISSING
        }
        return frozenset(needed), frozenset(field.name for field in fields), _converting(made)
    if issubclass(made, msgspec.Struct):
        of_struct = msgspec.structs.fields(made)
        needed = {field.encode_name for field in of_struct if field.required}
        return (
            frozenset(needed),
            frozenset(each.encode_name for each in of_struct),
            _converting(made),
        )
    if issubclass(made, tuple) and "_fields" in vars(made):
        names, defaults = frozenset(vars(made)["_fields"]), vars(made)["_field_defaults"]
        return names.difference(defaults), names, _naming(made)
    validate = getattr(made, "model_validate", None)
    if validate is not None:
        return frozenset(), None, validate  # it knows aliases, and tells what is missing
    raise InvalidRequest(
        f"rows cannot be made into {made.__name__}",
        hint="Give a dataclass, a NamedTuple, a msgspec.Struct or a model of pydantic.",
    )


def _converting(made: type[Made]) -> Callable[[dict[str, Any]], Made]:
    return lambda row: msgspec.convert(row, made)


def _naming(made: type[Made]) -> Callable[[dict[str, Any]], Made]:
    """A NamedTuple, by the names of its fields: their order need not be that of the columns."""
    hints = get_type_hints(made)
    shape = msgspec.defstruct(made.__name__, [(name, hints[name], None) for name in hints])

    def make(row: dict[str, Any]) -> Made:
        checked = msgspec.convert(row, shape)
        return made(**{name: getattr(checked, name) for name in row})

    return make


def _said(error: ValueError) -> str:
    """What is wrong, and in which column."""
    errors = getattr(error, "errors", None)
    if errors is None:
        message, _, path = str(error).partition(" - at `$.")
        return f'column "{path[:-1]}": {message}' if path else message
    first = errors()[0]
    return f'column "{".".join(map(str, first["loc"]))}": {first["msg"]}'
