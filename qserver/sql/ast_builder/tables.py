"""Builds CREATE TABLE: columns and constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from qserver.errors import FeatureNotSupported, SqlSyntaxError
from qserver.sql.ast import (
    ColumnDefinition,
    Constraint,
    CreateTable,
    ForeignKey,
    TableLike,
)
from qserver.sql.ast_builder.expressions import Children, as_list, parts
from qserver.sql.ast_builder.places import text_between, unexpected
from qserver.sql.ast_builder.precedence import operand

TableOptions = tuple[tuple[str, str], ...]
# Kinds that PostgreSQL can check at the end of a transaction.
_DEFERRABLE = frozenset({"primary key", "unique", "foreign key"})
_DEFERS = frozenset({"deferrable", "initially deferred"})
_EXCLUSIVE = {
    ("deferrable", "not deferrable"): "DEFERRABLE/NOT DEFERRABLE",
    ("initially immediate", "initially deferred"): "INITIALLY IMMEDIATE/DEFERRED",
}


class Tables:
    """Methods for the rules of CREATE TABLE and CREATE TABLE AS."""

    table_elements = as_list

    def create_table(self, children: Children) -> CreateTable:
        word, temporary, if_not_exists, name, elements, *options = children
        columns: list[ColumnDefinition] = []
        constraints: list[Constraint] = []
        likes: list[TableLike] = []
        for element in elements or ():
            if isinstance(element, ColumnDefinition):
                columns.append(element)
            elif isinstance(element, Constraint):
                constraints.append(element)
            else:
                likes.append(replace(element, before=len(columns)))
        return CreateTable(
            parts(name),
            tuple(columns),
            tuple(constraints),
            if_not_exists is not None,
            temporary is not None and temporary.type == "TEMPORARY",
            likes=tuple(likes),
            options=_together(options),
            position=word.start,
        )

    def create_table_as(self, children: Children) -> CreateTable:
        word, temporary, if_not_exists, name, columns, *options, _, query, with_data = children
        return CreateTable(
            parts(name),
            (),
            (),
            if_not_exists is not None,
            temporary is not None and temporary.type == "TEMPORARY",
            query,
            columns or (),
            with_data is not False,
            options=_together(options),
            position=word.start,
        )

    def with_data(self, children: Children) -> bool:
        _, negation = children
        return negation is None

    def if_not_exists(self, children: Children) -> bool:
        return True

    if_exists = if_not_exists

    def storage_options(self, children: Children) -> TableOptions:
        return tuple(children[1:])

    def storage_option(self, children: Children) -> tuple[str, str]:
        name, part, value = children
        shown = name.value if part is None else f"{name.value}.{part.value}"
        return shown, "" if value is None else value.text

    def on_commit(self, children: Children) -> TableOptions:
        words = [word.value for word in children[1:]]
        return (("on commit", " ".join(words)),)

    def table_like(self, children: Children) -> TableLike:
        word, name, *options = children
        if word.value != "like":
            raise unexpected(word)
        return TableLike(parts(name), tuple(options), position=word.start)

    def like_option(self, children: Children) -> str:
        return " ".join(parts(children))

    # --- columns ----------------------------------------------------------------------------------

    def column_definition(self, children: Children) -> ColumnDefinition:
        name, type_name, *rest = children
        constraints: list[Constraint] = []
        collation: str | None = None
        for each in rest:
            if isinstance(each, Constraint):
                constraints.append(each)
            elif isinstance(each, Attribute):
                _attach(each, constraints)
            else:
                collation = each
        return ColumnDefinition(
            name.value, type_name, tuple(constraints), collation, position=name.start
        )

    def collate(self, children: Children) -> str:
        return ".".join(parts(children[1]))

    def column_constraint(self, children: Children) -> Constraint:
        name, constraint = children
        return _named(constraint, name)

    def not_null(self, children: Children) -> Constraint:
        return Constraint("not null", position=children[0].start)

    def null(self, children: Children) -> Constraint:
        return Constraint("null", position=children[0].start)

    def unique(self, children: Children) -> Constraint:
        word, not_distinct = children
        return Constraint("unique", nulls_not_distinct=bool(not_distinct), position=word.start)

    def primary_key(self, children: Children) -> Constraint:
        return Constraint("primary key", position=children[0].start)

    def check(self, children: Children) -> Constraint:
        word, opening, condition, closing, no, _ = children
        text = word.source.text[opening.end : closing.start].strip()
        return Constraint(
            "check",
            expression=condition,
            text=text,
            attributes=() if no is None else ("no inherit",),
            position=word.start,
        )

    def default_value(self, children: Children) -> Constraint:
        word, value = children
        text = text_between(word.end, word)
        return Constraint("default", expression=operand(value), text=text, position=word.start)

    def generated(self, children: Children) -> Constraint:
        word, _, _, opening, value, closing, _ = children
        text = word.source.text[opening.end : closing.start].strip()
        return Constraint("generated", expression=value, text=text, position=word.start)

    def identity(self, children: Children) -> Constraint:
        word, when, options = children
        kind = "identity always" if when.type == "ALWAYS" else "identity by default"
        return Constraint(kind, options=options or (), position=word.start)

    def nulls_distinct(self, children: Children) -> bool:
        return children[1] is not None

    # --- constraints of a table -------------------------------------------------------------------

    def table_constraint(self, children: Children) -> Constraint:
        name, constraint, *attributes = children
        made = [_named(constraint, name)]
        for attribute in attributes:
            _attach(attribute, made, of_table=True)
        return made[0]

    def unique_columns(self, children: Children) -> Constraint:
        word, not_distinct, columns, _ = children
        return Constraint(
            "unique",
            columns=columns,
            nulls_not_distinct=bool(not_distinct),
            position=word.start,
        )

    def primary_key_columns(self, children: Children) -> Constraint:
        word, columns, _ = children
        return Constraint("primary key", columns=columns, position=word.start)

    def including(self, children: Children) -> tuple[str, ...]:
        columns: tuple[str, ...] = children[0]
        return columns

    def constraint_attribute(self, children: Children) -> Attribute:
        words = [word for word in children if word is not None]
        return Attribute(" ".join(parts(words)), words[0].start)

    # --- foreign keys -----------------------------------------------------------------------------

    def references(self, children: Children) -> Constraint:
        word, table, referenced, match, *actions = children
        fields: dict[str, Any] = {}
        for event, action, columns in actions:
            if event in fields:
                raise SqlSyntaxError(
                    f"{event.replace('_', ' ').upper()} is specified twice", position=word.start + 1
                )
            fields[event] = action
            if event == "on_delete":
                fields["on_delete_columns"] = columns
            elif columns:
                raise FeatureNotSupported(
                    f"a column list with {action.upper()} is only supported for ON DELETE actions",
                    position=word.start + 1,
                )
        key = ForeignKey(
            (),
            parts(table),
            referenced or (),
            match="simple" if match is None else match.value,
            position=word.start,
            **fields,
        )
        return Constraint("foreign key", foreign_key=key, position=word.start)

    def foreign_key(self, children: Children) -> Constraint:
        word, columns, constraint = children
        assert isinstance(constraint, Constraint) and constraint.foreign_key is not None
        key = replace(constraint.foreign_key, columns=columns)
        return replace(constraint, columns=columns, foreign_key=key, position=word.start)

    def on_delete(self, children: Children) -> tuple[str, str, tuple[str, ...]]:
        return ("on_delete", *children[0])

    def on_update(self, children: Children) -> tuple[str, str, tuple[str, ...]]:
        return ("on_update", *children[0])

    def reference_action(self, children: Children) -> tuple[str, tuple[str, ...]]:
        word = children[0]
        match word.type:
            case "ACTION":
                return "no action", ()
            case "BEHAVIOR":
                return word.value, ()
            case _:
                return f"set {word.value}", children[1] or ()


class Attribute(NamedTuple):
    """DEFERRABLE and similar, until its constraint is known."""

    words: str
    start: int


def _attach(attribute: Attribute, constraints: list[Constraint], *, of_table: bool = False) -> None:
    """Add an attribute to the last constraint, which PostgreSQL refuses in its own words."""
    last = constraints[-1] if constraints else None
    words = attribute.words
    fits = of_table or words == "not valid" or (last is not None and last.kind in _DEFERRABLE)
    if last is None or not fits:
        raise SqlSyntaxError(f"misplaced {words.upper()} clause", position=attribute.start + 1)
    if last.kind not in _DEFERRABLE and words in _DEFERS:
        what = f"{last.kind.upper()} constraints cannot be marked DEFERRABLE"
        raise FeatureNotSupported(what, position=attribute.start + 1)
    _refuse_conflict(attribute, last.attributes, of_table)
    together = (*last.attributes, words)
    key = last.foreign_key
    if key is not None:
        key = replace(key, deferrable=not _DEFERS.isdisjoint(together))
    constraints[-1] = replace(last, attributes=together, foreign_key=key)


def _refuse_conflict(attribute: Attribute, before: tuple[str, ...], of_table: bool) -> None:
    wrong = None
    for pair, name in _EXCLUSIVE.items():
        others = [each for each in before if each in pair]
        if attribute.words not in pair or not others:
            continue
        if not of_table:
            wrong = f"multiple {name} clauses not allowed"
        elif attribute.words not in others:
            wrong = "conflicting constraint properties"
    if {*before, attribute.words} >= {"not deferrable", "initially deferred"}:
        wrong = wrong or "constraint declared INITIALLY DEFERRED must be DEFERRABLE"
    if wrong is not None:
        raise SqlSyntaxError(wrong, position=attribute.start + 1)


def _named(constraint: Constraint, name: Any) -> Constraint:
    return constraint if name is None else replace(constraint, name=name.value)


def _together(options: Sequence[TableOptions]) -> TableOptions:
    return tuple([each for group in options for each in group])
