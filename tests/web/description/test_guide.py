"""What the service tells programs about itself works as it is told: the guide, the examples."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from qserver.config import load
from qserver.web.description.catalogue import ROUTES
from qserver.web.description.examples import EXAMPLES
from qserver.web.description.openapi import describe
from tests.web.contract.servers import Server, start

KEY = "svc_k_guide_0123456789"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHANGES = frozenset({"timings", "size_bytes", "prefix", "token", "id", "key_id"})
"""What is another each time."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start("own", tmp_path_factory.mktemp("guide"), {"QSERVER_API_KEY": KEY})
    yield server
    assert server.stop() == 0, server.output


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_each_command_of_the_guide_works(server: Server, tmp_path: Path) -> None:
    answer = server.http.get("/llms.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    commands = [line for block in BLOCK.findall(answer.text) for line in block.splitlines()]
    answers = []
    for command in commands:
        environment = {"PATH": os.environ["PATH"], "URL": server.url, "KEY": KEY}
        done = subprocess.run(
            ["bash", "-c", command], env=environment, cwd=tmp_path, capture_output=True, check=True
        )
        answers.append(json.loads(done.stdout))
    lists = [each for each in answers if isinstance(each, list)]
    assert [rows[-1] for rows in lists] == [{"id": 4, "body": "a line"}]
    told = [each for each in answers if each not in lists]
    failed = [each["error"]["code"] for each in told if not each["success"]]
    assert failed == ["23505"] and len(answers) >= 10
    assert answers[0]["rows"] == [{"sum": 3}]
    assert answers[2]["diff"][0]["op"] == "delete" and answers[-1]["restored"] == 2


def test_the_guide_is_short_and_names_every_route(server: Server) -> None:
    text = server.http.get("/llms.txt").text
    assert len(text) < 10_000
    for route in ROUTES:
        assert f"- {route.method} {route.path}: " in text
    for path in re.findall(r"\]\(\$URL(/[^)]+)\)", text):
        assert server.http.get(path).status_code == 200


def test_each_example_is_answered_as_it_says(server: Server) -> None:
    document = describe(ROUTES, load({}))
    for (method, path), (asked, shown) in EXAMPLES.items():
        headers = {"Authorization": f"Bearer {KEY}"}
        answer = server.http.request(method, path, json=asked, headers=headers)
        operation = document["paths"][path][method.lower()]
        content = operation["responses"][str(answer.status_code)]["content"]["application/json"]
        schema = {**content["schema"], "components": document["components"]}
        validator = jsonschema_rs.Draft202012Validator(schema)
        validator.validate(shown)
        assert content["example"] == shown
        assert without_what_changes(answer.json()) == without_what_changes(shown)


def without_what_changes(value: Any) -> Any:
    if isinstance(value, list):
        return [without_what_changes(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_what_changes(each)
        for name, each in value.items()
        if name not in CHANGES and not name.endswith("_at")
    }


@pytest.mark.half
def test_the_description_is_valid() -> None:
    document = json.loads(json.dumps(describe(ROUTES, load({}))))
    assert [error.message for error in OpenAPIV31SpecValidator(document).iter_errors()] == []
    operations = [
        operation for methods in document["paths"].values() for operation in methods.values()
    ]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        for answer in operation["responses"].values():
            assert answer["description"]
