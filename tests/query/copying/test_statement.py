"""The words of COPY: what its options mean, and what is no COPY."""

from __future__ import annotations

import pytest

from qserver.errors import QserverError
from qserver.query.copying.statement import CopyFormat, read_copy


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("copy t from stdin", CopyFormat()),
        ("COPY t FROM STDIN WITH (FORMAT csv, HEADER)", CopyFormat("csv", ",", "", True)),
        ("copy t to stdout csv header delimiter ';'", CopyFormat("csv", ";", "", True)),
        ("copy t to stdout (format binary);", CopyFormat("binary")),
        ("copy binary t to stdout", CopyFormat("binary")),
        ("copy t to stdout with delimiter as '|' null as 'x'", CopyFormat("text", "|", "x")),
        ("copy t to stdout (format 'csv', null 'x', header off)", CopyFormat("csv", ",", "x")),
    ],
)
def test_options(sql: str, expected: CopyFormat) -> None:
    assert read_copy(sql).format == expected


@pytest.mark.parametrize(
    "sql",
    [
        "copy",
        "copy t",
        "copy t from '/etc/passwd'",
        "copy t to program 'rm'",
        "copy t from stdin where id > 1",
        "copy t from stdin (format xml)",
        "copy t from stdin (format csv, format csv)",
        "copy t from stdin (delimiter 'ab')",
        "copy t from stdin (nothing)",
        "copy (select 1) from stdin",
        "copy t (a from stdin",
        "copy t from stdin (format csv) more",
    ],
)
def test_wrong_statements_are_refused(sql: str) -> None:
    with pytest.raises(QserverError):
        read_copy(sql)


def test_parts_of_the_statement() -> None:
    found = read_copy('copy s."T x" (a, "B") from stdin')
    assert (found.table, found.columns) == (("s", "T x"), ("a", "B"))
    assert read_copy("copy (select (1), ')' from t) to stdout").query == "select (1), ')' from t"
