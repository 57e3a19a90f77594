"""ALTER."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qserver.errors import SqlSyntaxError
from qserver.sql.ast import AlterAction, AlterTable, Constraint
from qserver.sql.ast_builder.definitions import Definitions, Option, is_cascade
from qserver.sql.ast_builder.expressions import Children, parts
from qserver.sql.ast_builder.places import text_between, unexpected


class Alterations:
    """Methods for the rules of ALTER."""

    def alter(self, children: Children) -> AlterTable:
        word, what, if_exists, name, *actions = children
        if isinstance(actions[0], tuple):  # options of a sequence
            actions = [AlterAction("options", options=tuple(actions), position=name[0].start)]
        return AlterTable(
            parts(name), tuple(actions), if_exists is not None, what, position=word.start
        )

    # --- columns ----------------------------------------------------------------------------------

    def add_column(self, children: Children) -> AlterAction:
        word, if_not_exists, column = children
        return AlterAction(
            "add column",
            column.name,
            column=column,
            if_exists=if_not_exists is not None,
            position=word.start,
        )

    def drop_column(self, children: Children) -> AlterAction:
        return _drop("drop column", children)

    def alter_column(self, children: Children) -> AlterAction:
        word, name, change = children
        assert isinstance(change, AlterAction)
        if name.type == "NUMBER" and change.kind != "nothing":
            raise unexpected(name)  # only ALTER INDEX … ALTER COLUMN 1 SET STATISTICS
        return replace(change, name=str(name.value), position=word.start)

    def set_default(self, children: Children) -> AlterAction:
        _, word, value = children
        return AlterAction("set default", expression=value, text=text_between(word.end, word))

    def drop_default(self, children: Children) -> AlterAction:
        return AlterAction("drop default")

    def set_not_null(self, children: Children) -> AlterAction:
        return AlterAction("set not null")

    def drop_not_null(self, children: Children) -> AlterAction:
        return AlterAction("drop not null")

    def no_effect(self, children: Children) -> AlterAction:
        """Build an action that tunes PostgreSQL's storage and has no counterpart here."""
        return AlterAction("nothing", position=children[0].start)

    def cluster_on(self, children: Children) -> AlterAction:
        return AlterAction("cluster on", children[-1].value, position=children[0].start)

    def replica_index(self, children: Children) -> AlterAction:
        return AlterAction("replica index", children[-1].value, position=children[0].start)

    def replica_identity(self, children: Children) -> AlterAction:
        word = children[-1]
        if word.value not in ("default", "full", "nothing"):
            raise SqlSyntaxError(f'syntax error at or near "{word.value}"', position=word.start + 1)
        return AlterAction("nothing", position=children[0].start)

    def set_options(self, children: Children) -> AlterAction:
        word, *options = children
        return AlterAction("set options", words=tuple(options), position=word.start)

    def reset_options(self, children: Children) -> AlterAction:
        word, *options = children
        if any(value for _, value in options):
            raise SqlSyntaxError(
                "RESET must not include values for parameters", position=word.start + 1
            )
        return AlterAction("reset options", words=tuple(options), position=word.start)

    def set_place(self, children: Children) -> AlterAction:
        return AlterAction("set place", children[-1].value, position=children[0].start)

    def switch(self, children: Children) -> AlterAction:
        """Build ENABLE TRIGGER and the like; ALL and USER are in `new_name`."""
        *words, target = children
        text = " ".join(str(each.value) for each in words)
        if (target is None) is not text.endswith("security"):
            raise unexpected(words[-1])
        named = target is not None and target.type not in ("ALL", "SYSTEM_VALUE")
        word = "" if target is None or named else str(target.value)
        if word not in ("", "all", "user"):
            raise unexpected(target)
        name = str(target.value) if named else ""
        return AlterAction("switch", name, word, text=text, position=words[0].start)

    def set_type(self, children: Children) -> AlterAction:
        _, type_name, collation, using = children
        expression, text = using or (None, "")
        return AlterAction(
            "type", type=type_name, expression=expression, text=text, collation=collation
        )

    using_text = Definitions.where_text

    def add_identity(self, children: Children) -> AlterAction:
        return AlterAction("add identity", constraint=children[1])

    def drop_identity(self, children: Children) -> AlterAction:
        return AlterAction("drop identity", if_exists=children[-1] is not None)

    def alter_identity(self, children: Children) -> AlterAction:
        words = [value for kind, value in children if kind == "generated"]
        options = [value for kind, value in children if kind == "option"]
        if len(words) > 1:
            raise SqlSyntaxError("conflicting or redundant options")
        return AlterAction("alter identity", text="".join(words), options=tuple(options))

    def set_generated(self, children: Children) -> tuple[str, str]:
        return "generated", "always" if children[-1].type == "ALWAYS" else "by default"

    def set_option(self, children: Children) -> tuple[str, Option]:
        return "option", children[1]

    def restart(self, children: Children) -> tuple[str, Option]:
        option = children[0]
        if option[0] != "restart":
            raise SqlSyntaxError(f'syntax error at or near "{option[0].upper()}"')
        return "option", option

    def drop_expression(self, children: Children) -> AlterAction:
        return AlterAction("drop expression", if_exists=children[-1] is not None)

    # --- constraints ------------------------------------------------------------------------------

    def add_constraint(self, children: Children) -> AlterAction:
        word, constraint = children
        return AlterAction(
            "add constraint", constraint.name or "", constraint=constraint, position=word.start
        )

    def alter_constraint(self, children: Children) -> AlterAction:
        word, name, *attributes = children
        words = tuple([attribute.words for attribute in attributes])
        constraint = Constraint("", name.value, attributes=words, position=name.start)
        return AlterAction(
            "alter constraint", name.value, constraint=constraint, position=word.start
        )

    def drop_constraint(self, children: Children) -> AlterAction:
        return _drop("drop constraint", children)

    def validate_constraint(self, children: Children) -> AlterAction:
        word, name = children
        return AlterAction("validate constraint", name.value, position=word.start)

    # --- the whole relation -----------------------------------------------------------------------

    def owner(self, children: Children) -> AlterAction:
        word, name = children
        return AlterAction("owner", new_name=name.value, position=word.start)

    def rename_to(self, children: Children) -> AlterAction:
        word, name = children
        return AlterAction("rename", new_name=name.value, position=word.start)

    def rename_column(self, children: Children) -> AlterAction:
        return _rename("rename column", children)

    def rename_constraint(self, children: Children) -> AlterAction:
        return _rename("rename constraint", children)

    def set_schema(self, children: Children) -> AlterAction:
        word, name = children
        return AlterAction("set schema", new_name=name.value, position=word.start)

    # --- enums ------------------------------------------------------------------------------------

    def add_value(self, children: Children) -> AlterAction:
        word, _, if_not_exists, label, neighbour, other = children
        return AlterAction(
            "add value",
            expression=label,
            if_exists=if_not_exists is not None,
            new_label=other,
            neighbour="" if neighbour is None else neighbour.value,
            position=word.start,
        )

    def rename_value(self, children: Children) -> AlterAction:
        word, _, label, new_label = children
        return AlterAction(
            "rename value", expression=label, new_label=new_label, position=word.start
        )


def _drop(kind: str, children: list[Any]) -> AlterAction:
    word, if_exists, name, behavior = children
    return AlterAction(
        kind,
        name.value,
        if_exists=if_exists is not None,
        cascade=is_cascade(behavior),
        position=word.start,
    )


def _rename(kind: str, children: list[Any]) -> AlterAction:
    word, name, new_name = children
    return AlterAction(kind, name.value, new_name.value, position=word.start)
