"""Builds expressions, except functions and types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qserver.sql.ast import (
    ArrayItems,
    ArrayQuery,
    Call,
    Case,
    Cast,
    Collate,
    Constant,
    Default,
    Exists,
    Expression,
    Field,
    InList,
    InQuery,
    Is,
    Like,
    Name,
    Operator,
    Quantified,
    Row,
    ScalarQuery,
    Star,
    Subscript,
    Word,
)
from qserver.sql.ast_builder.places import leftmost
from qserver.sql.ast_builder.precedence import (
    AT_TIME_ZONE,
    CAST,
    COLLATE,
    IS,
    MEMBERSHIP,
    OTHER,
    Infix,
    Suffix,
    between_operator,
    build_chain,
    like_operator,
    operand,
    operator_level,
)
from qserver.sql.terminals import Terminal

Children = list[Any]


def parts(terminals: list[Terminal]) -> tuple[str, ...]:
    return tuple([terminal.value for terminal in terminals])


def as_list(builder: object, children: Children) -> list[Any]:
    """The method of a rule that is a list of its parts."""
    return children


def as_tuple(builder: object, children: Children) -> tuple[Any, ...]:
    return tuple(children)


class Expressions:
    """Methods for the rules under "names" and "expressions"."""

    expressions = as_tuple

    # --- names ------------------------------------------------------------------------------------

    def qualified(self, children: Children) -> list[Terminal]:
        if len(children) == 1:
            return children
        first, last = children
        first.append(last)
        result: list[Terminal] = first
        return result

    def names(self, children: Children) -> tuple[str, ...]:
        return parts(children)

    def object_names(self, children: Children) -> tuple[tuple[str, ...], ...]:
        return tuple([parts(each) for each in children])

    # --- chains -----------------------------------------------------------------------------------

    def expression(self, children: Children) -> Expression:
        tree: Expression = build_chain(children)
        return tree

    restricted = group = expression

    def scalar_query(self, children: Children) -> ScalarQuery:
        made = operand(children[0])
        assert isinstance(made, ScalarQuery)
        return made

    def default(self, children: Children) -> Default:
        return Default(position=children[0].start)

    # --- operators of several words ---------------------------------------------------------------

    def any_operator(self, children: Children) -> Terminal:
        operator: Terminal = children[0]
        return operator

    def named_operator(self, children: Children) -> Infix:
        word, *schemas, operator = children
        names = [str(each.value) for each in (*schemas, operator)]
        symbol = names[-1] if names[:-1] == ["pg_catalog"] else ".".join(names)

        def combine(left: Any, right: Any) -> Operator:
            return Operator(symbol, left, right, position=word.start)

        return Infix(OTHER, word, combine, symbol)

    def like(self, children: Children) -> Infix:
        negation, word = children
        return like_operator(word.value, negation is not None, negation or word)

    def between(self, children: Children) -> Infix:
        negation, word, symmetry = children
        symmetric = symmetry is not None and symmetry.type == "SYMMETRIC"
        return between_operator(negation is not None, symmetric, negation or word)

    def is_distinct(self, children: Children) -> Infix:
        word, negation = children
        symbol = "is not distinct from" if negation else "is distinct from"

        def combine(left: Any, right: Any) -> Operator:
            return Operator(symbol, left, right, position=word.start)

        return Infix(IS, word, combine)

    def at_time_zone(self, children: Children) -> Infix:
        word = children[0]

        def combine(left: Any, right: Any) -> Call:
            return Call(("timezone",), (right, left), position=word.start)

        return Infix(AT_TIME_ZONE, word, combine)

    # --- suffixes ---------------------------------------------------------------------------------

    def cast_suffix(self, children: Children) -> Suffix:
        sign, type_name = children
        return Suffix(CAST, sign, lambda each: Cast(each, type_name, position=sign.start), True)

    def collate_suffix(self, children: Children) -> Suffix:
        word, name = children
        collation = ".".join(parts(name))
        return Suffix(COLLATE, word, lambda each: Collate(each, collation, position=word.start))

    def is_suffix(self, children: Children) -> Suffix:
        word, negation, what = children
        negated = negation is not None
        return Suffix(IS, word, lambda each: Is(each, what.value, negated, position=word.start))

    def is_normalized(self, children: Children) -> Suffix:
        word, negation, form = children
        place = word.start

        def call(each: Any) -> Any:
            forms = () if form is None else (Word(form.value, position=form.start),)
            test = Call(("is_normalized",), (each, *forms), position=place)
            return test if negation is None else Operator("not", None, test, position=place)

        return Suffix(IS, word, call)

    def null_test(self, children: Children) -> Suffix:
        word = children[0]
        negated = word.value == "notnull"
        return Suffix(IS, word, lambda each: Is(each, "null", negated, position=word.start))

    def in_query(self, children: Children) -> Suffix:
        negation, word, query = children
        place, negated = negation or word, negation is not None
        return Suffix(
            MEMBERSHIP, place, lambda each: InQuery(each, query, negated, position=place.start)
        )

    def in_one(self, children: Children) -> Suffix:
        negation, word, item = children
        return _in_items(negation, word, (item,))

    def in_list(self, children: Children) -> Suffix:
        negation, word, row = children
        return _in_items(negation, word, row.items)

    def quantified(self, children: Children) -> Suffix:
        operator, quantifier, source = children
        every = quantifier.type == "ALL"
        if isinstance(operator, Terminal):
            terminal, symbol = operator, operator.value
            level = operator_level(symbol)
        else:
            terminal, level, symbol = operator.terminal, operator.level, operator.kind
            if symbol == "like":
                symbol = _like_symbol(operator)
        return Suffix(
            level,
            terminal,
            lambda each: Quantified(each, symbol, every, source, position=terminal.start),
        )

    # --- operands ---------------------------------------------------------------------------------

    def literal(self, children: Children) -> Any:
        return children[0].value

    parameter = run = literal

    def constant(self, children: Children) -> Constant:
        word = children[0]
        value = None if word.type == "NULL" else word.value == "true"
        return Constant(value, position=word.start)

    def column(self, children: Children) -> Name:
        return Name(parts(children[0]), position=children[0][0].start)

    def qualified_star(self, children: Children) -> Star:
        return Star(parts(children[0]), position=children[0][0].start)

    def row(self, children: Children) -> Row:
        return Row(tuple(children), position=leftmost(children[0]))

    def explicit_row(self, children: Children) -> Row:
        word, items = children
        return Row(items or (), explicit=True, position=word.start)

    def case(self, children: Children) -> Case:
        word, compared, *whens, otherwise = children
        return Case(compared, tuple(whens), otherwise, position=word.start)

    def when(self, children: Children) -> tuple[Expression, Expression]:
        condition, result = children
        return condition, result

    def exists(self, children: Children) -> Exists:
        return Exists(children[1], position=children[0].start)

    def array_query(self, children: Children) -> ArrayQuery:
        return ArrayQuery(children[1], position=children[0].start)

    def array(self, children: Children) -> ArrayItems:
        word, items = children
        assert isinstance(items, ArrayItems)
        return replace(items, position=word.start)

    def array_items(self, children: Children) -> ArrayItems:
        return ArrayItems(tuple(children), position=leftmost(children[0]) if children else 0)

    # --- subscripts and fields --------------------------------------------------------------------

    def subscript(self, children: Children) -> Subscript:
        return Subscript(_NOTHING, children[0], None, False)

    def slice(self, children: Children) -> Subscript:
        low, high = children
        return Subscript(_NOTHING, low, high, True)

    def field(self, children: Children) -> Field:
        return Field(_NOTHING, children[0].value, position=children[0].start)

    def subscripted_column(self, children: Children) -> Any:
        return indirect(self.column(children[:1]), children[1:])

    def subscripted_parameter(self, children: Children) -> Any:
        return indirect(children[0].value, children[1:])

    def subscripted(self, children: Children) -> Any:
        first, *rest = children[1:]
        if isinstance(first, Subscript):
            first = replace(first, grouped=True)
        return indirect(operand(children[0]), [first, *rest])


_NOTHING = Constant(None)  # placeholder until the operand is known


def indirect(base: Any, steps: list[Any]) -> Any:
    """Build `base[1].name[2:3]`, step by step."""
    for step in steps:
        base = replace(step, operand=base, position=base.position)
    return base


def _in_items(negation: Terminal | None, word: Terminal, items: tuple[Expression, ...]) -> Suffix:
    place, negated = negation or word, negation is not None
    return Suffix(
        MEMBERSHIP, place, lambda each: InList(each, items, negated, position=place.start)
    )


def _like_symbol(operator: Infix) -> str:
    made = operator.combine(_NOTHING, _NOTHING)
    assert isinstance(made, Like)
    kind = "similar to" if made.kind == "similar" else made.kind
    return f"not {kind}" if made.negated else kind
