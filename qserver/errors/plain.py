"""Errors as plain values: one that is raised in a process can be raised again in another.

    SerializationFailure(…)  ──►  ["qserver.errors.requests.SerializationFailure", …, {attributes}]

The plain form holds the class with its parents, nearest first, and the attributes of the object. A
reader takes the first class that it knows, so an error of a module that it has not imported arrives
as the parent. No class has to say anything for that: a new one travels too.

An attribute that is not plain (the conflict of a serialization failure is an object of the engine)
arrives as None, and a list as a tuple: attributes of errors do not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from qserver.errors.error import QserverError

_PLAIN: Final = (bool, int, float, str, bytes)


def error_to_plain(error: QserverError) -> tuple[list[str], dict[str, object]]:
    """Return the names of its classes, and its attributes."""
    classes = [_name(each) for each in type(error).__mro__ if issubclass(each, QserverError)]
    own = vars(error).items()
    return classes, {name: _plain(value) for name, value in own if not name.startswith("__")}


def error_from_plain(classes: Sequence[str], attributes: Mapping[str, object]) -> QserverError:
    known = {_name(each): each for each in _classes(QserverError)}
    error_class = next((known[name] for name in classes if name in known), QserverError)
    # Constructors ask for fields of their own; here all come from the attributes.
    error = error_class.__new__(error_class)
    QserverError.__init__(error, str(attributes.get("message", "")))
    vars(error).update({name: _frozen(value) for name, value in attributes.items()})
    return error


def _name(error_class: type) -> str:
    return f"{error_class.__module__}.{error_class.__qualname__}"


def _classes(error_class: type[QserverError]) -> Iterator[type[QserverError]]:
    yield error_class
    for each in error_class.__subclasses__():
        yield from _classes(each)


def _plain(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if type(value) in _PLAIN else None


def _frozen(value: object) -> object:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
