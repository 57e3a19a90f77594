"""Prints the expressions of definitions as PostgreSQL prints them from its trees.

    age >= 0 AND role IN ('a', 'b')     as it was written
    ((age >= 0) AND (role = ANY (ARRAY['a'::text, 'b'::text])))
    age >= 0 AND (role = ANY (ARRAY['a'::text, 'b'::text]))            `pretty`

Types are shown where PostgreSQL shows them: at texts, and where a value is cast, also without being
asked. What cannot be printed so (a subquery, a rare construct) stays as it was written.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from qserver.errors import QserverError
from qserver.sql import expressions
from qserver.sql.binder.statements import bind_expression
from qserver.sql.expressions import Expression
from qserver.sql.ports import CatalogPort
from qserver.sql.shown_texts import NamesPort, shown_expression
from qserver.values.identifiers import identifiers, quote_identifier
from qserver.values.schema import Table
from qserver.values.text_output import text_function
from qserver.values.types import FLOAT_KINDS, INTEGER_KINDS, TEXT, Kind, SqlType

WORDS: Final = frozenset(
    {
        *("current_catalog", "current_date", "current_role", "current_schema", "current_time"),
        *("current_timestamp", "current_user", "localtime", "localtimestamp", "session_user"),
    }
)
"""Functions that are called by a word alone."""

_SUBSCRIPT: Final = "array_subscript"
_CONSTRUCTS: Final = frozenset({"greatest", "least"})
SEQUENCES: Final = frozenset({"nextval", "currval", "setval"})


class Unprintable(Exception):
    """An expression that only its own text says."""


class StoredExpression:
    """An expression of a definition, over the columns of a table.

    `wanted` is the type of its place: a text literal alone is of that type. To bind it takes as
    long as to plan it, to print it does not: what is printed depends on who asks.
    """

    __slots__ = ("_bound", "_table", "_text", "_wanted")

    def __init__(
        self, text: str, table: Table, catalog: CatalogPort, wanted: SqlType | None = None
    ) -> None:
        self._text = text
        self._table = table
        self._wanted = wanted
        self._bound: Expression | None = None
        try:
            self._bound = bind_expression(text, table, catalog, wanted)
        except (QserverError, RecursionError):
            pass

    def printed(self, names: NamesPort) -> tuple[str, str]:
        """Return the expression as PostgreSQL prints it, and pretty."""
        plain, pretty = (_Printer(self._table, names, each) for each in (False, True))
        bound = self._bound
        if bound is not None:
            # PostgreSQL does not print the cast to the type of the place, but counts as if it did.
            is_bare = self._wanted in (None, bound.type)
            try:
                return plain.text(bound), (pretty.bare if is_bare else pretty.text)(bound)
            except (Unprintable, RecursionError):
                self._bound = None
        text = shown_expression(self._text, names)
        return text, text


class _Printer:
    def __init__(self, table: Table, names: NamesPort, pretty: bool) -> None:
        self.table = table
        self.names = names
        self.pretty = pretty

    def bare(self, node: Expression) -> str:
        """Print an expression that stands alone: without parentheses around it."""
        return _without_parentheses(self.text(node)) if self.pretty else self.text(node)

    def text(self, node: Expression) -> str:
        match node:
            case expressions.Constant():
                return self._constant(node)
            case expressions.Column():
                return quote_identifier(self.table.columns[node.position].name)
            case expressions.Apply():
                return self._call(node)
            case expressions.Cast():
                return self._cast(node.operand, node.type)
            case expressions.And() | expressions.Or():
                return self._logic(node)
            case expressions.Not():
                return f"(NOT {self._operand(node.operand)})"
            case expressions.IsNull():
                word = "IS NOT NULL" if node.negated else "IS NULL"
                return f"({self._operand(node.operand)} {word})"
            case expressions.IsTruth():
                word = f"IS {'NOT ' if node.negated else ''}{'TRUE' if node.truth else 'FALSE'}"
                return f"({self._operand(node.operand)} {word})"
            case expressions.Coalesce():
                return f"COALESCE({', '.join(map(self.bare, node.operands))})"
            case expressions.InList():
                return self._in_list(node)
            case expressions.Array():
                items = ", ".join(map(self.bare, node.items))
                return f"ARRAY[{items}]" + ("" if items else f"::{self.names.type_text(node.type)}")
            case expressions.Case():
                return self._case(node)
        raise Unprintable

    def _operand(self, node: Expression) -> str:
        """Print what stands beside an operator: pretty, comparisons in AND need no parentheses."""
        return self.text(node)

    def _logic(self, node: expressions.And | expressions.Or) -> str:
        word = " AND " if isinstance(node, expressions.And) else " OR "
        parts = [self.text(each) for each in node.operands]
        if self.pretty:
            is_inner = (expressions.And, expressions.Or, expressions.InList)
            parts = [
                part if isinstance(each, is_inner) else _without_parentheses(part)
                for part, each in zip(parts, node.operands, strict=True)
            ]
        return f"({word.join(parts)})"

    def _call(self, node: expressions.Apply) -> str:
        function = node.function
        if function.symbol is not None:
            parts = [self._operand(each) for each in node.arguments]
            if len(parts) == 1:
                return f"({function.symbol} {parts[0]})"
            return f"({parts[0]} {function.symbol} {parts[1]})"
        if function.name in WORDS and not node.arguments:
            return function.name.upper()
        if not function.name.isidentifier() or function.name in ("row", "moment", "array_slice"):
            raise Unprintable
        if function.name == _SUBSCRIPT:
            return self._subscripted(*node.arguments)
        arguments = [self.bare(each) for each in node.arguments]
        first = node.arguments[0] if node.arguments else None
        if function.name in SEQUENCES and isinstance(first, expressions.Constant):
            name = self.names.relation_text(tuple(identifiers(str(first.value))))
            arguments[0] = f"{_quoted(name)}::regclass"
        if function.name == "extract" and isinstance(first, expressions.Constant):
            return f"EXTRACT({first.value} FROM {arguments[1]})"
        is_word = function.name in WORDS or function.name in _CONSTRUCTS
        return f"{function.name.upper() if is_word else function.name}({', '.join(arguments)})"

    def _subscripted(self, operand: Expression, *subscripts: Expression) -> str:
        text = self.text(operand)
        inside = isinstance(operand, expressions.Apply) and operand.function.name == _SUBSCRIPT
        if not inside and not isinstance(operand, expressions.Column):
            text = f"({self.bare(operand)})"
        return text + "".join(f"[{self.bare(each)}]" for each in subscripts)

    def _cast(self, operand: Expression, target: SqlType) -> str:
        text, shown = self.text(operand), self.names.type_text(target)
        simple = expressions.Column | expressions.Constant | expressions.Cast
        is_call = isinstance(operand, expressions.Apply) and operand.function.symbol is None
        if self.pretty and (isinstance(operand, simple) or is_call or text.startswith("(")):
            return f"{text}::{shown}"
        return f"({text})::{shown}"

    def _in_list(self, node: expressions.InList) -> str:
        word, symbol = ("ALL", "<>") if node.negated else ("ANY", "=")
        operand = self._operand(node.operand)
        of_varchar = (
            isinstance(node.operand, expressions.Cast)
            and node.operand.operand.type.kind is Kind.VARCHAR
            and node.operand.type == TEXT
        )
        if any(isinstance(each, expressions.Elements) for each in node.items):
            raise Unprintable
        items = [self.bare(each) for each in node.items]
        if of_varchar:
            items = [item.removesuffix("::text") + "::character varying" for item in items]
        array = f"ARRAY[{', '.join(items)}]"
        if of_varchar:
            array = f"{array}::text[]" if self.pretty else f"({array})::text[]"
        return f"({operand} {symbol} {word} ({array}))"

    def _case(self, node: expressions.Case) -> str:
        lines = ["\nCASE"]
        lines += [f"    WHEN {self.bare(when)} THEN {self.bare(then)}" for when, then in node.whens]
        otherwise = self.bare(node.otherwise)
        return "\n".join([*lines, f"    ELSE {otherwise}", "END"])

    def _constant(self, node: expressions.Constant) -> str:
        value, kind = node.value, node.type.kind
        if value is None:
            return f"NULL::{self.names.type_text(node.type)}"
        if kind is Kind.BOOLEAN:
            return "true" if value else "false"
        if kind in INTEGER_KINDS:
            is_plain = value >= 0 and kind is Kind.INTEGER
            return str(value) if is_plain else f"'{value}'::{node.type}"
        text = text_function(node.type)(value)
        if not node.quoted and (kind is Kind.NUMERIC or kind in FLOAT_KINDS):
            return self._number(Decimal(text), node.type)
        if kind is Kind.NUMERIC and "." in text and text[0].isdigit():
            return text
        bare = node.type.bare
        shown = "bpchar" if bare.kind is Kind.CHAR else self.names.type_text(bare)
        return f"{_quoted(text)}::{shown}"

    def _number(self, value: Decimal, sql_type: SqlType) -> str:
        """Print a number with its cast, unless it was written as a numeric and is one."""
        text = format(value, "f")
        is_integer = "." not in text and value.is_finite()
        if not value.is_finite() or value < 0:
            text = f"'{text}'::{'integer' if is_integer else 'numeric'}"
        if sql_type.kind is Kind.NUMERIC and not is_integer:
            return text
        return f"{text}::{sql_type.bare}" if self.pretty else f"({text})::{sql_type.bare}"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _without_parentheses(text: str) -> str:
    """Return a text without the parentheses around all of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth, quote = 0, False
    for at, each in enumerate(text):
        quote ^= each == "'"
        if not quote:
            depth += (each == "(") - (each == ")")
        if depth == 0 and at < len(text) - 1:
            return text
    return text[1:-1]
