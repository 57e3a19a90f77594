"""Arrays are rectangular, and are read and printed as PostgreSQL 15 does it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.errors import QserverError
from qserver.values.arrays import dimensions, flat, is_rectangular, mapped, shaped
from qserver.values.text_output import text_function
from qserver.values.types import INTEGER, TEXT, SqlType, array_of, char, numeric
from tests.values.making import cast
from tests.values.strategies import arrays

TEXTS, INTEGERS = array_of(TEXT), array_of(INTEGER)
arrays_of_integers = arrays(st.integers(0, 9))

READ: list[tuple[str, SqlType, Any]] = [
    ("{1,2,NULL}", INTEGERS, (1, 2, None)),
    (" { {1,2} , {3,4} } ", INTEGERS, ((1, 2), (3, 4))),
    ("{}", INTEGERS, ()),
    ('{"1"}', INTEGERS, (1,)),
    ("[1:2]={1,2}", INTEGERS, (1, 2)),
    ("[1:1][1:2]={{1,2}}", INTEGERS, ((1, 2),)),
    (
        '{"a,b",c d, "e\\"f" , null, "null",  x\\,y}',
        TEXTS,
        ("a,b", "c d", 'e"f', None, "null", "x,y"),
    ),
    ("{a b }", TEXTS, ("a b",)),
    ("{a\\ }", TEXTS, ("a ",)),
    ('{""}', TEXTS, ("",)),
    ("{{{{{{1}}}}}}", INTEGERS, ((((((1,),),),),),)),
    ("{ab,c}", array_of(char(3)), ("ab", "c")),
]

MALFORMED = (
    *("", "a}", "{a", "{a}}", "{a} b", "{a,}", "{,a}", "{{}}", "{{},{}}", "{{1,2},{3}}"),
    *("{1,{2}}", "{{1},2}", '{"a"b}', '{a"b"}', "[1:3]={1,2}", "[1:2]", '{"a'),
)

PRINTED: list[tuple[SqlType, Any, str]] = [
    (
        TEXTS,
        ("a b", "", "null", None, "{x", 'a"b', "a\\b", "a,b", " a", "a;"),
        '{"a b","","null",NULL,"{x","a\\"b","a\\\\b","a,b"," a",a;}',
    ),
    (INTEGERS, ((1, None), (3, 4)), "{{1,NULL},{3,4}}"),
    (INTEGERS, (), "{}"),
    (array_of(char(3)), ("a",), '{"a  "}'),
]


@pytest.mark.parametrize(("text", "sql_type", "expected"), READ)
def test_a_literal_is_read(text: str, sql_type: SqlType, expected: Any) -> None:
    assert cast(text, TEXT, sql_type) == expected


@pytest.mark.parametrize("text", MALFORMED)
def test_a_malformed_literal_is_refused(text: str) -> None:
    with pytest.raises(QserverError) as caught:
        cast(text, TEXT, TEXTS)
    assert (caught.value.code, caught.value.message) == (
        "22P02",
        f'malformed array literal: "{text}"',
    )


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("{1,x}", "22P02", 'invalid input syntax for type integer: "x"'),
        ("[0:1]={1,2}", "0A000", "arrays with a lower bound other than 1 do not exist"),
        (
            "{{{{{{{1}}}}}}}",
            "54000",
            "number of array dimensions (7) exceeds the maximum allowed (6)",
        ),
    ],
)
def test_other_errors_of_a_literal(text: str, code: str, message: str) -> None:
    with pytest.raises(QserverError) as caught:
        cast(text, TEXT, INTEGERS)
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize(("sql_type", "value", "expected"), PRINTED)
def test_an_array_is_printed(sql_type: SqlType, value: Any, expected: str) -> None:
    assert text_function(sql_type)(value) == expected


@given(st.text('{}",\\ ab', max_size=8))
def test_any_text_is_an_array_or_a_clear_error(text: str) -> None:
    try:
        value = cast(text, TEXT, TEXTS)
    except QserverError as error:
        assert error.code == "22P02"
    else:
        assert is_rectangular(value)
        assert cast(cast(value, TEXTS, TEXT), TEXT, TEXTS) == value


def test_elements_are_cast_and_fitted() -> None:
    prices = array_of(numeric(5, 2))
    assert cast(cast("{1.005,2}", TEXT, prices), prices, TEXT) == "{1.01,2.00}"
    assert cast(((1, None), (2, 3)), INTEGERS, TEXTS) == (("1", None), ("2", "3"))


def test_shapes() -> None:
    assert dimensions(()) == () and dimensions((1, 2)) == (2,)
    assert dimensions(((1, 2, 3), (4, 5, 6))) == (2, 3)
    assert mapped(str, ((1, None),)) == (("1", None),)
    for wrong in (((1,), (2, 3)), ((1,), 2), (2, (1,)), ((), ()), (((1,),), ((1,), (2,)))):
        assert not is_rectangular(wrong)


@given(arrays_of_integers)
def test_flat_and_shaped_are_inverse(array: tuple[Any, ...]) -> None:
    assert is_rectangular(array)
    assert shaped(flat(array), dimensions(array)) == array
