"""Builds EXPLAIN, SHOW, SET, RESET and transaction control."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from qserver.errors import FeatureNotSupported, InvalidParameterValue, SqlSyntaxError
from qserver.sql.ast import Explain, Literal, SetVariable, Show, TransactionControl
from qserver.sql.ast_builder.expressions import Children, parts
from qserver.sql.terminals import Terminal

_YES = frozenset({"on", "true", "1", "yes", ""})
_NO = frozenset({"off", "false", "0", "no"})


@dataclass(frozen=True, slots=True)
class OptionValue:
    """A value as text, with the indexes of its literals."""

    text: str
    literals: tuple[int, ...]


EXPLAIN_OPTIONS = frozenset(
    {
        *("analyze", "code", "format", "live"),
        *("verbose", "costs", "settings", "buffers", "wal", "timing", "summary"),
    }
)
"""The options of the second row are accepted without effect: their details are never printed."""


def _check_format(text: str, name: Terminal) -> None:
    if text in ("xml", "json", "yaml"):
        raise FeatureNotSupported(
            f"EXPLAIN (FORMAT {text.upper()}) is not supported: the plan is a text",
            position=name.start + 1,
        )
    if text != "text":
        raise InvalidParameterValue(
            f'unrecognized value for EXPLAIN option "format": "{text}"', position=name.start + 1
        )


class SessionStatements:
    """Methods for the rules under "the rest"."""

    def explain(self, children: Children) -> Explain:
        word, *options, statement = children
        named = parts([option for option in options if option is not None])
        return Explain(statement, named, position=word.start)

    def explain_options(self, children: Children) -> Explain:
        word, *options, statement = children
        return Explain(statement, tuple(options), position=word.start)

    def explain_option(self, children: Children) -> str:
        name, value = children
        option, text = str(name.value), "" if value is None else value.text.lower()
        if option not in EXPLAIN_OPTIONS:
            raise SqlSyntaxError(f'unrecognized EXPLAIN option "{option}"', position=name.start + 1)
        if option == "format":
            _check_format(text, name)
            return "format text"
        if text not in _YES | _NO:
            raise SqlSyntaxError(f"{option} requires a Boolean value", position=name.start + 1)
        return option if text in _YES else f"{option} off"

    def option_value(self, children: Children) -> OptionValue:
        """Return a string without its quotes; anything else as written."""
        last: Terminal = children[-1]
        literal = last.value
        if not isinstance(literal, Literal):
            return OptionValue(str(literal), ())
        if last.type == "STRING":
            return OptionValue(str(last.source.literals[literal.index]), (literal.index,))
        text = last.source.text[children[0].start : last.end]
        return OptionValue(text, (literal.index,))

    def setting_name(self, children: Children) -> str:
        return ".".join(parts(children[0]))

    def setting_values(self, children: Children) -> OptionValue:
        text = ", ".join([value.text for value in children])
        return OptionValue(text, tuple([index for value in children for index in value.literals]))

    def show(self, children: Children) -> Show:
        word, name = children
        return Show(name, position=word.start)

    def show_word(self, children: Children) -> Show:
        word, what = children
        return Show(_setting(what), position=word.start)

    def set_variable(self, children: Children) -> SetVariable:
        word, _, name, value = children
        return SetVariable(name, value.text, value.literals, position=word.start)

    def set_time_zone(self, children: Children) -> SetVariable:
        word, _, _, value = children
        return SetVariable("timezone", value.text, value.literals, position=word.start)

    def reset_variable(self, children: Children) -> SetVariable:
        word, name = children
        return SetVariable(_setting(name), None, position=word.start)

    def transaction(self, children: Children) -> TransactionControl:
        word = children[0]
        kind = "set transaction" if word.value == "set" else word.value
        words = tuple([str(each.value) for each in children[1:] if isinstance(each, Terminal)])
        return TransactionControl(kind, words, position=word.start)


def _setting(name: Any) -> str:
    """Return the name of a setting, or ALL, or TIME for TIME ZONE."""
    if not isinstance(name, Terminal):
        return str(name)
    return "timezone" if name.type == "TIME" else str(name.value)
