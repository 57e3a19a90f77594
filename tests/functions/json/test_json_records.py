"""JSON becomes rows of the columns that a statement names, as in PostgreSQL 15."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.errors import QserverError
from qserver.functions.json.json_records import Columns, record_function
from qserver.values.jsonb import Jsonb
from qserver.values.text_output import shown
from qserver.values.types import INTEGER, JSON, JSONB, TEXT, array_of, numeric, record_of, varchar

NUMBERS: Columns = (("a", array_of(INTEGER)),)
NUMBER: Columns = (("a", INTEGER),)


def records(name: str, text: str | None, columns: Columns) -> list[str] | str:
    """The rows as PostgreSQL prints records, or the error."""
    value: Any = text if text is None or name.startswith("json_") else Jsonb(text)
    try:
        rows = list(record_function(name, columns).call(value))
    except QserverError as error:
        return f"error {error.code}: {error.message}"
    return [shown(row, record_of(columns)) for row in rows]


def test_members_are_read_as_the_columns_say() -> None:
    text = '[{"a":1,"b":"x"},{"a":"2","c":5},{"b":null}]'
    columns = (("a", INTEGER), ("b", TEXT))
    assert records("json_to_recordset", text, columns) == ["(1,x)", "(2,)", "(,)"]


def test_arrays_json_and_lengths_are_kept() -> None:
    text = '{"a": [1, 2], "b": "[3]", "c": {"d": 1}, "e": 1.50, "f": true, "g": "x"}'
    columns = (
        ("a", array_of(INTEGER)),
        ("b", JSONB),
        ("c", JSON),
        ("e", numeric(5, 1)),
        ("f", TEXT),
        ("g", varchar(3)),
    )
    assert records("jsonb_to_record", text, columns) == [
        '("{1,2}","""[3]""","{""d"": 1}",1.5,true,x)'
    ]


@pytest.mark.parametrize(
    ("name", "text", "columns", "expected"),
    [
        ("jsonb_to_record", '{"a": [[1, 2], [3, null]]}', NUMBERS, ['("{{1,2},{3,NULL}}")']),
        ("jsonb_to_record", '{"a": "{1,2}"}', NUMBERS, ['("{1,2}")']),
        ("jsonb_to_record", '{"a": 1}', NUMBERS, "error 22P02: expected JSON array"),
        ("jsonb_to_record", '{"a": [[1], [2, 3]]}', NUMBERS, "error 22P02: malformed JSON array"),
        (
            "jsonb_to_record",
            '{"a": [1, [2]]}',
            NUMBERS,
            'error 22P02: invalid input syntax for type integer: "[2]"',
        ),
        (
            "jsonb_to_record",
            '{"a": [1, 2]}',
            NUMBER,
            'error 22P02: invalid input syntax for type integer: "[1, 2]"',
        ),
        (
            "jsonb_to_record",
            "[1]",
            NUMBER,
            "error 22023: cannot call populate_composite on an array",
        ),
        (
            "json_to_record",
            "1",
            NUMBER,
            "error 22023: cannot call populate_composite on a scalar",
        ),
        (
            "json_to_recordset",
            "{}",
            NUMBER,
            "error 22023: cannot call json_to_recordset on an object",
        ),
        (
            "jsonb_to_recordset",
            "{}",
            NUMBER,
            "error 22023: cannot call jsonb_to_recordset on a non-array",
        ),
        (
            "json_to_recordset",
            "[1]",
            NUMBER,
            "error 22023: argument of json_to_recordset must be an array of objects",
        ),
        ("json_to_record", None, NUMBER, ["()"]),
        (
            "json_to_record",
            '{"a":"abcdef"}',
            (("a", varchar(3)),),
            "error 22001: value too long for type character varying(3)",
        ),
    ],
)
def test_odd_texts(
    name: str, text: str | None, columns: Columns, expected: list[str] | str
) -> None:
    assert records(name, text, columns) == expected


def test_null_has_no_rows_where_there_may_be_several() -> None:
    assert record_function("json_to_recordset", NUMBER).strict
    assert not record_function("jsonb_to_record", NUMBER).strict
