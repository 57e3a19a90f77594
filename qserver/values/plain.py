"""The plain form of a definition, for the log: lists, dicts, texts and numbers.

A class of fields is a dict of them by name, in their order. What is in a field may have a plain
form of its own (`to_plain`), and then needs a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self


class PlainFields:
    """A frozen dataclass with a plain form."""

    __slots__ = ()

    READERS: ClassVar[Mapping[str, Callable[[Any], Any]]] = {}
    """By field, the inverse of `to_plain` of what is in it."""

    def to_plain(self) -> dict[str, Any]:
        return {name: _plain(getattr(self, name)) for name in _names(type(self))}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """An old log lacks fields that were added since: they have defaults."""
        read = cls.READERS
        found = [name for name in _names(cls) if name in plain]
        return cls(**{name: read.get(name, _frozen)(plain[name]) for name in found})


def each_by(reader: Callable[[Any], Any]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Return a reader of several."""
    return lambda plain: tuple(map(reader, plain))


def _names(kind: type[Any]) -> list[str]:
    return [each.name for each in fields(kind) if each.init]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.to_plain() if hasattr(value, "to_plain") else value


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value
