"""Which operator takes which operands, as PostgreSQL has it."""

from __future__ import annotations

import pytest

from qserver.errors import SqlSyntaxError
from qserver.sql import ast
from qserver.sql.parser import parse_expression


def grouped(node: object) -> str:
    """An expression with all its parentheses."""
    match node:
        case ast.Name(parts=parts):
            return ".".join(parts)
        case ast.Literal() | ast.Constant():
            return "1"
        case ast.Operator(symbol=symbol, left=None, right=right):
            return f"({symbol} {grouped(right)})"
        case ast.Operator(symbol=symbol, left=left, right=right):
            return f"({grouped(left)} {symbol} {grouped(right)})"
        case ast.Is(operand=operand, what=what, negated=negated):
            return f"({grouped(operand)} is {'not ' * negated}{what})"
        case ast.Like(kind=kind, operand=operand, pattern=pattern, escape=escape):
            tail = f" escape {grouped(escape)}" if escape else ""
            return f"({grouped(operand)} {kind} {grouped(pattern)}{tail})"
        case ast.Between(operand=operand, low=low, high=high):
            return f"({grouped(operand)} between {grouped(low)} and {grouped(high)})"
        case ast.InList(operand=operand, items=items):
            return f"({grouped(operand)} in {', '.join(map(grouped, items))})"
        case ast.Quantified(operand=operand, symbol=symbol, source=source):
            return f"({grouped(operand)} {symbol} any {grouped(source)})"
        case ast.Cast(operand=operand, type=type_name):
            return f"{grouped(operand)}::{type_name.name}"
        case ast.Collate(operand=operand):
            return f"({grouped(operand)} collate)"
        case ast.Call(name=("timezone",), arguments=(zone, value)):
            return f"({grouped(value)} at {grouped(zone)})"
    raise AssertionError(node)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a or b and c", "(a or (b and c))"),
        ("a and b or c", "((a and b) or c)"),
        ("not a and b", "((not a) and b)"),
        ("not a = b", "(not (a = b))"),
        ("not a is null", "(not (a is null))"),
        ("not not a", "(not (not a))"),
        ("a = not b and c", "((a = (not b)) and c)"),
        ("a = not b = c", "(a = (not (b = c)))"),
        ("a = b is null", "((a = b) is null)"),
        ("a is null = b", "((a is null) = b)"),
        ("a is null is not null", "((a is null) is not null)"),
        ("a is distinct from b = c", "(a is distinct from (b = c))"),
        ("a = b in (c)", "(a = (b in c))"),
        ("a in (b) = c", "((a in b) = c)"),
        ("a < b like c", "(a < (b like c))"),
        ("a like b || c escape d", "(a like (b || c) escape d)"),
        ("a like not b escape c", "(a like (not b) escape c)"),
        ("a between b and c and d", "((a between b and c) and d)"),
        ("a between b and c = d", "((a between b and c) = d)"),
        ("a between b = c and d", "(a between (b = c) and d)"),
        ("a between b and c + d or e", "((a between b and (c + d)) or e)"),
        ("not a between b and c", "(not (a between b and c))"),
        ("a || b + c", "(a || (b + c))"),
        ("a || b || c", "((a || b) || c)"),
        ("a || b = c", "((a || b) = c)"),
        ("a -> b ->> c = d", "(((a -> b) ->> c) = d)"),
        ("a + b - c", "((a + b) - c)"),
        ("a + b * c % d", "(a + ((b * c) % d))"),
        ("a ^ b ^ c", "((a ^ b) ^ c)"),
        ("a * b ^ c", "(a * (b ^ c))"),
        ("- a ^ b", "((- a) ^ b)"),
        ("- a::int", "(- a::int)"),
        ("a::int::text", "a::int::text"),
        ("a + b::int", "(a + b::int)"),
        ("a - - - b", "(a - (- (- b)))"),
        ("@ a + b", "(@ (a + b))"),
        ("@ a || b", "((@ a) || b)"),
        ("a = @ b", "(a = (@ b))"),
        ("a at time zone b + c", "((a at b) + c)"),
        ("a ^ b at time zone c", "(a ^ (b at c))"),
        ("a at time zone b collate d", "(a at (b collate))"),
        ("- a collate c", "((- a) collate)"),
        ("a + b = any (c)", "((a + b) = any c)"),
        ("a operator(*) b + c", "(a * (b + c))"),
        ("a + b operator(*) c", "((a + b) * c)"),
        ("a <> b", "(a <> b)"),
        ("a != b", "(a <> b)"),
        ("(a or b) and c", "((a or b) and c)"),
        ("a - (b - c)", "(a - (b - c))"),
    ],
)
def test_an_expression_is_grouped_as_in_postgresql(text: str, expected: str) -> None:
    assert grouped(parse_expression(text).expression) == expected


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a < b < c", 7),
        ("a = b = c", 7),
        ("a = b <> c", 7),
        ("a like b like c", 10),
        ("a between b and c between d and e", 19),
        ("a in (b) in (c) like d like e", 24),
        ("a is distinct from b is null", 22),
        ("a between b like c and d", 13),
        ("a between b or c and d", 13),
        ("a between not b and c", 11),
        ("a between b is null and c", 13),
        ("a escape b", 3),
        ("a between b", 12),
        ("a between b and", 16),
        ("a overlaps b", 3),
        ("not", 4),
        ("a b", 3),
        ("a +", 4),
        ("= a", 1),
    ],
)
def test_what_postgresql_does_not_group_is_refused_where_it_stops(text: str, position: int) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_expression(text)
    assert caught.value.position == position


def depth(node: object) -> int:
    if not isinstance(node, ast.Operator):
        return 1
    return 1 + max(depth(node.left), depth(node.right))


@pytest.mark.parametrize("symbol", ["and", "or"])
def test_long_chains_of_conditions_are_shallow_and_in_order(symbol: str) -> None:
    names = [f"c{number}" for number in range(1000)]
    tree = parse_expression(f" {symbol} ".join(names)).expression
    assert depth(tree) == 11
    assert grouped(tree).replace("(", "").replace(")", "").split(f" {symbol} ") == names


def test_four_conditions_are_two_and_two() -> None:
    tree = parse_expression("a and b and c and d").expression
    assert grouped(tree) == "((a and b) and (c and d))"
