"""Syntax nodes as text: a line for each node, with its place and its plain fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields
from typing import Any

from qserver.sql.ast import Node


def printed(tree: Node) -> list[str]:
    return list(_lines("", tree, ""))


def _lines(label: str, value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Node):
        plain: list[str] = []
        nested: list[tuple[str, Any]] = []
        for each in fields(value):
            content = getattr(value, each.name)
            if each.name == "position" or (each.default is not MISSING and content == each.default):
                continue
            if _is_plain(content):
                plain.append(f"{each.name}={_plain(content)}")
            else:
                nested.append((each.name, content))
        yield " ".join([f"{indent}{label}{type(value).__name__}@{value.position}", *plain])
        for name, content in nested:
            yield from _lines(f"{name}: ", content, f"{indent}  ")
    elif isinstance(value, tuple):
        yield f"{indent}{label.removesuffix(' ') or '-'}"
        for each in value:
            yield from _lines("", each, f"{indent}  ")
    else:
        yield f"{indent}{label}{_plain(value)}"


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_plain(each) for each in value)
    return not isinstance(value, Node)


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain, value))})"
    return value if isinstance(value, str) and value.isidentifier() else repr(value)
