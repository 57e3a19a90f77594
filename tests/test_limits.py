"""Limits are explained, and those that PostgreSQL has too are the same."""

from __future__ import annotations

import ast
import re
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


def test_every_limit_holds_somewhere() -> None:
    names = [name for name in vars(limits) if name.isupper()]
    package = Path(limits.__file__).parent
    used = {
        word
        for path in package.rglob("*.py")
        for word in re.findall(r"[A-Z][A-Z0-9_]+", _used_text(path))
    }
    assert len(names) > 100 and [name for name in names if name not in used] == []


def _used_text(path: Path) -> str:
    """Return the text of a module; of the limits themselves, what they compute from each other."""
    if path.name != "limits.py":
        return path.read_text(encoding="utf-8")
    assigned = (each.value for each in ast.parse(SOURCE).body if isinstance(each, ast.Assign))
    return "\n".join(map(ast.unparse, assigned))


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
