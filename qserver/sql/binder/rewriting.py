"""Rewriting bound expressions from the top down.

`rewritten(node, change)` asks `change` about a node first; None means: go on with its parts. So the
largest expression that means something is found before its parts are (a + 1 before a), which
`walk.rebuilt`, from the leaves up, cannot do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

from qserver.sql import bound, plan
from qserver.sql.bound import Apply
from qserver.sql.walk import with_arguments

Change = Callable[[Any], Any]


def rewritten(node: Any, change: Change) -> Any:
    """The node after the change, or with its parts changed; the same object if nothing is."""
    changed = change(node)
    if changed is not None:
        return changed
    if type(node) is Apply:
        return _chain(node, change)
    return with_parts(node, change)


def with_parts(node: Any, change: Change) -> Any:
    changes = {}
    for name in _field_names(type(node)):
        old = getattr(node, name)
        new = _value(old, change)
        if new is not old:
            changes[name] = new
    return replace(node, **changes) if changes else node


def _chain(node: Apply, change: Change) -> Any:
    """Down the first arguments by a loop: a + b + c + … is as deep as it is long."""
    chain = [node]
    first: Any = node.arguments[0] if node.arguments else None
    result: Any = None
    while type(first) is Apply and (result := change(first)) is None:
        chain.append(first)
        first = first.arguments[0] if first.arguments else None
    if result is None and first is not None:
        result = rewritten(first, change)
    for link in reversed(chain):
        if link.arguments:
            rest = [_value(each, change) for each in link.arguments[1:]]
            arguments = (result, *rest)
            if any(new is not old for new, old in zip(arguments, link.arguments, strict=True)):
                link = with_arguments(link, arguments)
        result = link
    return result


def _value(value: Any, change: Change) -> Any:
    if type(value) is tuple:
        items = tuple([_value(each, change) for each in value])
        if any(new is not old for new, old in zip(items, value, strict=True)):
            return items
        return value
    return rewritten(value, change) if _is_part(type(value)) else value


def _is_part(kind: type[Any]) -> bool:
    return kind.__module__ in (bound.__name__, plan.__name__) and kind is not plan.OutputColumn


def _field_names(kind: type[Any]) -> tuple[str, ...]:
    names = _FIELD_NAMES.get(kind)
    if names is None:
        names = tuple(each.name for each in fields(kind) if each.name not in ("table", "columns"))
        _FIELD_NAMES[kind] = names
    return names


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}
