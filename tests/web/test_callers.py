"""Whose request it is, as far as an address tells."""

from __future__ import annotations

from typing import Any

import pytest

from qserver.web.callers import caller_of


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        (("203.0.113.7", 5000), "203.0.113.7"),
        (("2001:db8:1:2:3:4:5:6", 5000), "2001:db8:1:2::/64"),
        (("::ffff:203.0.113.7", 5000), "203.0.113.7"),
        (("fe80::1%eth0", 5000), "fe80::/64"),
        (None, ""),
        (("/run/socket", 0), "/run/socket"),
    ],
)
def test_a_caller_is_an_address_or_a_network_of_ipv6(client: Any, expected: str) -> None:
    assert caller_of(client, {}, trusted=False) == expected


def test_forwarded_addresses_count_only_where_a_proxy_is_trusted_and_only_its_own_word() -> None:
    client, headers = ("10.0.0.1", 1), {b"x-forwarded-for": b"198.51.100.1, 203.0.113.7"}
    assert caller_of(client, headers, trusted=False) == "10.0.0.1"
    assert caller_of(client, headers, trusted=True) == "203.0.113.7"
    assert caller_of(client, {}, trusted=True) == "10.0.0.1"
