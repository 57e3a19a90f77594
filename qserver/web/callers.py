"""Finds the caller's address, by which signups are counted."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

from qserver.http1 import Client

NETWORK_BITS: Final = 64
"""The owner of one IPv6 address usually owns all with the same first 64 bits."""


def caller_of(client: Client, headers: Mapping[bytes, bytes], *, trusted: bool) -> str:
    """The caller's address; if `trusted`, the one that the proxy in front appended.

    The proxy writes only the last entry of X-Forwarded-For. The caller may have sent the others.
    """
    address = "" if client is None else str(client[0])
    if trusted:
        forwarded = headers.get(b"x-forwarded-for", b"").decode("latin-1")
        address = forwarded.rpartition(",")[2].strip() or address
    return _network_of(address)


def _network_of(address: str) -> str:
    try:
        parsed = ip_address(address.strip("[]").partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(IPv6Network((parsed, NETWORK_BITS), strict=False))
    return str(parsed)
