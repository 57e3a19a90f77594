"""Addresses of clients, and which of them has the most connections.

When all places are taken, a client of another address gets that of a connection that rests, of the
address that has the most. So thousands of idle connections of one address keep nobody else out. A
connection that serves a request is never ended for that.
"""

from __future__ import annotations

from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final, Protocol

NETWORK_BITS: Final = 64
"""The owner of one IPv6 address usually owns all with the same first 64 bits."""


class Resting(Protocol):
    def end_if_rests(self) -> bool:
        """End a connection that serves no request; False if it serves one."""


class Addresses:
    """The connections of each address, in the order in which they came."""

    def __init__(self) -> None:
        self._connections: dict[str, dict[Resting, None]] = {}

    def add(self, address: str, connection: Resting) -> None:
        self._connections.setdefault(address, {})[connection] = None

    def remove(self, address: str, connection: Resting) -> None:
        own = self._connections.get(address, {})
        own.pop(connection, None)
        if not own:
            self._connections.pop(address, None)

    def make_room(self, address: str) -> bool:
        """End a resting connection of the address that has the most, for a client of this one.

        False if this address has as many, or none of that one's connections rests.
        """
        own = len(self._connections.get(address, ()))
        most = max(self._connections.values(), key=len, default={})
        if len(most) <= own + 1:
            return False
        return any(connection.end_if_rests() for connection in most)

    def __repr__(self) -> str:
        return f"connections of {len(self._connections)} addresses"


def network_of(address: str) -> str:
    """The address, of IPv6 its network: what one owner has, usually."""
    try:
        parsed = ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(IPv6Network((parsed, NETWORK_BITS), strict=False))
    return str(parsed)
