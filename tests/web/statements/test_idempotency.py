"""The names under which answers are stored: nobody finds another's, and neighbours stay so."""

from __future__ import annotations

from hashlib import sha256
from itertools import product

from qserver.control.records import Grant
from qserver.limits import IDEMPOTENCY_KEY_BYTES_MAX
from qserver.web.statements.idempotency import name_of_answer


def sender(key_id: str, session_id: str | None = None) -> Grant:
    return Grant("org", "default", "free", key_id, session_id, frozenset(["admin"]), None)


def test_no_two_requests_share_a_name() -> None:
    long = b"k" * IDEMPOTENCY_KEY_BYTES_MAX
    keys = [b"k", b"kk", b"1", b"=1", b"#1", sha256(long).digest()]
    keys += [long, long[:-1], long[:-1] + b"l"]
    senders = [sender("key_1"), sender("key_11")]
    senders += [sender("key_1", "ses_1"), sender("key_1", "ses_2")]
    names = [name_of_answer(*each) for each in product(("db_1", "db_11"), senders, keys)]
    assert len(set(names)) == len(names) == 2 * 4 * 9


def test_a_name_is_short_however_long_the_key_is() -> None:
    longest = name_of_answer("db_1", sender("key_1"), b"k" * IDEMPOTENCY_KEY_BYTES_MAX)
    assert len(longest) < 100


def test_the_names_of_keys_that_are_counted_are_neighbours() -> None:
    counted = [name_of_answer("db_1", sender("key_1"), b"order %06d" % n) for n in range(200)]
    others = [name_of_answer("db_1", sender(f"key_{n}"), b"order 000100") for n in range(2, 50)]
    ordered = sorted(counted + others)
    first = ordered.index(counted[0])
    assert ordered[first : first + len(counted)] == counted
