"""Operators list organizations, and change their tiers and limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.web.contract.conftest import SETTINGS
from tests.web.contract.servers import Client, error_of, start

LIMITS = {
    "requests_per_minute": 5000,
    "databases": 3,
    "branches": 1,
    "stored_bytes": 1 << 30,
    "memory_bytes": 1 << 25,
    "connections": 7,
    "open_transactions": 2,
    "feeds": 3,
    "live_queries": 4,
    "statement_timeout_ms": 40_000,
    "statement_timeout_max_ms": 60_000,
}


def own_id(client: Client) -> str:
    found: str = client.get("/v1/organization").json()["id"]
    return found


def test_limits_are_changed_and_an_organization_sees_them_with_its_use(
    admin: Client, organization: Client
) -> None:
    before = organization.get("/v1/organization").json()
    changed = admin.call("PATCH", f"/v1/organizations/{before['id']}", json={"limits": LIMITS})
    assert changed.status_code == 200, changed.text
    after = organization.get("/v1/organization").json()
    assert after["limits"] == {**before["limits"], **LIMITS} and after["tier"] == "free"
    assert after["use"].keys() >= LIMITS.keys() - {
        "requests_per_minute",
        "statement_timeout_ms",
        "statement_timeout_max_ms",
    }
    opened = organization.post("/v1/transaction/open", {}).json()["transaction"]["id"]
    assert organization.get("/v1/organization").json()["use"]["open_transactions"] == 1
    assert organization.delete(f"/v1/transaction/{opened}").status_code == 204
    by_name = admin.call(
        "PATCH", f"/v1/organizations/{before['name']}", json={"limits": {"feeds": None}}
    )
    assert by_name.json()["limits"]["feeds"] == before["limits"]["feeds"]
    everything = dict.fromkeys(LIMITS, None)
    admin.call("PATCH", f"/v1/organizations/{before['id']}", json={"limits": everything})
    assert organization.get("/v1/organization").json()["limits"] == before["limits"]


def test_a_tier_brings_its_limits(admin: Client, organization: Client) -> None:
    name = own_id(organization)
    answer = admin.call("PATCH", f"/v1/organizations/{name}", json={"tier": "unlimited"})
    assert answer.json()["tier"] == "unlimited"
    assert answer.json()["limits"]["requests_per_minute"] is None
    assert organization.get("/v1/organization").headers["ratelimit"] == '"unlimited"'
    limits = {"requests_per_minute": 9}
    admin.call("PATCH", f"/v1/organizations/{name}", json={"tier": "pro", "limits": limits})
    answer = organization.get("/v1/organization")
    assert answer.headers["ratelimit-policy"] == '"pro";q=9;w=60'


def test_what_is_over_a_limit_is_refused_and_the_rest_goes_on(
    admin: Client, organization: Client
) -> None:
    name = own_id(organization)
    admin.call("PATCH", f"/v1/organizations/{name}", json={"tier": "unlimited", "limits": LIMITS})
    organization.query("create table t (id int primary key)")
    for _ in range(2):
        assert organization.post("/v1/transaction/open", {}).status_code == 201
    error_of(organization.post("/v1/transaction/open", {}), 429, "QS034")
    for number in range(2):
        answer = organization.post("/v1/databases", {"name": f"more-{number}"})
        assert answer.status_code == 201
    error_of(organization.post("/v1/databases", {"name": "too-many"}), 400, "53100")
    sql = {"sql": "select 1", "timeout_ms": 60_000}
    assert organization.post("/v1/query", sql).status_code == 200
    error_of(organization.post("/v1/query", {**sql, "timeout_ms": 60_001}), 400, "QS001")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"limits": {}},
        {"tier": "gold"},
        {"tier": None},
        {"tier": 1},
        {"name": "x"},
        {"limits": None},
        {"limits": 5},
        {"limits": {"keys": 5}},
        {"limits": {"databases": "5"}},
        {"limits": {"databases": 1.5}},
        {"limits": {"databases": True}},
        {"limits": {"databases": 0}},
        {"limits": {"connections": 0}},
        {"limits": {"feeds": -1}},
        {"limits": {"memory_bytes": 1000}},
        {"limits": {"stored_bytes": 1 << 60}},
        {"limits": {"statement_timeout_ms": 0}},
        {"limits": {"statement_timeout_ms": 86_400_001}},
        {"limits": {"statement_timeout_ms": 2000, "statement_timeout_max_ms": 1000}},
    ],
)
def test_a_change_that_is_wrong_is_400(admin: Client, organization: Client, body: Any) -> None:
    name = own_id(organization)
    before = organization.get("/v1/organization").json()
    error_of(admin.call("PATCH", f"/v1/organizations/{name}", json=body), 400, "QS001")
    after = organization.get("/v1/organization").json()
    assert (after["tier"], after["limits"]) == (before["tier"], before["limits"])


def test_only_operators_may_change_or_list_organizations(
    admin: Client, organization: Client, anonymous: Client
) -> None:
    name = own_id(organization)
    for client in (organization, narrow(admin)):
        answer = client.call("PATCH", f"/v1/organizations/{name}", json={"tier": "pro"})
        error_of(answer, 403)
        error_of(client.get("/v1/organizations"), 403)
    error_of(anonymous.get("/v1/organizations"), 401)
    error_of(admin.call("PATCH", "/v1/organizations/org_none", json={"tier": "pro"}), 404)
    error_of(admin.call("PATCH", "/v1/organizations/default", json={"tier": "pro"}), 400)


def narrow(admin: Client) -> Client:
    """A key of the same organization, without the scope admin."""
    made = admin.post("/v1/keys", {"name": "narrow", "scopes": ["data:read", "keys"]}).json()
    admin.server.secrets.add(made["key"])
    return admin.with_token(made["key"])


def test_all_organizations_are_listed_by_pages(admin: Client, organization: Client) -> None:
    found, cursor = [], ""
    while True:
        page = admin.get(f"/v1/organizations?limit=2{cursor}").json()
        found += page["organizations"]
        if page["next_cursor"] is None:
            break
        assert len(page["organizations"]) == 2
        cursor = f"&cursor={page['next_cursor']}"
    ids = [each["id"] for each in found]
    assert ids == sorted(set(ids)) and own_id(organization) in ids and own_id(admin) in ids
    (listed,) = [each for each in found if each["id"] == own_id(organization)]
    assert listed["use"]["databases"] == 1 and listed["use"]["stored_bytes"] > 0
    error_of(admin.get("/v1/organizations?limit=0"), 400)
    error_of(admin.get("/v1/organizations?cursor=nonsense"), 400)


def test_limits_outlive_the_process(tmp_path: Path) -> None:
    settings = {name: SETTINGS[name] for name in ("QSERVER_API_KEY", "QSERVER_OPEN_SIGNUP")}
    server = start("own", tmp_path, settings)
    try:
        admin = Client(server, settings["QSERVER_API_KEY"])
        made = Client(server, None).post("/v1/signup", {"organization": "acme"}).json()
        change = {"tier": "pro", "limits": {"live_queries": 5}}
        assert admin.call("PATCH", "/v1/organizations/acme", json=change).status_code == 200
        server.kill()
        server = start("own", tmp_path, settings)
        found = Client(server, made["key"]).get("/v1/organization").json()
        assert found["tier"] == "pro" and found["limits"]["live_queries"] == 5
    finally:
        server.kill()
