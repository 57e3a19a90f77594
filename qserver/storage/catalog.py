"""The catalog: all definitions by name, as an immutable value.

One name space holds tables, views, sequences and types. The name of an index may not be that of a
relation either; code that makes one must check `index_owner`. Tables are kept apart from the rest
because nearly every look-up is of a table.

A tree number is used once: a table that is dropped and made again has other trees, so an old
snapshot and a new one can never mistake one's rows for the other's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec
from pyrsistent import PMap, pmap

from qserver.storage.terms import Filed, filed
from qserver.storage.writes import ANSWERS_TREE, NEVER, SEQUENCES_TREE, Moment
from qserver.values.enumeration import Enumeration
from qserver.values.identifiers import catalog_key
from qserver.values.numbering import FIRST_OID, numbered, oids_of
from qserver.values.relations import (
    Definition,
    Schema,
    definition_from_plain,
    definition_to_plain,
)
from qserver.values.schema import Table
from qserver.values.temporary import TemporaryNumbers, is_temporary


class Catalog(msgspec.Struct, frozen=True, eq=False):
    """Definitions by name, and the highest tree number that was ever used."""

    tables: PMap[str, Table] = pmap()
    trees_used: int = SEQUENCES_TREE
    others: PMap[str, Definition] = pmap()
    owners: PMap[str, str] = pmap()
    """The table that has an index, or a primary key, of a name."""
    rows_of: PMap[int, int] = pmap()
    """For the tree of an index, that of the rows."""
    plain: frozenset[int] = frozenset()
    """The trees of tables whose rows are plain; no tree has ever rows of another definition."""
    moments: PMap[str, Moment] = pmap()
    """When each definition was last changed."""
    last_change: Moment = NEVER
    oids: PMap[int, str] = pmap()
    """The name of the definition that an object id belongs to, or is that of a part of."""
    schemas: frozenset[str] = frozenset()
    """The names of the schemas that were created."""
    terms: Filed = pmap()
    """What definitions are found by besides; see `terms`."""
    temporary: TemporaryNumbers | None = None
    """Of the session whose temporary relations are among the definitions."""

    def find(self, name: str) -> Definition | None:
        return self.tables.get(name) or self.others.get(name)

    def definitions(self) -> Iterator[Definition]:
        """Yield all definitions, in order of their names."""
        for _, definition in sorted([*self.tables.items(), *self.others.items()], key=_name_of):
            yield definition

    def index_owner(self, key: str) -> Table | None:
        """Return the table that has an index, or a primary key, of that name in its schema."""
        owner = self.owners.get(key)
        return None if owner is None else self.tables.get(owner)

    def changed(self, changes: Mapping[str, Definition | None], trees_used: int) -> Catalog:
        """Return the next catalog; None removes a name.

        Definitions without oids get them: from logs of earlier releases, or if they are new.
        """
        before = {name: self.find(name) for name in changes}
        used = max(trees_used, self.trees_used)
        given, trees_used = _with_oids(before, changes, used, self.temporary)
        tables, others, owners, rows_of = self.tables, self.others, self.owners, self.rows_of
        plain, oids, schemas, terms = self.plain, self.oids, self.schemas, self.terms
        for name, former in before.items():
            terms = filed(terms, name, former, given[name])
            for key in _index_keys(former):
                if owners.get(key) == name:
                    owners = owners.discard(key)
            for oid in set(oids_of(former)).difference(oids_of(given[name])):
                if oids.get(oid) == name:
                    oids = oids.discard(oid)
            if isinstance(former, Table):
                plain = plain - {former.id}
                for index in former.indexes:
                    rows_of = rows_of.discard(index.id)
            elif isinstance(former, Schema):
                schemas = schemas - {former.name}
        for name, definition in given.items():
            for key in _index_keys(definition):
                owners = owners.set(key, name)
            for oid in oids_of(definition):
                oids = oids.set(oid, name)
            if isinstance(definition, Table):
                for index in definition.indexes:
                    rows_of = rows_of.set(index.id, definition.id)
                plain = plain | {definition.id} if definition.is_plain else plain
                tables, others = tables.set(name, definition), others.discard(name)
            elif definition is not None:
                tables, others = tables.discard(name), others.set(name, definition)
                schemas = schemas | {definition.name} if type(definition) is Schema else schemas
            else:
                tables, others = tables.discard(name), others.discard(name)
        fields = tables, trees_used, others, owners, rows_of, plain
        found_by = oids, schemas, terms
        return Catalog(*fields, self.moments, self.last_change, *found_by, self.temporary)

    def with_oid(self, oid: int) -> Definition | None:
        """Return the definition that has an oid, or whose part has it."""
        name = self.oids.get(oid)
        return None if name is None else self.find(name)

    def with_term(self, kind: str, name: str) -> Iterator[Definition]:
        """Yield the definitions that have a term, in the order of their keys."""
        for key in sorted(self.terms.get((kind, name), ())):
            found = self.find(key)
            if found is not None:
                yield found

    def dated(self, names: Iterable[str], at: Moment) -> Catalog:
        """Return the same catalog, in which these definitions were changed by that version."""
        moments = self.moments
        for name in names:
            moments = moments.discard(name) if self.find(name) is None else moments.set(name, at)
        return msgspec.structs.replace(self, moments=moments, last_change=at)

    def last_change_of(self, name: str) -> Moment:
        """Return when a definition was last changed; for a name that is free, when any was."""
        return self.moments.get(name, self.last_change)

    def table_of_tree(self, number: int) -> int:
        """Return the tree of the rows that a tree belongs to: for an index, its table's."""
        return self.rows_of.get(number, number)

    def name_of_tree(self, number: int) -> str:
        """Return a name for a tree, for messages."""
        for name, table in self.tables.items():
            if table.id == number:
                return name
            for index in table.indexes:
                if index.id == number:
                    return index.name
        return _ENGINE_NAMES.get(number) or f"tree {number}"


class CatalogChanges(msgspec.Struct, frozen=True):
    """A transaction's changes of definitions, and what happens to the trees behind them."""

    definitions: Mapping[str, Definition | None] = {}
    dropped: tuple[int, ...] = ()
    rewritten: Mapping[int, int] = {}
    """Trees into which the rows of a table were moved, each with the tree where they were."""
    notes: tuple[Any, ...] = ()
    """What the log is to say about them: storage only carries that."""
    all_rewritten_known: bool = True
    """Whether `rewritten` has all such trees: logs of earlier releases do not tell."""

    def then(self, later: CatalogChanges) -> CatalogChanges:
        return CatalogChanges(
            {**self.definitions, **later.definitions},
            self.dropped + later.dropped,
            {**self.rewritten, **later.rewritten},
            self.notes + later.notes,
        )


NO_CHANGES: Final = CatalogChanges()

_ENGINE_NAMES: Final = MappingProxyType(
    {SEQUENCES_TREE: "the sequences", ANSWERS_TREE: "the stored answers"}
)


def _name_of(item: tuple[str, Definition]) -> str:
    return item[0]


def _with_oids(
    before: Mapping[str, Definition | None],
    changes: Mapping[str, Definition | None],
    used: int,
    temporary: TemporaryNumbers | None,
) -> tuple[Mapping[str, Definition | None], int]:
    """Return the changes with oids, and the highest number in use: oids count with trees."""

    def take(count: int) -> int:
        nonlocal used
        first, used = used + 1, used + count
        return FIRST_OID + first

    def take_temporary(count: int) -> int:
        assert temporary is not None, "its session has a temporary schema"
        return FIRST_OID + temporary.take(count)

    given: dict[str, Definition | None] = {}
    for name in sorted(changes):
        definition, taking = changes[name], take_temporary if is_temporary(name) else take
        given[name] = None if definition is None else numbered(definition, before[name], taking)
    return given, used


def _index_keys(definition: Definition | None) -> list[str]:
    """Return the catalog keys of the primary key and the indexes of a table."""
    if not isinstance(definition, Table):
        return []
    names = [definition.primary_key_name, *(index.name for index in definition.indexes)]
    return [catalog_key(definition.schema, name) for name in names if name]


def changes_to_plain(changes: Mapping[str, Definition | None]) -> dict[str, Any]:
    """Return changes of a catalog as the log holds them."""
    return {
        name: None if definition is None else definition_to_plain(definition)
        for name, definition in changes.items()
    }


def changes_from_plain(
    plain: Mapping[str, Any], before: Catalog | None = None
) -> dict[str, Definition | None]:
    """Return changes that the log holds, of the catalog before them.

    In logs of earlier releases the key of a type has a dot behind its schema.
    """
    changes: dict[str, Definition | None] = {}
    for name, content in plain.items():
        definition = None if content is None else definition_from_plain(content)
        if isinstance(definition, Enumeration):
            name = definition.key
        elif definition is None and before is not None and before.find(name) is None:
            schema, dot, rest = name.rpartition(".")
            name = catalog_key(schema, rest) if dot else name
        changes[name] = definition
    return changes
