"""DEFAULT clauses of SQLite as PostgreSQL writes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from qserver.cli.moving.sqlite_text import rendered, text_literal, tokens_of

_NOW: Final = {
    "timestamp": "(now() AT TIME ZONE 'UTC')",
    "timestamptz": "now()",
    "date": "((now() AT TIME ZONE 'UTC')::date)",
}
_NOW_TEXT: Final = "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"
_DATE_TEXT: Final = "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
_TIME_TEXT: Final = "to_char(now() AT TIME ZONE 'UTC', 'HH24:MI:SS')"
_EPOCH: Final = "(floor(extract(epoch FROM now()))::bigint)"
_MOMENTS: Final = {
    "CURRENT_TIMESTAMP": _NOW_TEXT,
    "DATETIME('NOW')": _NOW_TEXT,
    "CURRENT_DATE": _DATE_TEXT,
    "DATE('NOW')": _DATE_TEXT,
    "CURRENT_TIME": _TIME_TEXT,
    "TIME('NOW')": _TIME_TEXT,
    "STRFTIME('%S','NOW')": _EPOCH,
    "UNIXEPOCH()": _EPOCH,
    "UNIXEPOCH('NOW')": _EPOCH,
}
"""What SQLite computes, as it would be written in a column of text."""


@dataclass(frozen=True, slots=True)
class Default:
    sql: str
    is_plain: bool
    """Is it a literal, which cannot fail?"""


def default_of(text: str, sql_type: str) -> Default:
    """The default in SQLite's words, for a column of the type."""
    tokens = tokens_of(text)
    while len(tokens) > 2 and (tokens[0].text, tokens[-1].text) == ("(", ")"):
        tokens = tokens[1:-1]
    moment = _MOMENTS.get("".join(token.text for token in tokens).upper())
    if moment is not None:
        is_text = moment not in (_EPOCH,)
        return Default(_NOW.get(sql_type, moment) if is_text else moment, is_plain=False)
    if len(tokens) == 1:
        (token,) = tokens
        word = token.word
        if word == "NULL":
            return Default("NULL", is_plain=True)
        if token.kind in ("string", "quoted"):  # SQLite takes a name for a text
            literal = token.text if token.kind == "string" else text_literal(token.name)
            return Default(literal, is_plain=_is_text(sql_type))
        if word in ("TRUE", "FALSE") or token.kind == "number":
            number = _number(word or token.text, sql_type)
            return Default(number, _is_number(number, sql_type))
    if len(tokens) == 2 and tokens[0].text in "+-" and tokens[1].kind == "number":
        number = _number(tokens[0].text + tokens[1].text, sql_type)
        return Default(number, _is_number(number, sql_type))
    return Default(f"({rendered(tokens, {})})", is_plain=False)


def _number(text: str, sql_type: str) -> str:
    """A number, or TRUE or FALSE, which are the same to SQLite."""
    is_true = text in ("TRUE", "1")
    if sql_type == "boolean" and text in ("TRUE", "FALSE", "0", "1"):
        return "true" if is_true else "false"
    if text in ("TRUE", "FALSE"):
        text = "1" if is_true else "0"
    return f"'{text}'" if _is_text(sql_type) else text


def _is_text(sql_type: str) -> bool:
    return sql_type.startswith(("text", "varchar"))


def _is_number(text: str, sql_type: str) -> bool:
    """Is the literal one of the type, for sure?"""
    if sql_type == "boolean":
        return text in ("true", "false")
    if sql_type == "bigint":
        return text.lstrip("+-").isdigit() and len(text) < 19
    return _is_text(sql_type) or (
        sql_type.startswith(("double", "numeric")) and not text.startswith(("0x", "0X"))
    )
