"""A catalog is a value, and what changes in it survives the way through the log."""

from __future__ import annotations

from qserver.storage.catalog import Catalog, changes_from_plain, changes_to_plain
from qserver.values.encoding import decode, encode
from qserver.values.enumeration import Enumeration, enumeration_of
from qserver.values.identifiers import catalog_key
from qserver.values.relations import Definition, Sequence, View
from qserver.values.schema import Column, define_table
from qserver.values.types import INTEGER, NUMERIC, TEXT
from tests.storage.databases import EMAIL, PEOPLE, PLACE, PLAIN


def test_a_change_makes_another_catalog() -> None:
    empty = Catalog()
    one = empty.changed({"people": PEOPLE}, trees_used=4)
    two = one.changed({"plain": PLAIN, "people": None}, trees_used=5)
    assert (dict(empty.tables), empty.trees_used) == ({}, 0)
    assert dict(one.tables) == {"people": PEOPLE}
    assert dict(two.tables) == {"plain": PLAIN}
    assert 4 < one.trees_used < two.trees_used, "oids count with trees"


def test_dropping_a_table_that_is_not_there_changes_nothing() -> None:
    catalog = Catalog().changed({"plain": PLAIN}, trees_used=1)
    assert catalog.changed({"people": None}, trees_used=1).tables == catalog.tables


def test_a_tree_is_called_by_the_name_of_its_table_or_index() -> None:
    catalog = Catalog().changed({"people": PEOPLE, "plain": PLAIN}, trees_used=4)
    trees = (0, PLAIN.id, PEOPLE.id, EMAIL.id, PLACE.id, 77)
    assert [catalog.name_of_tree(number) for number in trees] == [
        "the sequences",
        "plain",
        "people",
        "people_email_key",
        "people_place",
        "tree 77",
    ]


def test_an_index_belongs_to_the_rows_of_its_table_as_long_as_there_is_one() -> None:
    catalog = Catalog().changed({"people": PEOPLE, "plain": PLAIN}, trees_used=4)
    trees = (PLAIN.id, PEOPLE.id, EMAIL.id, PLACE.id, 77)
    assert list(map(catalog.table_of_tree, trees)) == [1, 2, 2, 2, 77]
    renamed = catalog.changed({"folk": PEOPLE, "people": None}, trees_used=4)
    assert list(map(renamed.table_of_tree, trees)) == [1, 2, 2, 2, 77]
    gone = renamed.changed({"folk": None}, trees_used=4)
    assert list(map(gone.table_of_tree, trees)) == list(trees)


def test_a_catalog_knows_the_trees_with_plain_rows() -> None:
    odd = define_table(9, "odd", [Column("id", INTEGER), Column("price", NUMERIC)], ["id"])
    catalog = Catalog().changed({"plain": PLAIN, "odd": odd}, trees_used=9)
    assert set(catalog.plain) == {PLAIN.id}
    renamed = catalog.changed({"plainer": PLAIN, "plain": None}, trees_used=9)
    assert set(renamed.plain) == {PLAIN.id}
    assert not renamed.changed({"plainer": None}, trees_used=9).plain


VIEW = View(
    "names",
    (("name", TEXT),),
    ("email",),
    "SELECT email FROM people",
    ("people",),
    defaults=(("name", "'nobody'", None),),
)
COUNTER = Sequence(7, "counter", increment=2, owner=("people", "id"))
MOOD = enumeration_of("mood", ("sad", "glad"))


def test_a_name_means_one_thing_whatever_its_kind() -> None:
    catalog = Catalog()
    for definition in (PLAIN, VIEW, COUNTER, MOOD, PLAIN):
        catalog = catalog.changed({"name": definition}, trees_used=1)
        assert catalog.find("name") == definition
        assert list(catalog.definitions()) == [definition]
        assert ("name" in catalog.tables) == (definition is PLAIN)
    assert list(catalog.changed({"name": None}, trees_used=1).definitions()) == []


def test_definitions_are_listed_in_the_order_of_their_names() -> None:
    changes: dict[str, Definition | None] = {"z": VIEW, "m": PLAIN, "a": MOOD, "q": COUNTER}
    catalog = Catalog().changed(changes, trees_used=1)
    assert list(catalog.definitions()) == [MOOD, PLAIN, COUNTER, VIEW]


def test_the_table_behind_the_name_of_an_index_or_a_primary_key_is_found() -> None:
    catalog = Catalog().changed({"people": PEOPLE, "plain": PLAIN}, trees_used=4)
    owners = {name: catalog.index_owner(name) for name in ("people_place", "plain_pkey", "people")}
    assert owners == {"people_place": PEOPLE, "plain_pkey": PLAIN, "people": None}


def test_changes_come_back_from_the_log_as_they_were() -> None:
    changes: dict[str, Definition | None] = {
        "people": PEOPLE,
        "plain": None,
        "names": VIEW,
        "counter": COUNTER,
        "mood": MOOD,
    }
    stored = encode(changes_to_plain(changes))
    assert changes_from_plain(decode(stored)) == changes


def test_types_of_earlier_releases_are_read_and_dropped() -> None:
    """Their names and keys had the schema and a dot before them."""
    plain = {"s.mood": ["type", ["s.mood", [["sad", 0.0]]]], "mood": ["type", ["mood", []]]}
    found = changes_from_plain(plain)
    assert found == {
        "s\0mood": enumeration_of("mood", ("sad",), "s"),
        "mood": Enumeration("mood", ()),
    }
    catalog = Catalog().changed({**found, "s.t": PLAIN}, trees_used=1)
    renamed = {"s.mood": None, "s.feeling": ["type", ["s.feeling", []]], "s.t": None}
    changes = changes_from_plain(renamed, catalog)
    feeling = Enumeration("feeling", (), "s")
    assert changes == {"s\0mood": None, "s\0feeling": feeling, "s.t": None}
    assert set(catalog.changed(changes, trees_used=1).others) == {"mood", "s\0feeling"}


def test_what_has_a_term_comes_in_one_order_in_every_process() -> None:
    names = [f"t{number * 37 % 100}" for number in range(100)]
    tables: dict[str, Definition | None] = {
        name: define_table(at + 1, name, [Column("id", INTEGER)], ["id"])
        for at, name in enumerate(names)
    }
    catalog = Catalog().changed(tables, trees_used=100)
    found = [each.name for each in catalog.with_term("schema", catalog_key("public", ""))]
    assert found == sorted(names)
