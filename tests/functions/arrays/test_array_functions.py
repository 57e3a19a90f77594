"""Array operators and functions answer as in PostgreSQL 15."""

from __future__ import annotations

import pytest

from qserver.errors import ArraySubscriptError
from qserver.functions.arrays.functions import array_of_arrays
from qserver.values.types import BOOLEAN, DOUBLE, INTEGER, NUMERIC, TEXT, array_of
from tests.functions.typed_calls import Argument, called, rows_of

Case = tuple[str, list[Argument], str | None]
INTEGERS = array_of(INTEGER)
TEXTS = array_of(TEXT)
NUMERICS = array_of(NUMERIC)
DOUBLES = array_of(DOUBLE)

JOINED: list[Case] = [
    ("||", [(INTEGERS, "{1}"), (INTEGERS, "{2,3}")], "{1,2,3}"),
    ("||", [(INTEGERS, "{1}"), (INTEGERS, "{{2}}")], "{{1},{2}}"),
    ("||", [(INTEGERS, "{{1,2}}"), (INTEGERS, "{3,4}")], "{{1,2},{3,4}}"),
    (
        "||",
        [(INTEGERS, "{{1,2}}"), (INTEGERS, "{3}")],
        "error 2202E: cannot concatenate incompatible arrays",
    ),
    (
        "||",
        [(INTEGERS, "{{1,2}}"), (INTEGER, "3")],
        "error 22000: argument must be empty or one-dimensional array",
    ),
    ("||", [(INTEGERS, "{}"), (INTEGERS, "{1}")], "{1}"),
    ("||", [(INTEGERS, None), (INTEGER, "1")], "{1}"),
    ("||", [(INTEGER, None), (INTEGERS, None)], "{NULL}"),
    ("||", [(INTEGERS, "{}"), (INTEGERS, None)], "{}"),
    ("||", [(INTEGERS, "{1}"), (NUMERIC, "2.5")], "{1,2.5}"),
    ("||", [(TEXTS, "{a}"), (TEXT, "b")], "{a,b}"),
    ("||", [(TEXT, "a"), (TEXTS, "{b}")], "{a,b}"),
    ("array_append", [(INTEGERS, "{1}"), (INTEGER, "2")], "{1,2}"),
    ("array_prepend", [(INTEGER, None), (INTEGERS, "{1}")], "{NULL,1}"),
    ("array_cat", [(INTEGERS, None), (INTEGERS, "{1}")], "{1}"),
    (
        "array_append",
        [(INTEGERS, "{{1}}"), (INTEGER, "2")],
        "error 22000: argument must be empty or one-dimensional array",
    ),
]

COMPARED: list[Case] = [
    ("=", [(INTEGERS, "{1,2}"), (INTEGERS, "{1,3}")], "false"),
    ("=", [(INTEGERS, "{1,2}"), (INTEGERS, "{1,2,0}")], "false"),
    ("=", [(INTEGERS, "{1,2}"), (INTEGERS, "{{1,2}}")], "false"),
    ("=", [(INTEGERS, "{1,NULL}"), (INTEGERS, "{1,2}")], "false"),
    ("=", [(INTEGERS, "{1,NULL}"), (INTEGERS, "{1,NULL}")], "true"),
    ("=", [(INTEGERS, "{}"), (INTEGERS, "{NULL}")], "false"),
    ("<", [(INTEGERS, "{1,2}"), (INTEGERS, "{1,3}")], "true"),
    ("<", [(INTEGERS, "{1,2}"), (INTEGERS, "{1,2,0}")], "true"),
    ("<", [(INTEGERS, "{1,2}"), (INTEGERS, "{{1,2}}")], "true"),
    ("<", [(INTEGERS, "{1,NULL}"), (INTEGERS, "{1,2}")], "false"),
    ("<", [(INTEGERS, "{1,NULL}"), (INTEGERS, "{1,NULL}")], "false"),
    ("<", [(INTEGERS, "{}"), (INTEGERS, "{NULL}")], "true"),
    (">=", [(INTEGERS, "{1,2}"), (INTEGERS, "{1,3}")], "false"),
    (">=", [(INTEGERS, "{1,2}"), (INTEGERS, "{1,2,0}")], "false"),
    (">=", [(INTEGERS, "{1,2}"), (INTEGERS, "{{1,2}}")], "false"),
    (">=", [(INTEGERS, "{1,NULL}"), (INTEGERS, "{1,2}")], "true"),
    (">=", [(INTEGERS, "{1,NULL}"), (INTEGERS, "{1,NULL}")], "true"),
    (">=", [(INTEGERS, "{}"), (INTEGERS, "{NULL}")], "false"),
    ("=", [(DOUBLES, "{NaN,0}"), (DOUBLES, "{NaN,-0}")], "true"),
    ("<>", [(NUMERICS, "{1.0}"), (NUMERICS, "{1.00}")], "false"),
    (
        "=",
        [(INTEGERS, "{1}"), (NUMERICS, "{1}")],
        "error 42883: operator does not exist: integer[] = numeric[]",
    ),
    ("@>", [(INTEGERS, "{1,2}"), (INTEGERS, "{2,2}")], "true"),
    ("@>", [(INTEGERS, "{1,NULL}"), (INTEGERS, "{NULL}")], "false"),
    ("<@", [(INTEGERS, "{1,2}"), (INTEGERS, "{2,1,3}")], "true"),
    ("&&", [(INTEGERS, "{1,2}"), (INTEGERS, "{{2},{3}}")], "true"),
    ("&&", [(INTEGERS, "{1,NULL}"), (INTEGERS, "{NULL}")], "false"),
    ("@>", [(NUMERICS, "{1.0,NaN}"), (NUMERICS, "{1,NaN}")], "true"),
    ("<@", [(INTEGERS, "{}"), (INTEGERS, "{1}")], "true"),
]

SIZES: list[Case] = [
    ("array_length", [(INTEGERS, "{{1,2},{3,4},{5,6}}"), (INTEGER, "1")], "3"),
    ("array_length", [(INTEGERS, "{{1,2}}"), (INTEGER, "2")], "2"),
    ("array_length", [(INTEGERS, "{1}"), (INTEGER, "0")], None),
    ("array_length", [(INTEGERS, "{}"), (INTEGER, "1")], None),
    ("array_upper", [(INTEGERS, "{1,2}"), (INTEGER, "1")], "2"),
    ("array_lower", [(INTEGERS, "{1,2}"), (INTEGER, "1")], "1"),
    ("array_lower", [(INTEGERS, "{}"), (INTEGER, "1")], None),
    ("array_ndims", [(INTEGERS, "{{1}}")], "2"),
    ("array_ndims", [(INTEGERS, "{}")], None),
    ("array_dims", [(INTEGERS, "{{1,2},{3,4}}")], "[1:2][1:2]"),
    ("cardinality", [(INTEGERS, "{{1,2},{3,4}}")], "4"),
    ("cardinality", [(INTEGERS, "{}")], "0"),
]

SEARCHED: list[Case] = [
    ("array_position", [(INTEGERS, "{1,2,NULL}"), (INTEGER, None)], "3"),
    ("array_position", [(INTEGERS, "{1,2,1}"), (INTEGER, "1"), (INTEGER, "2")], "3"),
    (
        "array_position",
        [(INTEGERS, "{{1}}"), (INTEGER, "1")],
        "error 0A000: searching for elements in multidimensional arrays is not supported",
    ),
    (
        "array_position",
        [(INTEGERS, "{1}"), (INTEGER, "1"), (INTEGER, None)],
        "error 22004: initial position must not be null",
    ),
    ("array_position", [(NUMERICS, "{1.00}"), (NUMERIC, "1")], "1"),
    ("array_positions", [(INTEGERS, "{1,2,1}"), (INTEGER, "1")], "{1,3}"),
    ("array_remove", [(INTEGERS, "{1,2,NULL}"), (INTEGER, None)], "{1,2}"),
    (
        "array_remove",
        [(INTEGERS, "{{1}}"), (INTEGER, "1")],
        "error 0A000: removing elements from multidimensional arrays is not supported",
    ),
    (
        "array_replace",
        [(INTEGERS, "{{1,2},{2,3}}"), (INTEGER, "2"), (INTEGER, "9")],
        "{{1,9},{9,3}}",
    ),
    ("array_replace", [(INTEGERS, "{1,NULL}"), (INTEGER, None), (INTEGER, "5")], "{1,5}"),
    ("trim_array", [(INTEGERS, "{1,2,3}"), (INTEGER, "2")], "{1}"),
    (
        "trim_array",
        [(INTEGERS, "{1,2,3}"), (INTEGER, "4")],
        "error 2202E: number of elements to trim must be between 0 and 3",
    ),
]

TEXTS_OF: list[Case] = [
    ("array_to_string", [(INTEGERS, "{1,NULL,3}"), (TEXT, ",")], "1,3"),
    ("array_to_string", [(INTEGERS, "{1,NULL,3}"), (TEXT, ","), (TEXT, "*")], "1,*,3"),
    ("array_to_string", [(INTEGERS, "{{1,2},{3,4}}"), (TEXT, "-")], "1-2-3-4"),
    ("array_to_string", [(INTEGERS, "{1}"), (TEXT, None)], None),
    ("array_to_string", [(array_of(BOOLEAN), "{t,f}"), (TEXT, ",")], "t,f"),
    ("string_to_array", [(TEXT, "a,b,"), (TEXT, ",")], '{a,b,""}'),
    ("string_to_array", [(TEXT, "abc"), (TEXT, None)], "{a,b,c}"),
    ("string_to_array", [(TEXT, ""), (TEXT, ",")], "{}"),
    ("string_to_array", [(TEXT, "abc"), (TEXT, "")], "{abc}"),
    ("string_to_array", [(TEXT, "a,b,c"), (TEXT, ","), (TEXT, "b")], "{a,NULL,c}"),
    ("string_to_array", [(TEXT, None), (TEXT, ",")], None),
    ("array_fill", [(INTEGER, "7"), (INTEGERS, "{2,3}")], "{{7,7,7},{7,7,7}}"),
    ("array_fill", [(INTEGER, None), (INTEGERS, "{2}")], "{NULL,NULL}"),
    ("array_fill", [(INTEGER, "7"), (INTEGERS, "{0}")], "{}"),
    (
        "array_fill",
        [(INTEGER, "7"), (INTEGERS, None)],
        "error 22004: dimension array or low bound array cannot be null",
    ),
    (
        "array_fill",
        [(INTEGER, "7"), (INTEGERS, "{NULL}")],
        "error 22004: dimension values cannot be null",
    ),
    (
        "array_fill",
        [(INTEGER, "7"), (INTEGERS, "{-1}")],
        "error 54000: array size exceeds the maximum allowed (16777216)",
    ),
    (
        "array_fill",
        [(INTEGER, "7"), (INTEGERS, "{100000,100000}")],
        "error 54000: array size exceeds the maximum allowed (16777216)",
    ),
    (
        "array_fill",
        [(INTEGER, "7"), (INTEGERS, "{1,1,1,1,1,1,1}")],
        "error 54000: number of array dimensions (7) exceeds the maximum allowed (6)",
    ),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), JOINED)
def test_arrays_are_joined(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), COMPARED)
def test_arrays_are_compared(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), SIZES)
def test_arrays_are_measured(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), SEARCHED)
def test_arrays_are_searched_and_changed(
    name: str, arguments: list[Argument], expected: str | None
) -> None:
    assert called(name, *arguments) == expected


@pytest.mark.parametrize(("name", "arguments", "expected"), TEXTS_OF)
def test_arrays_and_texts(name: str, arguments: list[Argument], expected: str | None) -> None:
    assert called(name, *arguments) == expected


def place(array: str, *places: int) -> str | None:
    return called("array_subscript", (INTEGERS, array), *((INTEGER, str(at)) for at in places))


def test_a_subscript_is_an_element_or_null() -> None:
    assert [place("{5,6}", at) for at in (-1, 0, 1, 2, 3)] == [None, None, "5", "6", None]
    assert place("{{5,6},{7,8}}", 2, 1) == "7"
    assert place("{{5,6},{7,8}}", 2) is None
    assert place("{5}", 1, 1) is None


def cut(array: str, *bounds: int | None) -> str | None:
    texts = [None if bound is None else str(bound) for bound in bounds]
    return called("array_slice", (INTEGERS, array), *((INTEGER, text) for text in texts))


def test_a_slice_is_cut_to_what_there_is() -> None:
    assert cut("{1,2,3}", 2, None) == "{2,3}"
    assert cut("{1,2,3}", None, 2) == "{1,2}"
    assert cut("{1,2,3}", -5, 1) == "{1}"
    assert cut("{1,2,3}", 3, 2) == cut("{1,2,3}", 5, 6) == cut("{1}", 1, 1, 1, 1) == "{}"
    assert cut("{{1,2},{3,4}}", 1, 1) == "{{1,2}}"
    assert cut("{{1,2},{3,4}}", 1, 2, 2, 2) == "{{2},{4}}"


def test_a_filled_array_needs_one_bound_for_each_dimension() -> None:
    seven = (INTEGER, "7")
    for sizes, bounds, expected in (
        ("{2,2}", "{1,1}", "{{7,7},{7,7}}"),
        ("{2,2}", "{1}", "error 2202E: wrong number of array subscripts"),
        ("{2}", None, "error 22004: dimension array or low bound array cannot be null"),
        ("{2}", "{2}", "error 0A000: arrays with a lower bound other than 1 do not exist"),
    ):
        assert called("array_fill", seven, (INTEGERS, sizes), (INTEGERS, bounds)) == expected
    assert called("array_fill", seven, (INTEGERS, "{{1,2},{3,4}}")) == (
        "error 2202E: wrong number of array subscripts"
    )


def test_arrays_of_arrays_must_match() -> None:
    assert array_of_arrays(((1, 2), (3, 4))) == ((1, 2), (3, 4))
    assert array_of_arrays(((), ())) == array_of_arrays(((), None)) == ()
    for parts in (((1,), (2, 3)), ((1,), None), ((1,), ((2,),))):
        with pytest.raises(ArraySubscriptError, match="matching dimensions"):
            array_of_arrays(parts)


def test_arrays_become_rows() -> None:
    assert rows_of("unnest", (INTEGERS, "{{1,NULL},{3,4}}")) == [("1",), (None,), ("3",), ("4",)]
    assert rows_of("unnest", (INTEGERS, None)) == []
    assert rows_of("unnest", (INTEGERS, "{1,2}"), (TEXTS, "{a}")) == [("1", "a"), ("2", None)]
    assert rows_of("unnest", (INTEGERS, "{1,2}"), (TEXTS, None)) == [("1", None), ("2", None)]
    assert rows_of("unnest", (INTEGERS, "{1}"), (INTEGER, "1")) == (
        "error 42883: function unnest(integer[], integer) does not exist"
    )
    assert rows_of("generate_subscripts", (INTEGERS, "{5,6}"), (INTEGER, "1")) == [("1",), ("2",)]
    backward = ((INTEGERS, "{5,6}"), (INTEGER, "1"), (BOOLEAN, "t"))
    assert rows_of("generate_subscripts", *backward) == [("2",), ("1",)]
    assert rows_of("string_to_table", (TEXT, "a,b"), (TEXT, ",")) == [("a",), ("b",)]
