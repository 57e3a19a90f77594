"""Secrets, ids, and the checks of what callers send."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qserver.control.records import SCOPES, Grant, SessionRecord
from qserver.control.requests import (
    Page,
    checked_key_name,
    checked_name,
    checked_scopes,
    checked_seconds,
)
from qserver.control.tokens import Mint, check_key, digest, is_token
from qserver.errors import InvalidRequest
from tests.control.planes import NOON

MINT = Mint(Random(3).randbytes)


def test_secrets_have_a_prefix_and_32_url_safe_characters() -> None:
    for secret, prefix in ((MINT.key(), "svc_k_"), (MINT.session_token(), "svc_s_")):
        assert secret.startswith(prefix)
        assert len(secret) == len(prefix) + 32
        assert is_token(secret)
    assert MINT.key() != MINT.key()
    assert repr(MINT) == "a mint of secrets and ids"


@given(st.lists(st.integers(0, 4_000_000_000), min_size=2, max_size=2, unique=True))
def test_ids_sort_by_time(times: list[int]) -> None:
    earlier, later = sorted(times)
    assert MINT.id("db", earlier) < MINT.id("db", later)
    assert MINT.id("db", earlier) != MINT.id("db", earlier)


def test_a_digest_does_not_hold_the_secret() -> None:
    assert len(digest("svc_k_x")) == 32
    assert digest("svc_k_x") != digest("svc_k_y")


@pytest.mark.parametrize(
    "key",
    [
        "",
        "password",
        "svc_k_short",
        "svc_k_0123456789abcde",
        "svc_k_0123456789abcdef!",
        "svc_k_0123456789abcdef\n",
        "svc_s_0123456789abcdef",
        " svc_k_0123456789abcdef",
        "svc_k_" + "x" * 257,
    ],
)
def test_a_malformed_first_key_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(InvalidRequest, match="shape of a key") as refused:
        check_key(key)
    if key:
        assert key not in f"{refused.value} {refused.value.detail} {refused.value.hint}"


def test_a_first_key_of_16_characters_is_enough() -> None:
    check_key("svc_k_0123456789abcdef")
    check_key("svc_k_" + "-_" * 128)


@pytest.mark.parametrize("name", ["a", "main", "a-b_c9", "x" * 63])
def test_good_names_are_taken(name: str) -> None:
    assert checked_name("a database", name) == name


@pytest.mark.parametrize(
    "name", ["", "9a", "_a", "-a", "A", "aB", "a b", "a.b", "ä", "a\n", "x" * 64, "a/b", "a\0"]
)
def test_bad_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="cannot be the name"):
        checked_name("a database", name)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 101, "\0"])
def test_bad_names_of_keys_are_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="name of a key"):
        checked_key_name(name)


def test_scopes_come_out_in_the_documented_order_each_once() -> None:
    assert checked_scopes(["keys", "data:read", "keys"]) == ("data:read", "keys")
    assert checked_scopes(reversed(SCOPES)) == SCOPES


@pytest.mark.parametrize("scopes", [[], ["root"], ["data:read", "DATA:WRITE"]])
def test_unknown_scopes_and_none_are_refused(scopes: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="scope"):
        checked_scopes(scopes)


@pytest.mark.parametrize("seconds", [-1, 0, 11, float("nan"), float("inf")])
def test_seconds_outside_of_the_bounds_are_refused(seconds: float) -> None:
    with pytest.raises(InvalidRequest, match="expires_in"):
        checked_seconds("expires_in", seconds, 1, 10)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_the_length_of_a_page_is_bounded(limit: int) -> None:
    with pytest.raises(InvalidRequest, match="limit"):
        Page("db", None, limit)


@pytest.mark.parametrize("cursor", ["", "x", "####", "ä", "ZGJfMQ==", "a2V5XzEyMw=="])
def test_a_cursor_that_we_did_not_make_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        Page("db", cursor, None)


def test_a_cursor_of_another_list_is_refused() -> None:
    rows = [(MINT.id("key", NOON),), (MINT.id("key", NOON),)]
    _, cursor = Page("key", None, 1).cut(rows, lambda row: row[0])
    assert Page("key", cursor, 1).after == rows[0][0]
    with pytest.raises(InvalidRequest, match="cursor"):
        Page("db", cursor, None)


@given(st.text())
def test_no_text_breaks_the_reading_of_cursors(text: str) -> None:
    try:
        page = Page("db", text, None)
    except InvalidRequest:
        return
    assert page.after.startswith("db_")


def test_admin_implies_every_scope() -> None:
    grant = Grant("org", "default", "free", "key", None, frozenset(["admin"]), None)
    assert all(grant.has(scope) for scope in SCOPES)
    assert (grant.may_read, grant.may_write, grant.may_define) == (True, True, True)
    assert grant.has_all(SCOPES)


def test_a_grant_allows_what_its_scopes_say_and_no_more() -> None:
    scopes = frozenset(["data:read", "keys"])
    grant = Grant("org", "default", "free", "key", None, scopes, frozenset(["db_1"]))
    assert (grant.may_read, grant.may_write, grant.may_define) == (True, False, False)
    assert grant.has("keys") and not grant.has("databases") and not grant.has("admin")
    assert grant.may_use("db_1") and not grant.may_use("db_2")
    assert grant.may_use_all(frozenset(["db_1"])) and not grant.may_use_all(None)
    assert not grant.may_use_all(frozenset(["db_1", "db_2"]))


def test_records_are_values() -> None:
    now = datetime.fromtimestamp(NOON, UTC)
    one = SessionRecord("ses_1", "key_1", ("admin",), "main", now, now)
    assert one == SessionRecord("ses_1", "key_1", ("admin",), "main", now, now)
    with pytest.raises(AttributeError):
        one.id = "ses_2"  # type: ignore[misc]
