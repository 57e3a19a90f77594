"""DEALLOCATE and DISCARD: what pools send before they give a connection to somebody else."""

from __future__ import annotations

from qserver.errors import ActiveTransaction, SqlSyntaxError
from qserver.lexing.lexer import Token, tokenize
from qserver.pgwire.executing import Executing
from qserver.pgwire.settings import SessionSettings
from qserver.values.identifiers import identifiers


def discard(executing: Executing, text: str) -> str:
    """Do what the statement says; return its tag."""
    tokens = [each for each in tokenize(text) if each.text != ";"]
    words = [each.text.lower() for each in tokens]
    if words[0] == "discard":
        return _discard(executing, words)
    if words[1:2] == ["prepare"] and len(words) > 2:
        del tokens[1], words[1]
    if len(words) != 2:
        raise _syntax(tokens)
    if words[1] == "all":
        executing.close_statements()
        return "DEALLOCATE ALL"
    (name,) = identifiers(tokens[1].text)
    executing.statement(name)
    executing.close_statement(name)
    return "DEALLOCATE"


def _discard(executing: Executing, words: list[str]) -> str:
    what = " ".join(words[1:])
    if what not in ("all", "plans", "sequences", "temp", "temporary"):
        raise SqlSyntaxError(f'syntax error at or near "{what}"')
    if what == "all":
        if executing.state.block.transaction is not None:
            raise ActiveTransaction("DISCARD ALL cannot run inside a transaction block")
        executing.close_statements()
        executing.close_portals()
        executing.state.settings = SessionSettings.of(executing.state.startup)
    return f"DISCARD {what.upper()}"


def _syntax(tokens: list[Token]) -> SqlSyntaxError:
    last = tokens[-1]
    return SqlSyntaxError(f'syntax error at or near "{last.text}"', position=last.start + 1)
