"""The grammar itself: no conflicts, and nothing that is mentioned in one place only."""

from __future__ import annotations

import logging
import re

import pytest
from lark import Lark, logger
from lark.lexer import Lexer

from qserver.lexing import keywords
from qserver.sql import ddl_keywords, session_keywords
from qserver.sql.ast_builder import Builder
from qserver.sql.parser import grammar_text

# Made by the classifier from something else than a word.
FROM_SIGNS = {
    *("NAME", "NUMBER", "STRING", "BITS", "PARAMETER", "REPEATED"),
    *("OPERATOR", "SIGN", "STAR", "EQUAL", "INFIX", "NAMED", "CAST_SIGN"),
    *("LPAR", "RPAR", "LSQB", "RSQB", "COMMA", "DOT", "COLON", "RUN"),
}
FROM_DEFINITIONS = {
    *("ADD", "AFTER", "AUTHORIZATION", "BEFORE", "BEHAVIOR", "CLUSTER", "COMMIT", "ENUM"),
    *("CONSTRAINTS", "EXPRESSION", "INDEX", "LIKE_OPTION", "OWNED", "SETTING_WORD"),
    *("OWNER", "RENAME", "REPLICA", "SCHEMA", "SEQUENCE", "SEQUENCE_OPTION", "SET_SCOPE"),
    *("LOGGING", "SWITCH", "SWITCH_WORD", "TABLESPACE"),
    *("STORED", "TUNING", "TYPE", "VALIDATE", "VALUE", "VIEW"),
}
FROM_SESSIONS = {
    *("CURSOR", "CURSOR_OPTION", "DISCARDED", "FETCH_DIRECTION", "GRANT_KIND", "GRANT_TAIL"),
    *("HOLD", "LOCK_MODE", "MAINTAIN_OPTION", "PRIVILEGE", "REINDEX_KIND"),
}


class NoLexer(Lexer):
    def __init__(self, lexer_conf: object) -> None:
        pass

    def lex(self, lexer_state: object, parser_state: object) -> object:  # type: ignore[override]
        raise AssertionError("the tables are made, and no text is read")


@pytest.fixture(scope="module")
def built() -> tuple[Lark, list[str]]:
    """The parser, and what Lark said while it made it."""
    messages: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())  # type: ignore[method-assign]
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        starts = ["start", "expression_alone"]
        lark = Lark(grammar_text(), parser="lalr", lexer=NoLexer, start=starts, debug=True)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    return lark, messages


@pytest.mark.long
def test_the_tables_have_no_conflicts(built: tuple[Lark, list[str]]) -> None:
    """Lark logs a conflict between shift and reduce, and refuses one between two reductions."""
    _, messages = built
    assert [message for message in messages if "conflict" in message.lower()] == []


@pytest.mark.long
def test_each_rule_has_a_builder(built: tuple[Lark, list[str]]) -> None:
    lark, _ = built
    missing = set()
    for rule in lark.rules:
        name = rule.alias or rule.origin.name
        inlined = name.startswith("_") or (rule.options.expand1 and not rule.alias)
        if not inlined and not hasattr(Builder, str(name)):
            missing.add(str(name))
    assert missing == set()


@pytest.mark.long
def test_each_builder_has_a_rule(built: tuple[Lark, list[str]]) -> None:
    lark, _ = built
    names = {str(rule.alias or rule.origin.name) for rule in lark.rules} | {"from_"}
    methods = {name for name in dir(Builder) if not name.startswith("_")}
    assert methods - names == set()


def test_each_terminal_comes_from_somewhere_and_each_word_goes_somewhere() -> None:
    rules = re.sub(r"//.*", "", grammar_text())
    used = set(re.findall(r"\b[A-Z][A-Z_]+\b", rules))
    made = {
        *keywords.KEYWORDS.values(),
        *keywords.HEADS.values(),
        *(each.terminal for rules in keywords.NEIGHBOURS.values() for each in rules),
        *FROM_SIGNS,
        *FROM_DEFINITIONS,
        *FROM_SESSIONS,
    }
    assert used <= made
    assert made - used <= FROM_SIGNS


def test_heads_of_definitions_are_words_that_begin_statements() -> None:
    for head in ddl_keywords.HEADS | session_keywords.HEADS:
        assert head in keywords.HEADS or head in keywords.KEYWORDS


@pytest.mark.parametrize("table", [keywords.KEYWORDS, keywords.NEIGHBOURS, keywords.HEADS])
def test_words_are_in_lower_case(table: dict[str, object]) -> None:
    assert all(word == word.lower() for word in table)
