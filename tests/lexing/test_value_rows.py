"""Rows of values that are read as data: which are, and that they are read right."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.lexing import value_rows
from qserver.lexing.fingerprint import ROWS_MARK, parameterize, parameterize_plain_rows
from qserver.lexing.value_rows import find_plain_rows, find_rows


def read(rows: str) -> tuple[list[tuple[Any, ...]], str]:
    found = find_rows(f"INSERT INTO t VALUES {rows} RETURNING 1")
    assert found is not None
    return found.values, found.kinds


@pytest.mark.parametrize(
    ("rows", "values", "kinds"),
    [
        ("(1),(2)", [(1,), (2,)], "i"),
        ("( 1 ,\n'a' ) , (-2, 'b')", [(1, "a"), (-2, "b")], "is"),
        ("(1, NULL), (null, 'a')", [(1, None), (None, "a")], "is"),
        ("(TRUE), (False), (null)", [(True,), (False,), (None,)], "t"),
        ("(NULL),(NULL)", [(None,), (None,)], "0"),
        ("(2147483647),(-2147483648)", [(2**31 - 1,), (-(2**31),)], "i"),
        ("(1),(2147483648)", [(1,), (2**31,)], "l"),
        ("(-9223372036854775808),(1)", [(-(2**63),), (1,)], "l"),
        ("(1.50),(2)", [(Decimal("1.50"),), (Decimal(2),)], "n"),
        ("(9223372036854775808),(2)", [(Decimal(2**63),), (Decimal(2),)], "n"),
        ("(1e3),(-0.0)", [(Decimal(1000),), (Decimal("0.0"),)], "n"),
        ("(+1),(007)", [(1,), (7,)], "i"),
        ("(.5),(-.25)", [(Decimal("0.5"),), (Decimal("-0.25"),)], "n"),
        ("(5.),(5.e2)", [(Decimal(5),), (Decimal(500),)], "n"),
        ("('it''s'),('''')", [("it's",), ("'",)], "s"),
        ("('(1),(2)'),('a\"b\\c\n\td')", [("(1),(2)",), ('a"b\\c\n\td',)], "s"),
        ("('🔑'),('')", [("🔑",), ("",)], "s"),
    ],
)
def test_rows_of_values_are_read(rows: str, values: list[tuple[Any, ...]], kinds: str) -> None:
    assert read(rows) == (values, kinds)
    assert [tuple(map(type, row)) for row in read(rows)[0]] == [
        tuple(map(type, row)) for row in values
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "VALUES (1)",
        "VALUES (1), (1, 2)",
        "VALUES (), ()",
        "VALUES (1 + 1), (2)",
        "VALUES (1), (f(2))",
        "VALUES (1), (2), (DEFAULT)",
        "VALUES (1), (2), (f(3))",
        "VALUES (1), (2) /* , */ -- x\n , (a)",
        "VALUES (E'a'), ('b')",
        "VALUES ('a' 'b'), ('c')",
        "VALUES ('a'\n'b'), ('c')",
        "VALUES (1), ('a')",
        "VALUES (true), (1)",
        "VALUES ([1]), ([2])",
        "VALUES ({}), ({})",
        "VALUES (1 /* x */), (2)",
        "VALUES (1 -- x\n), (2)",
        "VALUES (- 1), (2)",
        "VALUES ($1), ($1)",
        'VALUES ("a"), ("a")',
        "VALUES (1e99999999), (2)",
        "VALUES (0x1), (2)",
        "SELECT 'VALUES (1), (2)'",
        "SELECT 1 -- VALUES (1), (2)",
        "SELECT 1 /* VALUES (1), (2) */",
        'SELECT "VALUES (1), (2)"',
        "SELECT $$ VALUES (1), (2) $$",
        "SELECT myvalues (1), (2)",
        "CREATE TABLE t AS VALUES (1), (2)",
    ],
)
def test_what_is_more_or_less_than_values_is_left_to_the_parser(sql: str) -> None:
    assert find_rows(sql) is None


def test_rows_are_found_behind_comments_and_strings_that_look_alike() -> None:
    sql = "/* VALUES (1), (2) */ SELECT 'VALUES (1), (2)', * FROM (VALUES (3), (4)) t"
    found = find_rows(sql)
    assert found is not None
    assert sql[found.start : found.end] == "(3), (4)"


def test_the_longest_list_is_taken() -> None:
    found = find_rows("WITH a AS (VALUES (1), (2)), b AS (VALUES (3), (4), (5)) SELECT 1")
    assert found is not None
    assert found.values == [(3,), (4,), (5,)]


def test_more_rows_and_nulls_do_not_change_the_shape() -> None:
    two = parameterize("INSERT INTO t VALUES (1, 'a'), (2, 'b') RETURNING id + 1")
    many = parameterize("INSERT INTO t VALUES (-1, NULL), (NULL, 'b'), (3, 'c') RETURNING id + 1")
    assert two.fingerprint == f"INSERT INTO t VALUES {ROWS_MARK} RETURNING id + \0"
    assert (
        (two.fingerprint, two.kinds) == (many.fingerprint, many.kinds) == (two.fingerprint, "(is)i")
    )
    assert many.literals == [[(-1, None), (None, "b"), (3, "c")], 1]


def test_the_words_in_front_of_rows_may_be_anything() -> None:
    parameterized = parameterize("""INSERT INTO "t (1), (2)" -- 'x
    SELECT 'a' UNION VALUES('b'),('c');""")
    assert parameterized.literals == ["a", [("b",), ("c",)]]


def as_sql(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


CELLS = st.one_of(
    st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), min_size=2, max_size=5),
    st.lists(
        st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        min_size=2,
        max_size=5,
    ),
    st.lists(st.none() | st.booleans(), min_size=2, max_size=5),
    st.lists(
        st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=3),
        min_size=2,
        max_size=5,
    ),
)


@given(st.lists(CELLS, min_size=1, max_size=4))
def test_whatever_is_written_is_read_again(columns: list[list[Any]]) -> None:
    rows = list(zip(*columns, strict=False))
    text = ", ".join(f"({', '.join(map(as_sql, row))})" for row in rows)
    values, kinds = read(text)
    assert values == rows
    assert len(kinds) == len(columns)


# --- at once --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows",
    [
        "(1, 'a'), (-2, 'b')",
        "( 1 ,\n'' ) , (2147483648, 'é🔑')",
        "(1, null), (NULL, 'b')",
        "(NULL, NULL), (NULL, NULL)",
        "(true, 'with, and -- no /* meaning */'), (false, '{}')",
    ],
)
@pytest.mark.parametrize("tail", ["", " ;\n", " RETURNING id", "\nON CONFLICT (id) DO NOTHING"])
def test_plain_rows_are_read_at_once(rows: str, tail: str) -> None:
    sql = f"INSERT INTO t VALUES {rows}{tail}"
    assert find_plain_rows(sql) == find_rows(sql) is not None
    assert parameterize_plain_rows(sql) == parameterize(sql)


@pytest.mark.parametrize(
    "rows",
    [
        "(1, 'it''s'), (2, 'b')",
        "(1, '(a)'), (2, 'b')",
        "(1, 'a)'), (2, 'b(')",
        "(1, 'NULL'), (NULL, 'b')",
        "(1, 'null'), (NULL, 'b')",
        "(1, 'a\\'), (2, 'b')",
        "(1, '\"'), (2, 'b')",
        "(1, '('), [2, 'b')",
        "(1, 'a'), [2, 'b']",
        "(1, {}), (2, {})",
        "(1, 'a\tb'), (2, 'c')",
        "(1.5, 'a'), (2, 'b')",
        "(1, 'a'), (2147483648, 'b')",
        "(1, E'a'), (2, 'b')",
        "(1, 'a'), (2, 3)",
        "(1, 'a'), (2)",
        "(1, 'a'), ($1, 'b')",
        "(1, 'a'), (2, 'b'), (f(3), 'c')",
        "(1, 'a'), (2, 'b'::text)",
        "(1, 'a')",
        "(), ()",
    ],
)
def test_what_may_mean_something_else_is_not_read_at_once(
    monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    monkeypatch.setattr(value_rows, "_SAMPLE_LENGTH", 0)  # the kinds are those of the first row
    assert find_plain_rows(f"INSERT INTO t VALUES {rows} RETURNING id") is None


SCRAPS = ["a", "b", "'", "''", '"', "\\", "(", ")", "),(", "[", "]", ",", "null", "NULL", "--"]
SCRAPS += ["/*", "*/", " ", "\n", "\x01", "é", "🔑", "{", "}", "1", ") on", ") returning x", ";"]
STRINGS = st.lists(st.sampled_from(SCRAPS), max_size=4).map(lambda each: f"'{''.join(each)}'")
WORDS = ["1", "-2", "0", "-0", "007", "+1", "2147483647", "2147483648", "-9223372036854775809"]
WORDS += ["1.10", "1e400", "1e999999", ".5", "5.", "1E2", "1_0", "NULL", "null", "Null", "TRUE"]
WORDS += ["true", "E'a'", "'a' 'b'", "'a'\n'b'", "'1'::int", "$1", "?", "f(1)", "DEFAULT", "[1]"]
WORDS += ["{}", "1 -- x\n", "/* x */ 1", "'' ''", "x''", "nan", "\f1", "\xa0"]
cells = st.sampled_from(WORDS) | STRINGS | st.sampled_from(["1", "'a'", "NULL"])
lists = st.lists(
    st.lists(cells, min_size=2, max_size=2).map(lambda row: f"({', '.join(row)})"), min_size=2
)
TAILS = ["", ";", " RETURNING id", " ON CONFLICT DO NOTHING", ", (3, 4)", " -- (", ") AS x", " on"]


@given(
    rows=lists,
    comma=st.sampled_from([",", " , ", ",\n", " -- x\n,"]),
    head=st.sampled_from(
        ["INSERT INTO t VALUES", "VALUES", "CREATE VIEW v AS VALUES", "-- VALUES"]
    ),
    tail=st.sampled_from(TAILS),
    sample=st.sampled_from([0, 1024]),
)
def test_what_is_read_at_once_is_what_the_ordinary_way_reads(
    rows: list[str], comma: str, head: str, tail: str, sample: int
) -> None:
    sql = f"{head} {comma.join(rows)}{tail}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(value_rows, "_SAMPLE_LENGTH", sample)
        at_once = find_plain_rows(sql)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(value_rows, "find_plain_rows", lambda sql: None)
        ordinary = find_rows(sql)
    if at_once is not None:
        assert repr(at_once) == repr(ordinary)
