"""The JavaScript client in Deno, Bun and workerd, which edge functions run in, from npm."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.dbapi.served import KEY, served
from tests.javascript.installed import packages_of
from tests.javascript.scripts import SCRIPTS, run_script, variables_of
from tests.web.contract.servers import Server, start

pytestmark = pytest.mark.nightly
COMMANDS = {"deno": ("deno", "run", "--allow-all"), "bun": ("bun",)}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packages_of("runtimes", tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("served")) as running:
        yield running


@pytest.fixture(params=COMMANDS)
def command(request: pytest.FixtureRequest, packages: Path) -> list[str]:
    """How a script is run."""
    name, *options = COMMANDS[request.param]
    program = packages / "node_modules" / ".bin" / name
    if not program.exists():
        pytest.skip(f"npm has no {name} for this machine")
    return [str(program), *options]


@pytest.mark.parametrize("script", ["values", "ways", "everywhere"])
def test_it_does_what_it_does_in_node(
    server: Server, command: list[str], script: str, tmp_path: Path
) -> None:
    variables = {**variables_of(server), "HOME": str(tmp_path)}
    assert run_script(SCRIPTS / f"{script}.mjs", variables, command=command) == ["ok"]


def test_what_breaks_loses_nothing_there(command: list[str], tmp_path: Path) -> None:
    servers = [start("own", tmp_path, {"QSERVER_API_KEY": KEY})]

    def restart() -> str:
        assert servers[-1].stop() == 0, servers[-1].output
        servers.append(start("own", tmp_path, {"QSERVER_API_KEY": KEY}))
        return str(servers[-1].port)

    try:
        variables = {**variables_of(servers[-1]), "HOME": str(tmp_path)}
        answers = {"restart": restart}
        said = run_script(SCRIPTS / "breaks.mjs", variables, answers, command=command)
        assert said == ["restart", "ok"]
    finally:
        with suppress(ProcessLookupError):
            servers[-1].kill()


def test_an_edge_function_does_what_a_program_does(
    server: Server, packages: Path, tmp_path: Path
) -> None:
    variables = {**variables_of(server), "HOME": str(tmp_path), "SCRIPTS": str(SCRIPTS)}
    said = run_script(packages / "edge.mjs", variables)
    assert said == ["values ok", "ways ok", "everywhere ok", "at once ok"]
