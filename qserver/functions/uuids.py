"""The functions of uuid-ossp: identifiers from the time, from a name, and from chance.

They need no extension here; `values.extensions` says what CREATE EXTENSION does.
"""

from __future__ import annotations

from hashlib import md5, sha1
from typing import TYPE_CHECKING, Any, Final

from qserver.functions.chance import random_uuid
from qserver.functions.registry import Function
from qserver.values.binary_text import uuid_from_text
from qserver.values.types import TEXT, UUID_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from qserver.functions.context import Context

_NAMESPACES: Final = {
    "nil": "00000000-0000-0000-0000-000000000000",
    "ns_dns": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "ns_url": "6ba7b811-9dad-11d1-80b4-00c04fd430c8",
    "ns_oid": "6ba7b812-9dad-11d1-80b4-00c04fd430c8",
    "ns_x500": "6ba7b814-9dad-11d1-80b4-00c04fd430c8",
}
_SECONDS_FROM_1582: Final = 12219292800
"""From the day on which the times of identifiers begin to 1970."""
_MULTICAST: Final = 1 << 40
"""A bit of the node that no network card has: it was drawn."""


def _marked(bits: int, version: int) -> Any:
    bits = bits & ~(0xF << 76) | version << 76
    bits = bits & ~(0x3 << 62) | 2 << 62
    return uuid_from_text(f"{bits:032x}")


def uuid_of_time(context: Context) -> Any:
    """Return an identifier of version 1, whose node is drawn."""
    ticks = _ticks(context.now)
    times = (ticks & 0xFFFFFFFF) << 32 | (ticks >> 32 & 0xFFFF) << 16 | ticks >> 48 & 0xFFF
    return _marked(times << 64 | context.random.getrandbits(62) | _MULTICAST, 1)


def _ticks(now: datetime) -> int:
    """Return tenths of microseconds."""
    seconds = int(now.timestamp()) + _SECONDS_FROM_1582
    return (seconds * 1_000_000 + now.microsecond) * 10


def _of_name(make: Callable[..., Any], version: int) -> Callable[[Any, str], Any]:
    def call(space: Any, name: str) -> Any:
        digest = make(space.bytes + name.encode(), usedforsecurity=False).digest()
        return _marked(int.from_bytes(digest[:16], "big"), version)

    return call


def _fixed(text: str) -> Callable[[], Any]:
    value = uuid_from_text(text)
    return lambda: value


FUNCTIONS: Final = (
    *(Function(f"uuid_{name}", (), UUID_TYPE, _fixed(text)) for name, text in _NAMESPACES.items()),
    *(
        Function(name, (), UUID_TYPE, call, volatile=True, needs_context=True)
        for name, call in (
            ("uuid_generate_v1", uuid_of_time),
            ("uuid_generate_v1mc", uuid_of_time),
            ("uuid_generate_v4", random_uuid),
        )
    ),
    Function("uuid_generate_v3", (UUID_TYPE, TEXT), UUID_TYPE, _of_name(md5, 3)),
    Function("uuid_generate_v5", (UUID_TYPE, TEXT), UUID_TYPE, _of_name(sha1, 5)),
)
