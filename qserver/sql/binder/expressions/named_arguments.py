"""Arguments of calls, also by name: `make_interval(days => 10)`, `silent => true`."""

from __future__ import annotations

from typing import Final

from qserver.errors import UndefinedFunction
from qserver.sql import ast
from qserver.sql.binder.expressions.operands import Operand
from qserver.sql.binder.names.scope import Scope
from qserver.sql.expressions import Constant
from qserver.values.jsonb import Jsonb
from qserver.values.types import BOOLEAN, DOUBLE, INTEGER, JSONB


def arguments_of(scope: Scope, node: ast.Call) -> list[Operand]:
    """Bind the arguments in order, named ones in their parameters' places."""
    named = [each for each in node.arguments if isinstance(each, ast.NamedArgument)]
    if not named:
        given_first = _named_sequence(node) or node.arguments[:1]
        return [scope.bind(argument) for argument in (*given_first, *node.arguments[1:])]
    parameters = PARAMETER_NAMES.get(node.name[-1], {})
    given: dict[str, Operand] = {}
    for name, argument in zip(parameters, node.arguments, strict=False):
        if not isinstance(argument, ast.NamedArgument):
            given[name] = scope.bind(argument)
    for each in named:
        if each.name not in parameters or each.name in given:
            raise _undefined(node, each.name)
        given[each.name] = scope.bind(each.value)
    operands: list[Operand] = []
    for name, default in parameters.items():
        operand = given.get(name, default)
        if operand is None:
            raise _undefined(node, named[0].name)
        operands.append(operand)
    return operands


def _undefined(node: ast.Call, name: str) -> UndefinedFunction:
    return UndefinedFunction(
        f"function {node.name[-1]}({name} => …) does not exist",
        hint="No function matches the given name and argument types. "
        "You might need to add explicit type casts.",
        position=node.position + 1,
    )


def _named_sequence(node: ast.Call) -> tuple[ast.Expression, ...]:
    """Return 's' of nextval('s'::regclass): its name alone, for which nobody reads the catalog."""
    if node.name[-1] not in ("nextval", "currval", "setval") or not node.arguments:
        return ()
    match node.arguments[0]:
        case ast.Cast(operand=ast.Literal() as text, type=ast.TypeName(name="regclass")):
            return (text,)
    return ()


_OF_PATHS: Final[dict[str, Constant | None]] = {
    "target": None,
    "path": None,
    "vars": Constant(Jsonb("{}"), JSONB),
    "silent": Constant(False, BOOLEAN),
}
PARAMETER_NAMES: Final[dict[str, dict[str, Constant | None]]] = {
    "make_interval": {
        **dict.fromkeys(
            ("years", "months", "weeks", "days", "hours", "mins"), Constant(0, INTEGER)
        ),
        "secs": Constant(0.0, DOUBLE),
    },
    "random_normal": {"mean": Constant(0.0, DOUBLE), "stddev": Constant(1.0, DOUBLE)},
    **{
        f"jsonb_path_{name}{suffix}": _OF_PATHS
        for name in ("exists", "match", "query", "query_array", "query_first")
        for suffix in ("", "_tz")
    },
}
"""The parameters and defaults of functions that are called with names in practice; None: the
parameter has no default."""
