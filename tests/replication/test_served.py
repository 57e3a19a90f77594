"""`qserver serve` on a real log node: who may serve, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM
from socket import socket

import pytest

from tests.processes.machine import Machine, until
from tests.processes.wire import Lost, Wire
from tests.replication.campaign import settings_of
from tests.replication.nodes import Nodes, log_nodes


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with log_nodes(1, tmp_path_factory.mktemp("nodes")) as started:
        yield started


@pytest.fixture
def machines(nodes: Nodes, tmp_path: Path) -> Iterator[list[Machine]]:
    made = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        made.append(Machine(folder, settings_of(nodes, name), processes=1, prepare=None))
    yield made
    for machine in made:
        machine.kill()


async def rows(wire: Wire, sql: str) -> object:
    answer = await wire.query(sql)
    assert answer.is_good, answer.body
    return answer.rows


@pytest.mark.long
async def test_one_node_serves_until_another_takes_over(machines: list[Machine]) -> None:
    one, two = machines
    await one.start()
    async with one.connected() as wire:
        await rows(wire, "CREATE TABLE t (n int PRIMARY KEY)")
        await rows(wire, "INSERT INTO t SELECT n FROM generate_series(1, 1000) AS n")
        made = await wire.made("/v1/databases", name="copy", branch_of="main")
        two.launch()
        assert await two.ended() == 1
        assert "served by the node one" in two.output and "Traceback" not in two.output

        two.settings["QSERVER_TAKE_OVER"] = "1"
        await two.start()
        async with two.connected() as other:
            assert await rows(other, "SELECT count(*) FROM t") == [[1000]]
            await rows(other, "INSERT INTO t VALUES (0)")
            listed = (await other.ask("GET", "/v1/databases")).json["databases"]
            assert made["id"] in {each["id"] for each in listed}
        try:
            refused = await wire.query("INSERT INTO t VALUES (-1)")
            assert refused.status == 503, refused.body
        except Lost:
            pass  # it had heard of the other already
    assert await one.ended() == 1
    assert "served by the node two" in one.output and one.bugs == [], one.output
    assert await two.stop() == 0

    one.settings = {}
    one.launch()
    assert await one.ended() == 1
    assert "are copies of a replicated log" in one.output


async def test_a_server_that_waits_for_the_log_can_be_ended(machines: list[Machine]) -> None:
    one = machines[0]
    with socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        one.settings["QSERVER_LOG"] = f"nats://127.0.0.1:{nobody.getsockname()[1]}"
        one.launch()
        await until(lambda: (one.data / "qserver.lock").exists(), "it does not begin")
        one.supervisor.send_signal(SIGTERM)
        assert await one.ended() == 0, one.output


@pytest.mark.long
async def test_an_owner_that_was_stopped_finds_itself_replaced(machines: list[Machine]) -> None:
    one, two = machines
    two.settings["QSERVER_TAKE_OVER"] = one.settings["QSERVER_TAKE_OVER"] = "1"
    await one.start()
    async with one.connected() as wire, two.connected() as other:
        await rows(wire, "CREATE TABLE s (n int PRIMARY KEY)")
        one.supervisor.send_signal(SIGSTOP)
        await two.start()
        await rows(other, "INSERT INTO s VALUES (1)")
        one.supervisor.send_signal(SIGCONT)
        try:
            refused = await wire.query("INSERT INTO s VALUES (2)")
            assert refused.status == 503, refused.body
        except Lost:
            pass
        assert await rows(other, "SELECT n FROM s") == [[1]]
    assert await one.ended() == 1


def _cut(messages: list[bytes]) -> None:
    del messages[-1]


def _replace(messages: list[bytes]) -> None:
    """The last message again, with other bytes of the same length at its end."""
    messages[-1] = messages[-1][:-4] + b"\0" * 4


@pytest.mark.parametrize("damage", [_cut, _replace])
async def test_a_log_that_lost_or_replaced_a_message_is_refused(
    machines: list[Machine], nodes: Nodes, damage: Callable[[list[bytes]], None]
) -> None:
    one = machines[0]
    one.settings["QSERVER_TAKE_OVER"] = "1"
    await one.start()
    async with one.connected() as wire:
        made = await wire.made("/v1/databases", name=f"d{damage.__name__}")
        name = made["name"]
        assert (await wire.query("CREATE TABLE t (n int)", database=name)).is_good
        assert (await wire.query("INSERT INTO t VALUES (1)", database=name)).is_good
    one.kill()
    async with nodes.opened() as client:
        stream = await client.find_stream(made["id"])
        assert stream is not None
        messages = [each.data for each in await stream.read(1, 100)]
        damage(messages)
        await client.remove_stream(made["id"])
        stream = await client.open_stream(made["id"])
        for at, data in enumerate(messages):
            await stream.append(data, at)
    await one.start()
    async with one.connected() as wire:
        answer = await wire.query("SELECT n FROM t", database=name)
        assert answer.status == 503 and b"log" in answer.body, answer.body
        assert (await wire.query("SELECT 1 AS one")).is_good, "others are served"
        assert (await wire.ask("DELETE", f"/v1/databases/{name}")).status == 204
    assert await one.stop() == 0
