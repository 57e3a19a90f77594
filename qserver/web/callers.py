"""Finds the caller's address, by which signups are counted."""

from __future__ import annotations

from collections.abc import Mapping

from qserver.http1 import Client, network_of


def caller_of(client: Client, headers: Mapping[bytes, bytes], *, trusted: bool) -> str:
    """The caller's address; if `trusted`, the one that the proxy in front appended.

    The proxy writes only the last entry of X-Forwarded-For. The caller may have sent the others.
    """
    return network_of(address_of(client, headers, trusted=trusted))


def address_of(client: Client, headers: Mapping[bytes, bytes], *, trusted: bool) -> str:
    """The same, to the last bit."""
    address = "" if client is None else str(client[0])
    if trusted:
        forwarded = headers.get(b"x-forwarded-for", b"").decode("latin-1")
        address = forwarded.rpartition(",")[2].strip() or address
    return address
