"""Builds the statements of sessions: PREPARE, DECLARE, FETCH, LOCK, VACUUM, GRANT, LISTEN …"""

from __future__ import annotations

from typing import Any, Final

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import (
    Close,
    Deallocate,
    Declare,
    Discard,
    Execute,
    Fetch,
    Grant,
    Listen,
    Lock,
    Maintain,
    Notify,
    Prepare,
)
from qserver.sql.ast_builder.expressions import Children, parts
from qserver.sql.terminals import Terminal

COUNT_MAX: Final = 2**31 - 1
_SCROLLS: Final = {(): None, ("scroll",): True, ("no", "scroll"): False}
_LOCK_MODES: Final = frozenset(
    {
        *("access share", "row share", "row exclusive", "share update exclusive", "share"),
        *("share row exclusive", "exclusive", "access exclusive"),
    }
)
_STEPS: Final = {
    "next": ("forward", 1),
    "prior": ("backward", 1),
    "first": ("absolute", 1),
    "last": ("absolute", -1),
}
"""Directions of FETCH that take no count."""


def _behind(word: Terminal) -> str:
    """Return the text behind a word, up to the end of the statement.

    Blanks stand for what is before it, so that errors have the same places in both texts.
    """
    source = word.source
    return " " * word.end + source.text[word.end : source.semicolon]


def _unexpected(word: Terminal) -> SqlSyntaxError:
    return SqlSyntaxError(f'syntax error at or near "{word.value}"', position=word.start + 1)


class Sessions:
    """Methods for the rules under "sessions"."""

    # --- prepared statements ---

    def prepare(self, children: Children) -> Prepare:
        word, name, types, behind, _ = children
        text, source = _behind(behind), word.source.text
        return Prepare(str(name.value), types or (), text, source, position=word.start)

    def prepared_types(self, children: Children) -> tuple[Any, ...]:
        return tuple(children)

    def execute(self, children: Children) -> Execute:
        word, name, arguments = children
        return Execute(str(name.value), arguments or (), position=word.start)

    def deallocate(self, children: Children) -> Deallocate:
        return Deallocate(_name_or_all(children[-1]), position=children[0].start)

    def discard(self, children: Children) -> Discard:
        word, what = children
        return Discard(
            "temp" if what.value == "temporary" else str(what.value), position=word.start
        )

    # --- cursors ---

    def declare(self, children: Children) -> Declare:
        word, name, *words, behind, query = children
        options = [str(each.value) for each in words if each.type == "CURSOR_OPTION"]
        holds = [str(each.value) for each in words if each.type == "HOLD"]
        said = tuple([each for each in options if each in ("no", "scroll")])
        if said not in _SCROLLS or len(set(options)) < len(options):
            raise _unexpected(words[len(options) - 1])
        return Declare(
            str(name.value),
            query,
            _behind(behind),
            word.source.text,
            "binary" in options,
            _SCROLLS[said],
            holds[:1] == ["with"],
            position=word.start,
        )

    def fetch_count(self, children: Children) -> tuple[int | None]:
        last: Terminal = children[-1]
        if last.type == "ALL":
            return (None,)
        number = last.source.literals[last.value.index]
        if type(number) is not int or number > COUNT_MAX:
            raise _unexpected_literal(last)
        sign = children[0]
        return (-number if sign is not None and sign.value == "-" else number,)

    def fetch_rows(self, children: Children) -> Fetch:
        word, step, count, name = children
        moves, at = word.value == "move", {"position": word.start}
        direction = "forward" if step is None else str(step.value)
        if direction in _STEPS:
            if count is not None:
                raise _unexpected(name)
            return Fetch(str(name.value), *_STEPS[direction], moves, **at)
        if direction in ("absolute", "relative") and count in (None, (None,)):
            raise _unexpected(name)
        (number,) = (1,) if count is None else count
        return Fetch(str(name.value), direction, number, moves, **at)

    def close_cursor(self, children: Children) -> Close:
        word, name = children
        return Close(_name_or_all(name), position=word.start)

    # --- care for tables ---

    def lock(self, children: Children) -> Lock:
        word, tables, mode, nowait = children
        chosen = "access exclusive" if mode is None else mode
        return Lock(tables, chosen, nowait is not None, position=word.start)

    def lock_mode(self, children: Children) -> str:
        mode = " ".join([str(each.value) for each in children[:-1]])
        if mode not in _LOCK_MODES:
            raise _unexpected(children[0])
        return mode

    def maintain(self, children: Children) -> Maintain:
        word, options, tables = children
        kind = "vacuum" if word.value == "vacuum" else "analyze"
        return Maintain(kind, tables or (), options, position=word.start)

    def maintain_options(self, children: Children) -> tuple[str, ...]:
        return tuple([str(getattr(each, "value", each)) for each in children])

    def maintain_option(self, children: Children) -> str:
        name, value = children
        return str(name.value) if value is None else f"{name.value} {value.text.lower()}"

    def maintained_tables(self, children: Children) -> tuple[Any, ...]:
        return tuple(children)

    def maintained_table(self, children: Children) -> tuple[tuple[str, ...], tuple[str, ...]]:
        name, columns = children
        return parts(name), columns or ()

    def reindex(self, children: Children) -> Maintain:
        word, options, kind, _, name = children
        what = str(kind.value)
        return Maintain("reindex", ((parts(name), ()),), options, what, position=word.start)

    def cluster(self, children: Children) -> Maintain:
        word, verbose, table, index = children
        tables = () if table is None else ((parts(table), ()),)
        options = () if verbose is None else ("verbose",)
        named = None if index is None else str(index.value)
        return Maintain("cluster", tables, options, index=named, position=word.start)

    def checkpoint(self, children: Children) -> Maintain:
        return Maintain("checkpoint", position=children[0].start)

    # --- rights ---

    def privilege(self, children: Children) -> tuple[str, tuple[str, ...]]:
        *words, columns = children
        named = [str(each.value) for each in words]
        if named[:3] in (["grant", "option", "for"], ["admin", "option", "for"]):
            del named[:3]
        return " ".join(named), columns or ()

    def roles(self, children: Children) -> tuple[str, ...]:
        return tuple([str(each.value) for each in children])

    def role(self, children: Children) -> Terminal:
        word: Terminal = children[0]
        return word

    def privileges(self, children: Children) -> tuple[Any, ...]:
        return tuple(children)

    def grant_kind(self, children: Children) -> str:
        """Return "table" and the like; "tables" for ALL TABLES IN SCHEMA."""
        words = [str(each.value) for each in children] or ["table"]
        return words[1] if words[0] == "all" else words[0]

    def grant(self, children: Children) -> Grant:
        word, privileges, kind, names, way, roles, *_ = children
        return _grant(word, way, privileges, kind, names, roles)

    def grant_role(self, children: Children) -> Grant:
        word, privileges, way, roles, *_ = children
        return _grant(word, way, privileges, "role", (), roles)

    # --- channels ---

    def listen(self, children: Children) -> Listen:
        word, channel = children
        if channel.type == "STAR" and word.value == "listen":
            raise _unexpected(channel)
        named = None if channel.type == "STAR" else str(channel.value)
        return Listen(named, word.value == "unlisten", position=word.start)

    def notify(self, children: Children) -> Notify:
        word, channel, payload = children
        text = "" if payload is None else str(payload.source.literals[payload.value.index])
        return Notify(str(channel.value), text, position=word.start)


def _name_or_all(name: Terminal) -> str | None:
    return None if name.type == "ALL" else str(name.value)


def _unexpected_literal(word: Terminal) -> SqlSyntaxError:
    text = word.source.text[word.start : word.end]
    return SqlSyntaxError(f'syntax error at or near "{text}"', position=word.start + 1)


def _grant(
    word: Terminal,
    way: Terminal,
    privileges: tuple[Any, ...],
    kind: str,
    names: tuple[tuple[str, ...], ...],
    roles: tuple[str, ...],
) -> Grant:
    revokes = word.value == "revoke"
    if (way.type == "FROM") is not revokes:
        raise _unexpected(way)
    return Grant(privileges, kind, names, roles, revokes, position=word.start)
