"""Which web pages may call."""

from __future__ import annotations

from qserver.web.cors import Cors

PAGE, OTHER = b"https://app.example.com", b"https://evil.example.com"


def test_a_star_lets_every_page_call_and_says_nothing_to_those_that_are_no_page() -> None:
    cors = Cors(("*",))
    assert dict(cors.answer(PAGE))[b"access-control-allow-origin"] == b"*"
    assert cors.answer(None) == []
    assert b"authorization" in dict(cors.preflight(OTHER))[b"access-control-allow-headers"]


def test_listed_origins_are_named_and_caches_are_told_that_it_depends() -> None:
    cors = Cors((PAGE.decode(), "http://localhost:3000"))
    answer = dict(cors.answer(PAGE))
    assert answer[b"access-control-allow-origin"] == PAGE
    assert answer[b"vary"] == b"Origin"
    assert b"access-control-allow-methods" in dict(cors.preflight(PAGE))


def test_other_origins_are_told_nothing() -> None:
    cors = Cors((PAGE.decode(),))
    for origin in (OTHER, None, b"null", PAGE + b".evil.com", PAGE.upper()):
        assert cors.answer(origin) == [(b"vary", b"Origin")]
        assert cors.preflight(origin) == []


def test_credentials_are_never_allowed() -> None:
    for cors in (Cors(("*",)), Cors((PAGE.decode(),))):
        names = {name for name, _ in [*cors.answer(PAGE), *cors.preflight(PAGE)]}
        assert b"access-control-allow-credentials" not in names
