"""Positions in the text, and errors with positions."""

from __future__ import annotations

from qserver.errors import SqlSyntaxError
from qserver.lexing.lexer import syntax_error
from qserver.sql.ast import Call, Node, Operator
from qserver.sql.terminals import Source, Terminal


def leftmost(node: Node) -> int:
    """Return where an expression begins: an operator's own position is that of its symbol."""
    while True:
        in_front = [each for each in _operands(node) if each.position < node.position]
        if not in_front:
            return node.position
        node = in_front[0]


def _operands(node: Node) -> tuple[Node, ...]:
    """Return the operands that may precede the node's own position."""
    match node:
        case Operator(left=left):
            return () if left is None else (left,)
        case Call(arguments=arguments):
            return arguments
        case _:
            operand = getattr(node, "operand", None)
            return () if operand is None else (operand,)


def unexpected(terminal: Terminal) -> SqlSyntaxError:
    text = terminal.source.text[terminal.start : terminal.end]
    return syntax_error("syntax error", text, terminal.start)


def unexpected_next(source: Source) -> SqlSyntaxError:
    """Return the error for whatever follows the text that the parser has read."""
    if source.lookahead is not None:
        return unexpected(source.lookahead)
    if source.semicolon is not None:
        return syntax_error("syntax error", ";", source.semicolon)
    return SqlSyntaxError("syntax error at end of input", position=len(source.text) + 1)


def text_between(start: int, terminal: Terminal) -> str:
    """Return the source from `start` to the end of the text that the parser has just read."""
    source = terminal.source
    return source.text[start : source.consumed].strip()
