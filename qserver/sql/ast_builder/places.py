"""Where things are in the text, and the errors that say so."""

from __future__ import annotations

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import Call, Node, Operator
from qserver.sql.lexer import syntax_error
from qserver.sql.terminals import Source, Terminal


def leftmost(node: Node) -> int:
    """Where an expression begins: an operator's own place is that of its symbol."""
    while True:
        in_front = [each for each in _operands(node) if each.position < node.position]
        if not in_front:
            return node.position
        node = in_front[0]


def _operands(node: Node) -> tuple[Node, ...]:
    """The operands of which one may stand in front of the node's own place."""
    match node:
        case Operator(left=left):
            return () if left is None else (left,)
        case Call(arguments=arguments):
            return arguments
        case _:
            operand = getattr(node, "operand", None)
            return () if operand is None else (operand,)


def unexpected(terminal: Terminal) -> SqlSyntaxError:
    """The error for a terminal that cannot stand where it does."""
    text = terminal.source.text[terminal.start : terminal.end]
    return syntax_error("syntax error", text, terminal.start)


def unexpected_next(source: Source) -> SqlSyntaxError:
    """The error for whatever comes after what the parser has read so far."""
    if source.lookahead is not None:
        return unexpected(source.lookahead)
    if source.semicolon is not None:
        return syntax_error("syntax error", ";", source.semicolon)
    return SqlSyntaxError("syntax error at end of input", position=len(source.text) + 1)


def text_between(start: int, terminal: Terminal) -> str:
    """The source from `start` to the end of what the parser has just read."""
    source = terminal.source
    return source.text[start : source.consumed].strip()
