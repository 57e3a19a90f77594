"""ENUM types and their values: labels that sort by their place in the type.

A value is a `str` with a position, so that `<`, `sorted` and keys need not know the type:
Label('low', 0.0) < Label('high', 1.0).  Equality and hash are those of the text.

Positions are floats, as in PostgreSQL: a label added between two others gets a position between
theirs, and no stored value changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, final

from qserver.errors import InvalidParameterValue, InvalidTextRepresentation
from qserver.limits import IDENTIFIER_BYTES_MAX
from qserver.values.identifiers import PUBLIC, Named, qualified


@final
class Label(str):
    __slots__ = ("position",)

    position: float

    def __new__(cls, label: str, position: float) -> Label:
        value = super().__new__(cls, label)
        value.position = position
        return value

    # `Above` (see `keys`) compares itself with a label; a plain text is never in the same column.
    def __lt__(self, other: object) -> bool:
        return self.position < other.position if isinstance(other, Label) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self.position <= other.position if isinstance(other, Label) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self.position > other.position if isinstance(other, Label) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self.position >= other.position if isinstance(other, Label) else NotImplemented

    __eq__ = str.__eq__
    __hash__ = str.__hash__

    def __reduce__(self) -> tuple[type[Label], tuple[str, float]]:
        return Label, (str(self), self.position)

    def __repr__(self) -> str:
        return f"Label({str(self)!r}, {self.position})"


@dataclass(frozen=True, slots=True)
class Enumeration(Named):
    """An ENUM type: its name, its labels in order, and its schema.

    Copies of it are in the types of columns; those have no oids and no comments of their own.
    """

    name: str
    labels: tuple[Label, ...]
    schema: str = PUBLIC
    oid: int = field(default=0, compare=False)
    label_oids: tuple[int, ...] = field(default=(), compare=False)
    comments: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        return qualified(self.schema, self.name)

    @property
    def in_column(self) -> Enumeration:
        """The copy that the type of a column has."""
        return Enumeration(self.name, self.labels, self.schema)

    def label_of(self, text: str) -> Label:
        """The label with this text."""
        for label in self.labels:
            if label == text:
                return label
        raise InvalidTextRepresentation(f'invalid input value for enum {self}: "{text}"')

    def with_label(self, text: str, before: str | None = None, after: str | None = None) -> Any:
        """The type with one more label, at the end unless a neighbour is named."""
        check_label(text)
        if text in self.labels:
            raise InvalidParameterValue(f'enum label "{text}" already exists')
        at = len(self.labels)
        for neighbour, step in ((before, 0), (after, 1)):
            if neighbour is not None:
                at = self._index(neighbour) + step
        label = Label(text, self._position_at(at))
        return replace(self, labels=(*self.labels[:at], label, *self.labels[at:]))

    def _index(self, text: str) -> int:
        if text not in self.labels:
            raise InvalidParameterValue(f'"{text}" is not an existing enum label')
        return self.labels.index(text)

    def _position_at(self, at: int) -> float:
        positions = [label.position for label in self.labels]
        if not positions:
            return 0.0
        if at == 0:
            return positions[0] - 1.0
        return positions[-1] + 1.0 if at == len(positions) else sum(positions[at - 1 : at + 1]) / 2

    def to_plain(self) -> list[Any]:
        labels = [[str(label), label.position] for label in self.labels]
        comments = [list(each) for each in self.comments]
        return [self.name, labels, self.schema, self.oid, list(self.label_oids), comments]

    @staticmethod
    def from_plain(plain: Any) -> Enumeration:
        """Earlier releases wrote the schema and a dot before the name, and had no name with one."""
        name, texts, *rest = plain
        labels = tuple(Label(text, position) for text, position in texts)
        if len(rest) > 1:
            schema, oid, label_oids, comments = rest
            told = tuple((about, text) for about, text in comments)
            return Enumeration(name, labels, schema, oid, tuple(label_oids), told)
        if rest:
            return Enumeration(name, labels, *rest)
        schema, _, name = name.rpartition(".")
        return Enumeration(name, labels, schema or PUBLIC)


def enumeration_of(name: str, texts: tuple[str, ...], schema: str = PUBLIC) -> Enumeration:
    """A new type from its labels, in order."""
    for text in texts:
        check_label(text)
    labels = tuple(Label(text, float(at)) for at, text in enumerate(texts))
    return Enumeration(name, labels, schema)


def check_label(text: str) -> None:
    """Raise if a label is longer than 63 bytes."""
    if len(text.encode()) > IDENTIFIER_BYTES_MAX:
        raise InvalidParameterValue(
            f'invalid enum label "{text}"',
            detail=f"Labels must be {IDENTIFIER_BYTES_MAX} bytes or less.",
        )
