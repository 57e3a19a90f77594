"""The formats of EXPLAIN but text: JSON, YAML and XML of one tree, as PostgreSQL writes them.

A tree has texts, numbers and booleans under names, lists of texts, and other trees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from xml.sax.saxutils import escape

Query: TypeAlias = dict[str, Any] | str
"""What is said of a statement: a tree, or the name of a statement without a plan."""

_NAMESPACE: Final = "http://www.postgresql.org/2009/explain"
_NOT_IN_TAGS: Final = re.compile("[^A-Za-z0-9_.-]")
_ITEMS: Final[Mapping[str, str]] = MappingProxyType({"Plans": "Plan", "Triggers": "Trigger"})
"""The tags of what is in lists of these names."""


def to_json(query: Query) -> str:
    return json.dumps([query], indent=2, ensure_ascii=False)


def to_yaml(query: Query) -> str:
    if isinstance(query, str):
        return f"- {_quoted(query)}"
    lines = list(_yaml(query, "  "))
    return "\n".join(["- " + lines[0][2:], *lines[1:]])


def _yaml(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield f"{indent}{name}: "
            yield from _yaml(value, indent + "  ")
        elif isinstance(value, list):
            yield f"{indent}{name}: "
            for item in value:
                if isinstance(item, dict):
                    lines = list(_yaml(item, indent + "    "))
                    yield f"{indent}  - {lines[0].lstrip()}"
                    yield from lines[1:]
                else:
                    yield f"{indent}  - {_quoted(item)}"
        else:
            yield f"{indent}{name}: {_quoted(value)}"


def _quoted(value: Any) -> str:
    """Return a value as JSON writes it, which YAML can read."""
    return json.dumps(value, ensure_ascii=False)


def to_xml(query: Query) -> str:
    lines = [f'<explain xmlns="{_NAMESPACE}">']
    if isinstance(query, str):
        lines.append(f"  <{_tag(query)} />")
    else:
        lines += ["  <Query>", *_xml(query, "    "), "  </Query>"]
    return "\n".join([*lines, "</explain>"])


def _xml(tree: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, value in tree.items():
        tag = _tag(name)
        if isinstance(value, dict | list):
            yield f"{indent}<{tag}>"
            if isinstance(value, dict):
                yield from _xml(value, indent + "  ")
            else:
                for item in value:
                    yield from _xml({_ITEMS.get(name, "Item"): item}, indent + "  ")
            yield f"{indent}</{tag}>"
        else:
            text = str(value).lower() if isinstance(value, bool) else escape(str(value))
            yield f"{indent}<{tag}>{text}</{tag}>"


def _tag(name: str) -> str:
    return _NOT_IN_TAGS.sub("-", name)


WRITERS: Final[Mapping[str, Callable[[Query], str]]] = MappingProxyType(
    {"json": to_json, "yaml": to_yaml, "xml": to_xml}
)
"""By the format."""
