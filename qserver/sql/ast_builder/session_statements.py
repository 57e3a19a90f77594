"""Builds EXPLAIN, SHOW, SET, RESET and transaction control."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from qserver.errors import InvalidParameterValue, SqlSyntaxError
from qserver.sql.ast import (
    Explain,
    Literal,
    SetConstraints,
    SetVariable,
    Show,
    TransactionControl,
)
from qserver.sql.ast_builder.expressions import Children, parts
from qserver.sql.terminals import Terminal
from qserver.values.interval_text import interval_from_text

_YES = frozenset({"on", "true", "1", "yes", ""})
_NO = frozenset({"off", "false", "0", "no"})


@dataclass(frozen=True, slots=True)
class OptionValue:
    """A value as text, with the indexes of its literals."""

    text: str
    literals: tuple[int, ...]
    is_default: bool = False


EXPLAIN_OPTIONS = frozenset(
    {
        *("analyze", "code", "format", "live"),
        *("verbose", "costs", "settings", "buffers", "wal", "timing", "summary"),
    }
)


def _check_format(text: str, name: Terminal) -> None:
    if text not in ("text", "json", "yaml", "xml"):
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
            return f"format {text}"
        if text not in _YES | _NO:
            raise SqlSyntaxError(f"{option} requires a Boolean value", position=name.start + 1)
        return option if text in _YES else f"{option} off"

    def option_value(self, children: Children) -> OptionValue:
        """Return a string without its quotes; anything else as written."""
        last: Terminal = children[-1]
        literal = last.value
        if not isinstance(literal, Literal):
            return OptionValue(str(literal), (), last.type == "DEFAULT")
        if last.type == "STRING":
            return OptionValue(str(last.source.literals[literal.index]), (literal.index,))
        text = last.source.text[children[0].start : last.end]
        return OptionValue(text, (literal.index,))

    def setting_name(self, children: Children) -> str:
        return ".".join(parts(children[0]))

    def setting_values(self, children: Children) -> tuple[OptionValue, ...]:
        return tuple(children)

    def zone_interval(self, children: Children) -> tuple[OptionValue, ...]:
        """Return hours east of Greenwich, as SET TIME ZONE also takes them."""
        word, value, fields = children
        text = str(value.source.literals[value.value.index])
        if fields is not None and fields[0] not in ("hour", "hour to minute"):
            raise SqlSyntaxError(
                "time zone interval must be HOUR or HOUR TO MINUTE", position=word.start + 1
            )
        offset = interval_from_text(text)
        hours = Decimal(offset.microseconds) / 3_600_000_000 + 24 * offset.days
        return (OptionValue(f"{hours:f}", (value.value.index,)),)

    def show(self, children: Children) -> Show:
        word, name = children
        return Show(name, position=word.start)

    def show_word(self, children: Children) -> Show:
        word, what = children
        return Show(_setting(what), position=word.start)

    def show_words(self, children: Children) -> Show:
        return Show(_setting_of_words(children[1:]), position=children[0].start)

    def set_variable(self, children: Children) -> SetVariable:
        word, scope, name, values = children
        return _set(word, scope, name, values)

    def set_time_zone(self, children: Children) -> SetVariable:
        word, scope, _, values = children
        is_default = len(values) == 1 and values[0].text.lower() == "local"
        return _set(word, scope, "timezone", () if is_default else values)

    def set_words(self, children: Children) -> SetVariable:
        word, scope, *words, value = children
        return _set(word, scope, _setting_of_words(words), (value,))

    def reset_variable(self, children: Children) -> SetVariable:
        word, name = children
        return SetVariable(_setting(name), None, position=word.start)

    def reset_words(self, children: Children) -> SetVariable:
        return SetVariable(_setting_of_words(children[1:]), None, position=children[0].start)

    def set_constraints(self, children: Children) -> SetConstraints:
        word, _, names, mode = children
        chosen = None if isinstance(names, Terminal) else names
        return SetConstraints(chosen, mode.type == "DEFERRED", position=word.start)

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


def _set(word: Terminal, scope: Terminal | None, name: str, values: Any) -> SetVariable:
    is_local = scope is not None and scope.value == "local"
    if not values or (len(values) == 1 and values[0].is_default):
        return SetVariable(name, None, (), is_local, position=word.start)
    for each in values:
        if each.is_default:
            raise SqlSyntaxError('syntax error at or near "default"', position=word.start + 1)
    literals = tuple([index for value in values for index in value.literals])
    texts = tuple([value.text for value in values])
    return SetVariable(name, texts, literals, is_local, position=word.start)


_OF_WORDS: Final = {
    ("authorization",): "session_authorization",
    ("names",): "client_encoding",
    ("role",): "role",
    ("schema",): "search_path",
    ("session", "authorization"): "session_authorization",
    ("transaction", "isolation", "level"): "transaction_isolation",
    ("xml", "option"): "xmloption",
}
"""Settings with a syntax of their own, by its words."""


def _setting_of_words(words: Sequence[Terminal]) -> str:
    named = _OF_WORDS.get(tuple([str(each.value) for each in words]))
    if named is None:
        last = words[-1]
        raise SqlSyntaxError(f'syntax error at or near "{last.value}"', position=last.start + 1)
    return named
