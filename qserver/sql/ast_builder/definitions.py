"""CREATE INDEX, VIEW, SEQUENCE, TYPE and SCHEMA; DROP, TRUNCATE and COMMENT."""

from __future__ import annotations

from typing import Any

from qserver.sql.ast import (
    Collate,
    CommentOn,
    CommonTable,
    CreateEnum,
    CreateIndex,
    CreateSchema,
    CreateSequence,
    CreateView,
    Drop,
    Expression,
    IndexItem,
    Literal,
    Name,
    Operator,
    Query,
    Select,
    Star,
    TableRef,
    Target,
    Truncate,
    TypeName,
)
from qserver.sql.ast_builder.expressions import Children, Expressions, as_list, as_tuple, parts
from qserver.sql.ast_builder.places import leftmost, text_between, unexpected
from qserver.sql.terminals import Source, Terminal
from qserver.values.identifiers import quoted

Option = tuple[str, Expression | None]
_WITHOUT_NUMBER = frozenset({"restart", "cycle"})
_WITH_NO = frozenset({"minvalue", "maxvalue", "cycle"})


class Definitions:
    """Methods for the rules under "CREATE" and "DROP, TRUNCATE, ALTER, COMMENT"."""

    index_items = as_list
    sequence_options = enum_labels = as_tuple

    # --- CREATE INDEX -----------------------------------------------------------------------------

    def create_index(self, children: Children) -> CreateIndex:
        word, unique, _, (name, if_not_exists), table, method, items, *rest = children
        including, not_distinct, options, where = rest
        condition, text = where or (None, "")
        return CreateIndex(
            name,
            parts(table),
            tuple([_with_text(item, word.source) for item in items]),
            unique is not None,
            if_not_exists,
            condition,
            text,
            including or (),
            "btree" if method is None else method.value,
            bool(not_distinct),
            options or (),
            position=word.start,
        )

    def index_name(self, children: Children) -> tuple[str | None, bool]:
        name = children[-1]
        return None if name is None else name.value, len(children) > 1

    def where_text(self, children: Children) -> tuple[Expression, str]:
        word, condition = children
        return condition, text_between(word.end, word)

    def index_item(self, children: Children) -> IndexItem:
        (expression, text), collation, operator_class, direction, nulls_first = children
        place = leftmost(expression)
        if collation is not None:
            expression = Collate(expression, collation, position=place)
        return IndexItem(
            expression,
            direction is not None and direction.value == "desc",
            nulls_first,
            text,
            "" if operator_class is None else ".".join(parts(operator_class)),
            position=place,
        )

    def index_column(self, children: Children) -> tuple[Name, str]:
        name = children[0]
        text = name.source.text[name.start : name.end]
        return Name((name.value,), position=name.start), text

    def index_function(self, children: Children) -> tuple[Expression, str]:
        return children[0], ""  # the text is added later: a node does not know its source

    def index_expression(self, children: Children) -> tuple[Expression, str]:
        opening, expression, closing = children
        return expression, opening.source.text[opening.end : closing.start].strip()

    # --- CREATE VIEW ------------------------------------------------------------------------------

    def create_view(self, children: Children) -> CreateView:
        word, replace, temporary, recursive, name, columns, options, begin, query, check = children
        scope, end = check or ("", word.source.consumed)
        text = word.source.text[begin.end : end].strip()
        if recursive:
            query, text = _recursive_view(name, columns, query, text)
        return CreateView(
            parts(name),
            columns or (),
            query,
            text,
            replace is not None,
            temporary is not None,
            recursive is not None,
            options or (),
            scope,
            position=word.start,
        )

    def or_replace(self, children: Children) -> bool:
        return True

    def check_option(self, children: Children) -> tuple[str, int]:
        word, scope = children
        return "cascaded" if scope is None else scope.value, word.start

    # --- CREATE SEQUENCE, TYPE, SCHEMA ------------------------------------------------------------

    def create_sequence(self, children: Children) -> CreateSequence:
        word, temporary, if_not_exists, name, *options = children
        types = [value for key, value in options if key == "as"]
        return CreateSequence(
            parts(name),
            tuple([option for option in options if option[0] != "as"]),
            if_not_exists is not None,
            temporary is not None,
            types[0] if types else None,
            position=word.start,
        )

    def sequence_option(self, children: Children) -> Option:
        word, sign, number = children
        literal = number.value
        assert isinstance(literal, Literal)
        value: Expression = literal
        if sign is not None:
            value = Operator(sign.value, None, literal, position=sign.start)
        return word.value, value

    def sequence_word(self, children: Children) -> Option:
        word = children[0]
        if word.value not in _WITHOUT_NUMBER:
            raise unexpected(word)
        return word.value, None

    def sequence_no(self, children: Children) -> Option:
        _, word = children
        if word.value not in _WITH_NO:
            raise unexpected(word)
        return f"no {word.value}", None

    def sequence_owner(self, children: Children) -> Option:
        word, name = children
        owner = parts(name)
        return "owned by", Name(() if owner == ("none",) else owner, position=word.start)

    def sequence_type(self, children: Children) -> tuple[str, TypeName]:
        return "as", children[1]

    def sequence_name(self, children: Children) -> Option:
        word, second, name = children
        if second.value != "name":
            raise unexpected(second)
        return "sequence name", Name(parts(name), position=word.start)

    def create_enum(self, children: Children) -> CreateEnum:
        word, name, labels = children
        return CreateEnum(parts(name), labels or (), position=word.start)

    def create_schema(self, children: Children) -> CreateSchema:
        word, if_not_exists, name, _ = children  # there is one role
        return CreateSchema(name.value, if_not_exists is not None, position=word.start)

    def role_schema(self, children: Children) -> CreateSchema:
        word, if_not_exists, role = children
        return CreateSchema(role.value, if_not_exists is not None, position=word.start)

    # --- DROP, TRUNCATE, COMMENT ------------------------------------------------------------------

    def drop(self, children: Children) -> Drop:
        word, kind, if_exists, names, behavior = children
        return Drop(kind, names, if_exists is not None, is_cascade(behavior), position=word.start)

    def drop_kind(self, children: Children) -> str:
        kind: str = children[0].value
        return kind

    alter_kind = comment_kind = drop_kind

    relations = Expressions.object_names

    def truncate(self, children: Children) -> Truncate:
        word, names, identity, behavior = children
        restart = identity is not None and identity.type == "RESTART"
        return Truncate(names, restart, is_cascade(behavior), position=word.start)

    def comment(self, children: Children) -> CommentOn:
        word, kind, name, text = children
        return CommentOn(kind, parts(name), _comment_text(text), position=word.start)

    def comment_constraint(self, children: Children) -> CommentOn:
        word, _, constraint, table, text = children
        name = (*parts(table), constraint.value)
        return CommentOn("constraint", name, _comment_text(text), position=word.start)


def is_cascade(behavior: Terminal | None) -> bool:
    return behavior is not None and behavior.value == "cascade"


def _comment_text(text: Any) -> Literal | None:
    return text if isinstance(text, Literal) else None


def _with_text(item: IndexItem, source: Source) -> IndexItem:
    """Add the text of an item that is a call: from its first terminal to its last parenthesis."""
    if item.text:
        return item
    depth = 0
    end = item.position
    for terminal in source.terminals:
        if terminal.start >= item.position:
            depth += (terminal.type == "LPAR") - (terminal.type == "RPAR")
            end = terminal.end
            if terminal.type == "RPAR" and depth <= 0:
                break
    return IndexItem(
        item.expression,
        item.descending,
        item.nulls_first,
        source.text[item.position : end],
        item.operator_class,
        position=item.position,
    )


def _recursive_view(
    parts_of_name: list[Terminal], columns: tuple[str, ...] | None, query: Query, text: str
) -> tuple[Query, str]:
    """Rewrite CREATE RECURSIVE VIEW v (a) AS q to AS WITH RECURSIVE v (a) AS (q) SELECT …"""
    if not columns:
        raise unexpected(parts_of_name[-1])
    place = query.position
    view = parts_of_name[-1].value
    listed = ", ".join([quoted(column) for column in columns])
    table = CommonTable(view, columns, query, position=place)
    body = Select(
        (Target(Star(position=place), position=place),),
        (TableRef((view,), position=place),),
        position=place,
    )
    outer = Query(body, common_tables=(table,), recursive=True, position=place)
    name = quoted(view)
    return outer, f"WITH RECURSIVE {name} ({listed}) AS ({text}) SELECT * FROM {name}"
