"""JSON Schemas as generators of clients read them: what is implied is written out.

msgspec leaves out what JSON Schema implies. Programs that make clients from the description look
for it nevertheless, and leave out a shape, and every route that has it, where they do not find it:

    {"enum": [true]}     ──► {"type": "boolean", "const": true}
    {"type": "array"}    ──► {"type": "array", "items": {}}
"""

from __future__ import annotations

from typing import Any, Final

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
