"""Terms: what definitions are found by besides their names and oids.

    schema        the key of the schema that it is in
    uses          the key of another definition that it names: a view its tables, a table the
                  sequences of its columns, a sequence its owner, and those of its foreign keys
    constraint    the name of a constraint that a table has

Whoever asks what depends on a relation, or what a schema has, pays for what is found.
"""

from __future__ import annotations

from collections.abc import Iterator

from pyrsistent import PMap, pmap

from qserver.values.identifiers import catalog_key
from qserver.values.relations import Definition, Schema, Sequence, View
from qserver.values.schema import Table
from qserver.values.shared_comments import SharedComment

Term = tuple[str, str]
Filed = PMap[Term, PMap[str, None]]
"""By a term, the keys of the definitions that have it."""


def terms_of(definition: Definition | None) -> Iterator[Term]:
    """Yield the terms of a definition, some of them perhaps twice."""
    if definition is None or isinstance(definition, Schema | SharedComment):
        return
    yield "schema", catalog_key(definition.schema, "")
    match definition:
        case Table():
            yield from _terms_of_table(definition)
        case View():
            yield from (("uses", key) for key in definition.uses)
            yield from (("uses", key) for _, _, key in definition.defaults if key is not None)
        case Sequence() if definition.owner is not None:
            yield "uses", definition.owner[0]


def _terms_of_table(table: Table) -> Iterator[Term]:
    for column in table.columns:
        if column.sequence is not None:
            yield "uses", column.sequence
    for key in table.foreign_keys:
        yield "uses", key.table
        yield "constraint", key.name
    for check in table.checks:
        yield "constraint", check.name
    for index in table.indexes:
        if index.constraint:
            yield "constraint", index.name
    if table.primary_key_name:
        yield "constraint", table.primary_key_name


def filed(terms: Filed, key: str, before: Definition | None, now: Definition | None) -> Filed:
    """Return the terms after the definition of a key has changed."""
    old, new = set(terms_of(before)), set(terms_of(now))
    for term in old - new:
        left = terms[term].discard(key) if term in terms else None
        terms = terms.set(term, left) if left else terms.discard(term)
    for term in new - old:
        terms = terms.set(term, terms.get(term, _NONE).set(key, None))
    return terms


_NONE: PMap[str, None] = pmap()
