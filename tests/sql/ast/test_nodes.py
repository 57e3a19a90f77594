"""All nodes of an AST are found, in the order of the text, and none of them ever changes."""

from __future__ import annotations

import dataclasses

from qserver.sql import ast
from qserver.sql.ast import Literal, Name, Select, TypeName
from qserver.sql.ast.nodes import nodes_of
from qserver.sql.parser import parse


def names(text: str) -> str:
    found = nodes_of(parse(text).statement)
    return "".join(node.parts[-1] for node in found if isinstance(node, Name))


def test_names_come_as_they_are_written() -> None:
    assert names("select a, b + c from t where d = e group by f") == "abcdef"
    assert names("select a from (select b from u) s, lateral (select c) r") == "abc"


def test_every_node_comes_once_and_before_those_in_it() -> None:
    statement = parse("select 1, (select 2) where 3 in (4, 5)").statement
    nodes = list(nodes_of(statement))
    assert nodes[0] is statement
    assert len({id(node) for node in nodes}) == len(nodes)
    assert [node.index for node in nodes if isinstance(node, Literal)] == [0, 1, 2, 3, 4]
    assert sum(isinstance(node, Select) for node in nodes) == 2


def test_a_type_has_the_parts_of_its_name() -> None:
    assert TypeName("int").parts == ("int",)
    assert TypeName("mood", schemas=("shop", "public")).parts == ("shop", "public", "mood")


def test_no_node_changes() -> None:
    classes = [each for each in vars(ast).values() if dataclasses.is_dataclass(each)]
    assert len(classes) > 90
    assert [each for each in classes if not each.__dataclass_params__.frozen] == []  # type: ignore[union-attr]
