"""The parser: from text to AST.

    text ─ lexer ─► tokens ─ terminals ─► terminals ─ Lark, grammar.lark ─► rules ─ builder ─► AST

Lark's LALR(1) machine reads the terminals one by one and calls the builder for each completed rule,
without an intermediate tree or recursion. It is a hundred times slower than `parameterize`, so it
should see a fingerprint only once.

Lark's tables take seconds to generate. They are cached beside the bytecode of this file, because
they too depend on the source alone; anyone who can write there can change the program anyway. If
the place is not writable, each process generates them. All statements share the tables and the
builder: neither has state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from lark import Lark
from lark.exceptions import UnexpectedToken
from lark.lexer import Lexer

from qserver.errors import FeatureNotSupported, QserverError, SqlSyntaxError
from qserver.lexing.runs import may_have_runs
from qserver.limits import SYNTAX_DEPTH_MAX
from qserver.sql.administration import read_administration
from qserver.sql.ast import PLANNED, Expression, Statement
from qserver.sql.ast_builder import Builder
from qserver.sql.ast_builder.places import unexpected_next
from qserver.sql.ast_builder.select_into import without_into
from qserver.sql.depth import check_depth
from qserver.sql.step_budget import StepBudget
from qserver.sql.terminals import Source, Terminal

# A terminal creates at most four nodes: SELECT in parentheses is ScalarQuery, Query, Select,
# Target.
_SAFE_LENGTH = SYNTAX_DEPTH_MAX // 4


@dataclass(frozen=True, slots=True)
class Parsed:
    """A statement, and its literals and kinds as `parameterize` returns them for the same text.

    `parameters` are in order of first appearance; ints stand for `$1` and `?`.
    """

    statement: Statement
    literals: list[Any]
    kinds: str
    parameters: tuple[int | str, ...]
    runs: bool = False
    """Whether its AST has runs."""


@dataclass(frozen=True, slots=True)
class ParsedExpression:
    expression: Expression
    literals: list[Any]
    kinds: str
    parameters: tuple[int | str, ...]


def parse(
    sql: str, *, repeat: bool = True, runs: bool = False, budget: StepBudget | None = None
) -> Parsed:
    """Parse a text of one statement, semicolon allowed. `repeat` is as in `parameterize`.

    With `runs`, long lists in a statement that is planned are runs, unless there is an error: its
    words and its position do not depend on them.
    """
    if runs and may_have_runs(sql):
        with suppress(QserverError):
            parsed = _parsed(Source(sql, repeat=repeat, runs=True, budget=budget))
            if not parsed.runs or isinstance(parsed.statement, PLANNED):
                return parsed
    return _parsed(Source(sql, repeat=repeat, budget=budget))


def _parsed(source: Source) -> Parsed:
    if not source.terminals:
        raise SqlSyntaxError("there is no statement", position=1)
    administration = read_administration(source)
    statement = administration or without_into(_run(source, "start"), source)
    if source.second is not None:
        raise SqlSyntaxError("there is more than one statement", position=source.second + 1)
    parameters = tuple(source.parameters)
    return Parsed(statement, source.literals, source.kinds, parameters, source.runs)


def parse_expression(sql: str) -> ParsedExpression:
    """Parse a lone expression: the stored text of a DEFAULT or CHECK."""
    source = Source(sql, repeat=False)
    expression = _run(source, "expression_alone")
    if source.semicolon is not None:
        raise SqlSyntaxError('syntax error at or near ";"', position=source.semicolon + 1)
    return ParsedExpression(expression, source.literals, source.kinds, tuple(source.parameters))


def _run(source: Source, start: str) -> Any:
    try:
        tree: Any = _lark().parse(source, start)
    except UnexpectedToken:
        raise (_refusal(source) if start == "start" else unexpected_next(source)) from None
    if len(source.terminals) > _SAFE_LENGTH:
        check_depth(tree)
    return tree


# --- Lark ----------------------------------------------------------------------------------------


class _Feed(Lexer):
    """Hands Lark the terminals of a `Source`."""

    __future_interface__ = 2

    def __init__(self, lexer_conf: object) -> None:
        pass

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
        source: Source = lexer_state.text
        return source.feed()


@cache
def _lark() -> Lark:
    tables = Path(cache_from_source(__file__) + ".tables")
    with suppress(OSError):  # the folder is missing where Python writes no bytecode
        tables.parent.mkdir(parents=True, exist_ok=True)
    lark = Lark(
        grammar_text(),
        parser="lalr",
        lexer=_Feed,
        start=["start", "expression_alone"],
        transformer=Builder(),
        cache=str(tables),
    )
    _share_actions(lark.parser.parser._parse_table.states.values())
    return lark


def _share_actions(states: Iterable[dict[str, tuple[Any, Any]]]) -> None:
    """Let equal entries of the tables be one object: of 50,000 entries, few differ."""
    known: dict[tuple[Any, Any], tuple[Any, Any]] = {}
    for actions in states:
        for name, action in actions.items():
            kind, target = action  # the next state, or a rule, which exists once
            number = target if isinstance(target, int) else id(target)
            actions[name] = known.setdefault((kind, number), action)


def load_grammar() -> None:
    """Make the tables of the grammar, or read those of an earlier start: the first takes a second.

    Without this the first statement would do it, on the event loop.
    """
    _lark()


def grammar_text() -> str:
    """Return the grammar with terminals for Lark: a word in capitals spells itself."""
    text = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    rules = re.sub(r"//.*", "", text)
    words = sorted(set(re.findall(r"\b[A-Z][A-Z_]+\b", rules)) - {"EQUAL", "STAR"})
    signs = ['EQUAL: "="', 'STAR: "*"']
    return "\n".join([text, *signs, *(f'{word}: "{word}"' for word in words), ""])


# --- errors --------------------------------------------------------------------------------------

_UNSUPPORTED = frozenset(
    {
        *("call", "copy", "do", "import", "load", "refresh"),
    }
)
_UNSUPPORTED_THINGS = frozenset(
    {
        *("access", "aggregate", "cast", "collation", "conversion", "database", "default"),
        *("domain", "event", "foreign", "function", "language", "large"),
        *("materialized", "operator", "policy", "procedure", "publication", "role", "routine"),
        *("rule", "server", "statistics", "subscription", "system", "tablespace", "text"),
        *("transform", "trigger", "user"),
    }
)

_UNSUPPORTED_CLAUSES = frozenset(
    {
        *("attach", "cluster", "detach", "disable", "enable", "exclude", "force", "inherit"),
        *("inherits", "of", "partition", "replica", "tablespace"),
    }
)
_EXPECTED = re.compile(r"\bexception\s+when\s+(duplicate_[a-z]+)", re.IGNORECASE)
_IN_FRONT = frozenset({"or", "replace", "temp", "temporary", "unique", "on", "constraint"})


def _refusal(source: Source) -> QserverError:
    words = [str(terminal.value) for terminal in source.terminals[:5]]
    if words and (words[0] in _UNSUPPORTED or words[:2] == ["prepare", "transaction"]):
        place = source.terminals[0].start + 1
        what = " ".join(words[: 1 + (words[0] in ("prepare", "security"))]).upper()
        hint = _instead_of_do(source.text) if what == "DO" else None
        return FeatureNotSupported(f"{what} is not supported", hint=hint, position=place)
    if words[:2] == ["create", "type"] and all(each.type != "ENUM" for each in source.terminals):
        return FeatureNotSupported(
            "CREATE TYPE is not supported for other types than enums",
            position=source.terminals[0].start + 1,
        )
    if words and words[0] in ("create", "alter", "drop", "comment"):
        for at, word in enumerate(words[1:], 1):
            if word in _UNSUPPORTED_THINGS:
                name = f"{words[0]} {word}".replace("materialized", "materialized view").upper()
                place = source.terminals[at].start + 1
                return FeatureNotSupported(f"{name} is not supported", position=place)
            if word not in _IN_FRONT:
                break
    if words and words[0] in ("create", "alter"):
        clause = _unsupported_clause(source)
        if clause is not None:
            word = str(clause.value).upper()
            return FeatureNotSupported(f"{word} is not supported here", position=clause.start + 1)
    return unexpected_next(source)


def _instead_of_do(text: str) -> str:
    found = _EXPECTED.search(text)
    if found is None:
        return "There is no procedural language. Send the statements in the block one by one."
    error = found[1].lower()
    look = " In a transaction look in pg_type first." if error == "duplicate_object" else ""
    return f"Send the statement in the block alone, and go on after the error {error}.{look}"


def _unsupported_clause(source: Source) -> Terminal | None:
    """Return the word of a known but unsupported clause at which the grammar stopped."""
    stopped = source.lookahead
    at = 0 if stopped is None else source.terminals.index(stopped)
    if at < 2:
        return None
    words = [str(terminal.value) for terminal in source.terminals[: at + 2]]
    if words[at - 1] == "exclude":
        return source.terminals[at - 1]
    if words[1] == "schema" and words[at] == "create":
        return stopped
    if words[at:] == ["using", "index"] or words[at] in _UNSUPPORTED_CLAUSES:
        return stopped
    return None
