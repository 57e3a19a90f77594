"""Which host serves what."""

from __future__ import annotations

import pytest

from qserver.errors import NotFound, WrongHost
from qserver.web.description.catalogue import find_route
from qserver.web.hosts import Hosts, Place
from qserver.web.route import Plane, Route

DATA, ALIAS, CONTROL = "https://data.test", "http://alias.test", "https://control.test:8443"


def route(method: str, path: str) -> Route:
    found = find_route(method, path)
    assert found is not None
    return found


QUERY, KEYS, HEALTH = route("POST", "/v1/query"), route("GET", "/v1/keys"), route("GET", "/health")


@pytest.mark.parametrize(
    ("host", "place"),
    [
        (b"data.test", Place.DATA),
        (b"DATA.test", Place.DATA),
        (b"data.test:443", Place.DATA),
        (b"data.test:80", Place.ANY),
        (b"alias.test", Place.ALIAS),
        (b"alias.test:80", Place.ALIAS),
        (b"control.test:8443", Place.CONTROL),
        (b"control.test", Place.ANY),
        (b"127.0.0.1:8000", Place.ANY),
        (b"", Place.ANY),
    ],
)
def test_a_host_is_known_by_its_name_and_port(host: bytes, place: Place) -> None:
    assert Hosts(DATA, ALIAS, CONTROL).place_of(host) is place


@pytest.mark.parametrize("host", [b"data.test", b"localhost:8000", b""])
def test_without_settings_one_address_serves_everything(host: bytes) -> None:
    hosts = Hosts(None, None, None)
    assert hosts.place_of(host) is Place.ANY
    assert all(hosts.refusal(Place.ANY, each, "/x") is None for each in (QUERY, KEYS, HEALTH))


@pytest.mark.parametrize("control", [None, DATA])
def test_where_data_and_control_have_one_url_that_host_serves_both(control: str | None) -> None:
    hosts = Hosts(DATA, ALIAS, control)
    assert hosts.place_of(b"data.test") is Place.ANY
    refusal = hosts.refusal(Place.ALIAS, KEYS, "/v1/keys")
    assert isinstance(refusal, WrongHost) and refusal.location == f"{DATA}/v1/keys"


def test_each_host_refuses_what_another_serves_and_names_that_one() -> None:
    hosts = Hosts(DATA, ALIAS, CONTROL)
    redirect = hosts.refusal(Place.ALIAS, KEYS, "/v1/keys?limit=1")
    assert isinstance(redirect, WrongHost)
    assert redirect.location == f"{CONTROL}/v1/keys?limit=1"
    elsewhere = hosts.refusal(Place.DATA, KEYS, "/v1/keys")
    assert isinstance(elsewhere, NotFound) and CONTROL in (elsewhere.hint or "")
    elsewhere = hosts.refusal(Place.CONTROL, QUERY, "/v1/query")
    assert isinstance(elsewhere, NotFound) and DATA in (elsewhere.hint or "")


def test_each_host_serves_its_own_and_what_is_everybodys() -> None:
    hosts = Hosts(DATA, ALIAS, CONTROL)
    assert HEALTH.plane is Plane.BOTH
    for place in Place:
        assert hosts.refusal(place, HEALTH, "/health") is None
    assert hosts.refusal(Place.DATA, QUERY, "/v1/query") is None
    assert hosts.refusal(Place.ALIAS, QUERY, "/v1/query") is None
    assert hosts.refusal(Place.CONTROL, KEYS, "/v1/keys") is None
