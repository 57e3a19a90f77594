"""How the service describes itself: the OpenAPI document is true, and the page draws it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from qserver.config import load
from qserver.web.cors import ALLOWED, EXPOSED
from qserver.web.description import shapes
from qserver.web.description.catalogue import ROUTES, routes_of
from qserver.web.description.openapi import describe
from qserver.web.description.schemas import SENT
from tests.web.contract.servers import Server, start

KEY = "svc_k_description_0123456789"
BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
# It cannot know that some texts are no SQL, some names no names.
NOT_CHECKED = "positive_data_acceptance"
# They end the key that the requests are made with, or take seconds each.
NOT_CALLED = r"^(/v1/keys/.*|/bench|/capabilities/.*|/v1/session.*)$"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {"QSERVER_API_KEY": KEY, "QSERVER_OPEN_SIGNUP": "1"}
    server = start("own", tmp_path_factory.mktemp("described"), settings)
    yield server
    assert server.stop() == 0, server.output
    assert "Traceback" not in server.output


def test_every_route_is_described_once() -> None:
    document = describe(ROUTES, load({}))
    described = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    assert described == {(route.method, route.path) for route in ROUTES}
    assert len({route.name for route in ROUTES}) == len(ROUTES)


def test_the_description_is_openapi() -> None:
    OPENAPI_31_VALIDATOR.validate(describe(ROUTES, load({})))


def test_every_option_and_every_header_is_explained() -> None:
    document = describe(ROUTES, load({}))
    schemas, headers = document["components"]["schemas"], document["components"]["headers"]
    for request in (shapes.QueryRequest, shapes.OpenRequest, shapes.NamedQueryRequest):
        for name, schema in schemas[request.__name__]["properties"].items():
            assert schema.get("description"), f"{request.__name__}.{name}"
    parameters = [
        each
        for methods in document["paths"].values()
        for operation in methods.values()
        for each in operation.get("parameters", ())
    ]
    assert all(each["in"] == "path" or each["description"] for each in parameters)
    taken = {each["name"].lower() for each in parameters if each["in"] == "header"}
    of_http = {"authorization", "content-type", "accept", "x-request-id"}
    assert taken == {each.strip() for each in ALLOWED.decode().split(",")} - of_http
    given = {name.lower() for name in headers}
    assert given >= {each.strip() for each in EXPOSED.decode().split(",")}


def test_a_key_that_ends_during_its_request_is_told_how_its_rate_stands() -> None:
    answers = describe(ROUTES, load({}))["paths"]["/v1/query"]["post"]["responses"]
    assert answers["401"]["headers"].keys() >= {"RateLimit", "RateLimit-Policy"}


def test_a_field_that_may_be_left_out_has_its_default_in_words() -> None:
    """With `default` a client of openapi-typescript has to send it."""
    shapes = describe(ROUTES, load({}))["components"]["schemas"]
    sent = [shape for name, shape in shapes.items() if name.endswith(SENT)]
    assert len(sent) > 10
    for shape in sent:
        assert not [each for each in shape["properties"].values() if "default" in each]
    told = shapes["QueryRequest"]["properties"]["format"]["description"]
    assert told == "The form of each row. By default objects."
    assert shapes["QueryRequest"]["required"] == ["sql"]
    assert shapes["KeyAnswer"]["properties"]["success"]["default"] is True


def test_every_reference_leads_somewhere() -> None:
    document = describe(ROUTES, load({}))

    def references(node: object) -> Iterator[str]:
        if isinstance(node, dict):
            yield from [node["$ref"]] if "$ref" in node else []
            for each in node.values():
                yield from references(each)
        elif isinstance(node, list):
            for each in node:
                yield from references(each)

    found = set(references(document))
    for each in found:
        _, _, kind, name = each.split("/")
        assert name in document["components"][kind], each
    assert len(found) > 20


def test_a_path_with_names_is_found_and_another_is_not() -> None:
    assert set(routes_of("/v1/keys/key_1")) == {"GET", "PATCH", "DELETE"}
    assert not routes_of("/v1/keys/key_1/more")
    assert not routes_of("/v1/queryx")


@pytest.mark.long
def test_the_service_keeps_to_its_description(server: Server, tmp_path: Path) -> None:
    """Schemathesis sends what the document allows, and much that it does not."""
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json"),
        *("--header", f"Authorization: Bearer {KEY}"),
        *("--exclude-checks", NOT_CHECKED, "--exclude-path-regex", NOT_CALLED),
        *("--phases", "coverage,fuzzing", "--max-examples", "5", "--seed", "1", "--no-color"),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert "Test cases" in done.stdout


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_the_page_draws_every_route_without_the_internet(server: Server, tmp_path: Path) -> None:
    assert BROWSER is not None
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    options += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    options += ["--virtual-time-budget=10000", "--dump-dom", f"{server.url}/docs"]
    done = subprocess.run([BROWSER, *options], capture_output=True, text=True, timeout=120)
    for route in ROUTES:
        assert f'<span class="path">{route.path}</span>' in done.stdout, done.stderr[-2000:]
