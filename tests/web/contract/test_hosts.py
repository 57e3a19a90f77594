"""Section 1: which host serves what, and which web pages may call."""

from __future__ import annotations

import re

import pytest

from qserver.web.description.catalogue import ROUTES
from qserver.web.route import Plane, Route
from tests.web.contract.conftest import ADMIN_KEY, ALIAS, CONTROL, DATA
from tests.web.contract.servers import Client, Server, error_of

VIA = "1.1 qserver-alias"
DATA_ROUTES = [route for route in ROUTES if route.plane is Plane.DATA]
CONTROL_ROUTES = [route for route in ROUTES if route.plane is Plane.CONTROL]
PAGE = "https://page.example.test"


def at(server: Server, host: str) -> Client:
    return Client(server, ADMIN_KEY, host=host)


def path_of(route: Route) -> str:
    return re.sub(r"\{(\w+)\}", r"a_\1", route.path)


@pytest.mark.parametrize("host", [DATA, ALIAS, f"{DATA}:443", DATA.upper()])
def test_data_routes_are_served_by_the_data_host_and_by_the_alias(
    server: Server, host: str
) -> None:
    client = at(server, host)
    assert client.value("select 1") == 1
    text = client.call("POST", "/query", content="select 2", headers={"Content-Type": "text/plain"})
    assert text.json()["success"] is True
    assert client.transaction("select 3")["results"][0]["rows"] != []
    assert client.get("/tables").json()["database"] == "main"


def test_a_request_on_the_alias_passes_one_hop_more_and_says_so(server: Server) -> None:
    for path in ("/v1/query", "/query", "/no-such-route"):
        assert at(server, ALIAS).post(path, {"sql": "select 1"}).headers["via"] == VIA
        assert "via" not in at(server, DATA).post(path, {"sql": "select 1"}).headers
    assert at(server, ALIAS).get("/tables").headers["via"] == VIA
    assert at(server, ALIAS).get("/health").headers["via"] == VIA


def test_a_stream_passes_the_alias_too(server: Server) -> None:
    answer = at(server, ALIAS).post("/v1/query", {"sql": "/*+ STREAM */ select 1 as a"})
    assert answer.headers["via"] == VIA
    assert answer.headers["content-type"] == "text/event-stream"
    assert '{"a":1}' in answer.text


@pytest.mark.parametrize("route", CONTROL_ROUTES, ids=lambda route: route.name)
def test_a_control_route_on_the_alias_is_redirected_with_its_method_kept(
    server: Server, route: Route
) -> None:
    path = path_of(route)
    answer = at(server, ALIAS).call(route.method, f"{path}?limit=3&cursor=a%2Fb")
    error = error_of(answer, 307, "QS013")
    assert answer.headers["location"] == f"http://{CONTROL}{path}?limit=3&cursor=a%2Fb"
    assert f"http://{CONTROL}" in error["message"] and "directly" in error["hint"]


def test_what_stands_in_a_path_stays_encoded_in_a_redirect(server: Server) -> None:
    path = "/v1/keys/a%0D%0AX-Evil%3A%201%20%C3%A9"
    answer = at(server, ALIAS).get(path)
    error_of(answer, 307, "QS013")
    assert answer.headers["location"] == f"http://{CONTROL}{path}"


@pytest.mark.parametrize("route", CONTROL_ROUTES, ids=lambda route: route.name)
def test_a_control_route_on_the_data_host_is_404_that_names_the_control_url(
    server: Server, route: Route
) -> None:
    error = error_of(at(server, DATA).call(route.method, path_of(route)), 404, "QS006")
    assert f"http://{CONTROL}" in error["hint"]


@pytest.mark.parametrize("route", DATA_ROUTES, ids=lambda route: route.name)
def test_a_data_route_on_the_control_host_is_404_that_names_the_data_url(
    server: Server, route: Route
) -> None:
    error = error_of(at(server, CONTROL).call(route.method, path_of(route)), 404, "QS006")
    assert f"https://{DATA}" in error["hint"]


def test_control_routes_are_served_by_the_control_host(server: Server) -> None:
    control = at(server, CONTROL)
    assert control.get("/v1/databases").status_code == 200
    assert control.get("/v1/organization").json()["name"] == "default"
    assert control.new_session()["token"].startswith("svc_s_")


@pytest.mark.parametrize("host", [DATA, ALIAS, CONTROL, "127.0.0.1", "load-balancer.internal"])
def test_every_host_tells_how_the_service_fares(server: Server, host: str) -> None:
    assert at(server, host).get("/ready").status_code == 200
    assert at(server, host).get("/health").json()["status"] == "ok"


def test_a_host_that_is_none_of_them_serves_everything(admin: Client) -> None:
    assert admin.value("select 1") == 1
    assert admin.get("/v1/keys").status_code == 200


def test_signup_hands_out_the_address_of_the_data_host(anonymous: Client) -> None:
    answer = anonymous.post("/v1/signup", {"organization": f"urls-{anonymous.server.kind}"})
    anonymous.server.secrets.add(answer.json()["key"])
    assert answer.json()["urls"] == {"data": f"https://{DATA}", "control": f"http://{CONTROL}"}


@pytest.mark.parametrize(
    ("host", "path"), [(DATA, "/v1/query"), (ALIAS, "/v1/query"), (CONTROL, "/v1/session")]
)
def test_preflights_are_answered_without_a_key_and_allow_authorization(
    server: Server, host: str, path: str
) -> None:
    asked = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, content-type",
    }
    answer = Client(server, None, host=host).call("OPTIONS", path, headers=asked)
    assert answer.status_code == 204 and answer.content == b""
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "authorization" in answer.headers["access-control-allow-headers"]
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert "access-control-allow-credentials" not in answer.headers
    assert "ratelimit" not in answer.headers


@pytest.mark.parametrize("path", ["/v1/query", "/v1/keys", "/health", "/no-such-route"])
def test_answers_to_a_page_expose_the_headers_that_clients_need(admin: Client, path: str) -> None:
    answer = admin.get(path, headers={"Origin": PAGE})
    assert answer.headers["access-control-allow-origin"] == "*"
    exposed = {each.strip() for each in answer.headers["access-control-expose-headers"].split(",")}
    assert exposed >= {"x-request-id", "ratelimit", "ratelimit-policy", "retry-after", "etag"}
    assert "set-cookie" not in answer.headers
