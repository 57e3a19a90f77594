"""JSON Schemas as generators of clients read them: what is implied is written out.

msgspec leaves out what JSON Schema implies. Programs that make clients from the description look
for it nevertheless, and leave out a shape, and every route that has it, where they do not find it:

    {"enum": [true]}     ──► {"type": "boolean", "const": true}
    {"type": "array"}    ──► {"type": "array", "items": {}}

And what a request may leave out has no `default`: generators for TypeScript take such a field for
one that is always there, and refuse a request without it. Its description says what holds instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

SENT: Final = ("Request", "Change", "Statement")
"""How the names of shapes end that are sent, not answered."""
_TYPES: Final[dict[type, str]] = {bool: "boolean", int: "integer", str: "string"}


def written_out(schema: Any) -> Any:
    """The same schema, with what it implies."""
    if isinstance(schema, list):
        return [written_out(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: written_out(each) for name, each in schema.items()}
    match found:
        case {"enum": [bool() | int() as only]}:
            del found["enum"]
            return {"type": _TYPES[type(only)], "const": only, **found}
        case {"type": "array", **rest} if "items" not in rest and "prefixItems" not in rest:
            return {**found, "items": {}}
    return found


def without_defaults(shapes: Mapping[str, Any]) -> dict[str, Any]:
    """The same shapes; fields of those that are sent tell their default in words."""
    return {
        name: _told(shape) if name.endswith(SENT) and "properties" in shape else shape
        for name, shape in shapes.items()
    }


def _told(shape: Mapping[str, Any]) -> dict[str, Any]:
    fields = {}
    for name, field in shape["properties"].items():
        default = field.get("default")
        left = {each: value for each, value in field.items() if each != "default"}
        if default and "description" in left:
            left["description"] += f" By default {default}."
        fields[name] = left
    return {**shape, "properties": fields}
