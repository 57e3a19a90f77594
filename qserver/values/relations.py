"""The definitions that a catalog holds by name.

    Table          rows of its own
    View           CREATE VIEW: a named query
    Sequence       numbers, each handed out once
    Enumeration    a type with labels
    Schema         a prefix of other names
    Extension      what CREATE EXTENSION has named; see `extensions`
    SharedComment  what COMMENT ON DATABASE or ROLE has said

They share one name space, so a name means one thing everywhere; in PostgreSQL that is so because
every table is also a type. All are frozen values with a plain form for the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

from qserver.values.enumeration import Enumeration
from qserver.values.extensions import Extension
from qserver.values.identifiers import PUBLIC, Named, catalog_key
from qserver.values.plain import PlainFields, each_by
from qserver.values.schema import Table, check_name
from qserver.values.shared_comments import SharedComment
from qserver.values.types import BIGINT, SqlType


def _named_type(plain: Any) -> tuple[str, SqlType]:
    name, sql_type = plain
    return name, SqlType.from_plain(sql_type)


@dataclass(frozen=True, slots=True)
class View(Named, PlainFields):
    """A SQL view: `text` is its query, which each use binds again.

    `columns` are its names and types at its creation. `output` are the names that the query itself
    gave them: if the query later yields more columns, because it says `*` where that could not be
    written out and a table has grown, the view still has its own columns, found by these names.
    `uses` are the names of the relations that the query reads. `defaults` are the columns with a
    DEFAULT of their own, each with its text and the sequence that it draws from.
    """

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    output: tuple[str, ...]
    text: str
    uses: tuple[str, ...] = ()
    comments: tuple[tuple[str, str], ...] = ()
    schema: str = PUBLIC
    check_option: str = ""  # "local", "cascaded"
    defaults: tuple[tuple[str, str, str | None], ...] = ()
    oid: int = field(default=0, compare=False)
    default_oids: tuple[int, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)

    READERS: ClassVar = {"columns": each_by(_named_type)}


@dataclass(frozen=True, slots=True)
class Sequence(Named, PlainFields):
    """How a sequence counts. Its current value is not part of it: that is the sequence's state.

    `id` never changes; `state` identifies the sequence's state, and changes when a statement
    changes how or from where the sequence counts. `owner` is the table and column that it was made
    for and is dropped with.
    """

    id: int
    name: str
    start: int = 1
    increment: int = 1
    minimum: int = 1
    maximum: int = 2**63 - 1
    cycle: bool = False
    cache: int = 1
    type: SqlType = BIGINT
    owner: tuple[str, str] | None = None
    comments: tuple[tuple[str, str], ...] = ()
    schema: str = PUBLIC
    state: int = 0
    """By default the sequence's own id."""
    oid: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        if not self.state:
            object.__setattr__(self, "state", self.id)
        assert self.increment != 0 and self.minimum <= self.start <= self.maximum

    READERS: ClassVar = {"type": SqlType.from_plain}


@dataclass(frozen=True, slots=True)
class Schema:
    """A prefix of other names. `public` always exists and has no `Schema`."""

    name: str
    oid: int = field(default=0, compare=False)
    comments: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name)

    @property
    def key(self) -> str:
        return catalog_key(self.name, "")

    def to_plain(self) -> list[Any]:
        return [self.name, self.oid, [list(each) for each in self.comments]]

    @staticmethod
    def from_plain(plain: Any) -> Schema:
        """Earlier releases wrote the name alone."""
        if isinstance(plain, str):
            return Schema(plain)
        name, oid, comments = plain
        return Schema(name, oid, tuple((about, text) for about, text in comments))


Definition: TypeAlias = Table | View | Sequence | Enumeration | Schema | Extension | SharedComment


def without_ids(definition: Definition | None) -> Definition | None:
    """Return a definition as it is if made anew: only its ids tell one from the other."""
    if isinstance(definition, Table):
        indexes = tuple(replace(each, id=at) for at, each in enumerate(definition.indexes, 1))
        return replace(definition, id=0, indexes=indexes)
    if isinstance(definition, Sequence):
        return replace(definition, id=0, state=0)
    return definition


_KINDS: dict[str, type[Definition]] = {
    "table": Table,
    "view": View,
    "sequence": Sequence,
    "type": Enumeration,
    "schema": Schema,
    "extension": Extension,
    "comment": SharedComment,
}


def kind_of(definition: Definition) -> str:
    """The kind's name in DROP and messages: "table", "view", "sequence", "type", "schema" …"""
    for kind, of_kind in _KINDS.items():
        if type(definition) is of_kind:
            return kind
    raise AssertionError("a definition of no kind")


def definition_to_plain(definition: Definition) -> list[Any]:
    """Lists, dicts, texts and numbers, with the kind first."""
    return [kind_of(definition), definition.to_plain()]


def definition_from_plain(plain: Any) -> Definition:
    kind, content = plain
    return _KINDS[kind].from_plain(content)
