"""Words as names: what PostgreSQL lets one call things is allowed, what it does not is not."""

from __future__ import annotations

import pytest

from qserver.errors import SqlSyntaxError
from qserver.lexing.keywords import NEIGHBOURS, RESERVED
from qserver.sql.ast import Name, Query, Select
from qserver.sql.parser import parse
from tests.sampling import sampled

# PostgreSQL's words that name columns and tables, though grammars would like to have them.
_NAMES = """
    abort absolute access action add admin after aggregate all_ also alter always at attach
    attribute backward before begin bigint bit boolean by cache called cascade cascaded catalog
    chain char character checkpoint class close cluster coalesce columns comment comments commit
    committed compression configuration conflict connection constraints content continue
    conversion copy cost cube current cursor cycle data database date day deallocate dec decimal
    declare defaults deferred definer delete delimiter depends depth detach dictionary disable
    discard document domain double drop each enable encoding encrypted enum escape event exclude
    excluding exclusive execute exists explain expression extension external extract family
    filter finalize first float following force forward function functions generated global
    granted greatest grouping groups handler header hold hour identity if immediate immutable
    implicit import include including increment index indexes inherit inherits inline inout
    input insensitive insert instead int integer interval invoker isolation key label language
    large last leakproof least level listen load local location lock locked logged mapping match
    matched materialized maxvalue merge method minute minvalue mode month move name names
    national nchar new next nfc no none normalize normalized nothing notify nowait nullif nulls
    numeric object of off oids old operator option options ordinality others out over overlay
    overriding owned owner parallel parameter parser partial partition passing password plans
    policy position preceding precision prepare prepared preserve prior privileges procedural
    procedure program publication quote range read real reassign recheck recursive ref
    referencing refresh reindex relative release rename repeatable replace replica reset restart
    restrict return returns revoke role rollback rollup routine row rows rule savepoint schema
    schemas scroll search second security sequence sequences serializable server session set
    setof sets share show simple skip smallint snapshot sql stable standalone start statement
    statistics stdin stdout storage stored strict strip subscription substring support sysid
    system tables tablespace temp template temporary text ties time timestamp transaction
    transform treat trigger trim truncate trusted type types uescape unbounded uncommitted
    unencrypted unknown unlisten unlogged until update vacuum valid validate validator value
    values varchar varying version view views volatile whitespace within without work wrapper
    write xml year yes zone
"""
NAMES = _NAMES.split()
NEED_AS = {
    *("char", "character", "day", "filter", "hour", "minute", "month", "over", "precision"),
    *("second", "varying", "within", "without", "year", "escape"),
}


@pytest.mark.parametrize("word", sampled(NAMES, 60))
def test_an_unreserved_word_names_columns_tables_and_aliases(word: str) -> None:
    statement = parse(f"SELECT {word}, {word}.{word}, 1 AS {word} FROM {word} WHERE {word} > 1")
    query = statement.statement
    assert isinstance(query, Query) and isinstance(query.body, Select)
    assert query.body.targets[0].expression == Name((word,), position=7)
    parse(f"SELECT * FROM t {word} JOIN u AS {word} ON {word}.a = 1 ORDER BY {word}, a")
    parse(f"CREATE TABLE {word} ({word} int, a {word})")
    parse(f"INSERT INTO {word} ({word}, b) SELECT {word} FROM (SELECT 1) AS {word} ({word})")
    parse(f"UPDATE {word} SET {word} = {word} + 1 RETURNING {word}")
    parse(f"ALTER TABLE {word} ADD COLUMN {word} int, DROP COLUMN {word}")
    parse(f"ALTER TABLE {word} RENAME {word} TO {word}")
    parse(f"DROP TABLE {word}, {word}")


@pytest.mark.parametrize("word", sampled(sorted(set(NAMES) - NEED_AS), 60))
def test_most_words_name_an_output_column_without_as(word: str) -> None:
    query = parse(f"SELECT 1 {word}, 'a' {word} FROM t").statement
    assert isinstance(query, Query) and isinstance(query.body, Select)
    assert [target.alias for target in query.body.targets] == [word, word]


@pytest.mark.parametrize("word", sampled(sorted(RESERVED), 40))
def test_a_reserved_word_names_nothing_but_an_output_column(word: str) -> None:
    parse(f"SELECT 1 AS {word}, t.{word} FROM t")
    for sql in (f"SELECT 1 FROM t AS {word}", f"CREATE TABLE {word} ()", f"DROP TABLE {word}"):
        with pytest.raises(SqlSyntaxError):
            parse(sql)


@pytest.mark.parametrize("word", sampled(sorted(set(NEIGHBOURS) | set(RESERVED)), 40))
def test_in_quotes_every_word_is_a_name(word: str) -> None:
    sql = f'SELECT "{word}", "{word}"."{word}" "{word}" FROM "{word}" AS "{word}" ("{word}")'
    query = parse(sql).statement
    assert isinstance(query, Query) and isinstance(query.body, Select)
    first, second = query.body.targets
    assert first.expression == Name((word,), position=7)
    assert isinstance(second.expression, Name)
    assert (second.expression.parts, second.alias) == ((word, word), word)
