"""Limits are explained, and those that PostgreSQL has too are the same."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

from qserver import limits

SOURCE = Path(limits.__file__).read_text(encoding="utf-8")


def test_every_limit_is_followed_by_a_sentence() -> None:
    body = ast.parse(SOURCE).body
    unexplained = [
        ast.unparse(statement)
        for statement, following in pairwise(body)
        if isinstance(statement, ast.Assign) and not _is_sentence(following)
    ]
    assert unexplained == []


def _is_sentence(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    text = statement.value.value
    return isinstance(text, str) and text[0].isupper() and text.endswith(".")


def test_limits_of_values_and_definitions_are_those_of_postgresql() -> None:
    assert limits.IDENTIFIER_BYTES_MAX == 63
    assert limits.COLUMNS_MAX == 1600
    assert limits.INDEX_COLUMNS_MAX == 32
    assert limits.NUMERIC_DIGITS_MAX == 131072 + 16383
    assert limits.NUMERIC_PRECISION_MAX == 1000
    assert limits.VARCHAR_LENGTH_MAX == 10485760
