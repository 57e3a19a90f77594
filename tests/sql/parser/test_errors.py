"""What is said about a text that is not SQL, and where."""

from __future__ import annotations

import pytest

from qserver.errors import FeatureNotSupported, ProgramLimitExceeded, QserverError, SqlSyntaxError
from qserver.limits import STATEMENT_BYTES_MAX
from qserver.sql.parser import parse, parse_expression


@pytest.mark.parametrize(
    ("sql", "near", "position"),
    [
        ("SELECT 1 2", "2", 10),
        ("SELECT a FROM", None, 14),
        ("SELECT a FROM ", None, 15),
        ("SELECT (1", None, 10),
        ("SELECT 1)", ")", 9),
        ("SELECT (1; 2)", ";", 10),
        ("SELECT * FROM t WHERE", None, 22),
        ("SELECT * FROM t WHERE ;", ";", 23),
        ("SELECT a, FROM t", "FROM", 11),
        ("SELECT DISTINCT", None, 16),
        ("SELECT 'a' 'b'", "'b'", 12),
        ("SELECT f(a,)", ")", 12),
        ("SELECT 1 FROM t GROUP a", "a", 23),
        ("SELECT 1 FROM t ORDER a", "a", 23),
        ("SELECT CASE END", "END", 13),
        ("SELECT CASE WHEN a THEN b", None, 26),
        ("SELECT a IN ()", ")", 14),
        ("SELECT ARRAY[1][1]", "[", 16),
        ("SELECT f(x)[1]", "[", 12),
        ("SELECT 1 LIMIT 1, 2", ",", 17),
        ("SELECT 1 UNION SELECT 2 LIMIT 1 UNION SELECT 3", "UNION", 33),
        ("SELECT \\a", "\\", 8),
        ("SELECT {a}", "{", 8),
        ("SELECT 1 $", "$", 10),
        ("SELECT INTERVAL '1' MONTH TO YEAR", "YEAR", 30),
        ("INSERT INTO t", None, 14),
        ("INSERT INTO t VALUES 1", "1", 22),
        ("INSERT INTO t VALUES (1), (2) (3)", "(", 31),
        ("UPDATE t SET a", None, 15),
        ("UPDATE t a = 1", "=", 12),
        ("DELETE t", "t", 8),
        ("CREATE TABLE t (a)", None, 19),
        ("CREATE TABLE t (a int,)", ")", 23),
        ("CREATE TABLE t (a int DEFAULT 1 IN (1, 2))", "IN", 33),
        ("CREATE INDEX IF NOT EXISTS ON t (a)", "ON", 28),
        ("DROP t", "t", 6),
        ("FROM t SELECT 1", "FROM", 1),
        ("selekt 1", "selekt", 1),
        ("é", "é", 1),
    ],
)
def test_a_mistake_is_named_with_its_place(sql: str, near: str | None, position: int) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(sql)
    place = "end of input" if near is None else f'or near "{near}"'
    assert caught.value.message == f"syntax error at {place}"
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("sql", "message", "position"),
    [
        ("", "there is no statement", 1),
        (" ;; -- nothing", "there is no statement", 1),
        ("SELECT 1; SELECT 2", "there is more than one statement", 11),
        ("SELECT 1;; SELECT 2; SELECT 3", "there is more than one statement", 12),
    ],
)
def test_a_text_is_exactly_one_statement(sql: str, message: str, position: int) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse(sql)
    assert (caught.value.message, caught.value.position) == (message, position)


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION is not supported"),
        ("CREATE TRIGGER x", "CREATE TRIGGER is not supported"),
        ("CREATE OR REPLACE FUNCTION f() RETURNS int", "CREATE FUNCTION is not supported"),
        ("CREATE MATERIALIZED VIEW v", "CREATE MATERIALIZED VIEW is not supported"),
        ("ALTER TABLE t INHERIT u", "INHERIT is not supported here"),
        ("CREATE TABLE t (a int) INHERITS (u)", "INHERITS is not supported here"),
    ],
)
def test_what_postgresql_has_and_we_do_not_is_called_by_its_name(sql: str, message: str) -> None:
    with pytest.raises(FeatureNotSupported) as caught:
        parse(sql)
    assert caught.value.message == message


def test_the_first_mistake_of_a_text_counts() -> None:
    with pytest.raises(QserverError) as caught:
        parse("SELECT ; SELECT 'open")
    assert caught.value.position == 17


@pytest.mark.parametrize("text", ["", "1;", "1, 2", "SELECT 1", "a AS b"])
def test_an_expression_alone_is_one_expression(text: str) -> None:
    with pytest.raises(SqlSyntaxError):
        parse_expression(text)


def test_a_text_that_is_too_long_is_refused() -> None:
    with pytest.raises(ProgramLimitExceeded):
        parse("SELECT '" + "a" * STATEMENT_BYTES_MAX + "'")
