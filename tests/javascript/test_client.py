"""The JavaScript client in Node, against a real server; its scripts are in `client/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests.dbapi.served import KEY, served
from tests.javascript.scripts import CLIENT, ROOT, SCRIPTS, linked, run_script, variables_of
from tests.web.contract.servers import Server, start

EXAMPLE: Final = re.compile(r"^```js\n(.*?)^```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
"""A program, and what it prints."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.mark.half
def test_values_come_back_as_they_were_sent(server: Server) -> None:
    assert run_script(SCRIPTS / "values.mjs", variables_of(server)) == ["ok"]


@pytest.mark.long
def test_all_ways_to_ask_do_what_they_say(server: Server) -> None:
    assert run_script(SCRIPTS / "ways.mjs", variables_of(server)) == ["ok"]


@pytest.mark.long
def test_what_every_runtime_has_to_do_is_done(server: Server) -> None:
    assert run_script(SCRIPTS / "everywhere.mjs", variables_of(server)) == ["ok"]


@pytest.mark.long
def test_what_breaks_loses_nothing_and_applies_nothing_twice(tmp_path: Path) -> None:
    settings = {"QSERVER_API_KEY": KEY}
    servers = [start("own", tmp_path, settings)]

    def restart() -> str:
        assert servers[-1].stop() == 0, servers[-1].output
        servers.append(start("own", tmp_path, settings))
        return str(servers[-1].port)

    try:
        variables = variables_of(servers[-1])
        said = run_script(SCRIPTS / "breaks.mjs", variables, {"restart": restart})
        assert said == ["restart", "ok"]
        assert servers[-1].stop() == 0, servers[-1].output
    finally:
        with suppress(ProcessLookupError):
            servers[-1].kill()


@pytest.mark.half
@pytest.mark.parametrize("page", [ROOT / "docs" / "javascript.md", CLIENT / "README.md"])
def test_the_programs_of_a_page_print_what_it_says(
    server: Server, page: Path, tmp_path: Path
) -> None:
    examples = EXAMPLE.findall(page.read_text(encoding="utf-8"))
    assert examples
    variables = variables_of(server)
    program = linked(tmp_path) / "program.mjs"
    for text, shown in examples:
        program.write_text(text, encoding="utf-8")
        assert run_script(program, variables) == shown.splitlines(), text
