"""Section 9: how many requests an organization may send."""

from __future__ import annotations

import re

from tests.web.contract.servers import Client, error_of

REMAINING = re.compile(r'"free";r=(\d+);t=(\d+)')


def test_the_free_tier_has_200_requests_a_minute_and_says_how_many_are_left(
    organization: Client, admin: Client
) -> None:
    for left in range(199, -1, -1):
        path = "/tables" if left % 50 == 0 else None
        answer = organization.get(path) if path else organization.query_response("select 1")
        assert answer.status_code == 200
        assert answer.headers["ratelimit-policy"] == '"free";q=200;w=60'
        found = REMAINING.fullmatch(answer.headers["ratelimit"])
        assert found and int(found[1]) == left and 0 < int(found[2]) <= 60
    refused = [
        organization.query_response("select 1"),
        organization.post("/v1/transaction", {"statements": ["select 1"]}),
        organization.query_response("/*+ STREAM */ select 1"),
        organization.get("/v1/keys"),
        organization.get("/tables"),
    ]
    for answer in refused:
        error = error_of(answer, 429, "QS012")
        assert error["retryable"] is True
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert answer.headers["ratelimit-policy"] == '"free";q=200;w=60'
        found = REMAINING.fullmatch(answer.headers["ratelimit"])
        assert found and found[1] == "0" and found[2] == answer.headers["retry-after"]
    for path in ("/health", "/ready", "/"):
        assert organization.get(path).status_code == 200, "these do not count"
    assert organization.call("OPTIONS", "/v1/query").status_code == 204
    assert admin.value("select 1") == 1, "others are not touched"


def test_health_ready_and_options_do_not_count(organization: Client) -> None:
    def left() -> int:
        header = organization.get("/v1/organization").headers["ratelimit"]
        found = REMAINING.fullmatch(header)
        assert found
        return int(found[1])

    before = left()
    for _ in range(5):
        organization.get("/health")
        organization.get("/ready")
        organization.call("OPTIONS", "/v1/query")
    assert left() == before - 1


def test_all_keys_and_sessions_of_an_organization_share_its_allowance(
    organization: Client,
) -> None:
    key = organization.with_scopes("data:read")
    session = organization.with_token(organization.new_session()["token"])
    seen = [
        int(found[1])
        for client in (organization, key, session)
        if (found := REMAINING.fullmatch(client.query_response("select 1").headers["ratelimit"]))
    ]
    assert seen == [seen[0], seen[0] - 1, seen[0] - 2]


def test_the_unlimited_tier_says_so(admin: Client) -> None:
    for answer in (admin.query_response("select 1"), admin.get("/v1/keys")):
        assert answer.headers["ratelimit-policy"].startswith('"unlimited"')
        assert answer.headers["ratelimit"].startswith('"unlimited"')


def test_errors_count_and_carry_the_allowance_too(organization: Client) -> None:
    for answer in (organization.query_response("selec"), organization.get("/v1/keys/x")):
        assert answer.status_code in (400, 404)
        assert REMAINING.fullmatch(answer.headers["ratelimit"])
