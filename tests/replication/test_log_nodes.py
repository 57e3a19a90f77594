"""Real log nodes: the contract of the port, and what happens to them.

They are stopped, killed, started anew, and set up in a way that would lose data.
"""

from __future__ import annotations

import json
import math
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest
import trio

from qserver.errors import LogFailed
from qserver.replication.nats.configuration import Tls
from qserver.replication.nats.connection import Server
from qserver.replication.nats.nodes import NatsNodes
from qserver.replication.port import Bounds, LogNodes, Refused, Stream, Unanswered
from tests.patience import PATIENCE_SECONDS
from tests.replication.nodes import TOKEN, NodeProcess, Nodes, log_nodes
from tests.replication.patient_nodes import PatientNodes, answered
from tests.replication.port_contract import PortContract, append_surely, check_race, race, read_all
from tests.sampling import SEED

TLS = Path(__file__).parents[1] / "http1"


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """For all tests here: to begin together takes them seconds. Who kills one starts it again."""
    with log_nodes(3, tmp_path_factory.mktemp("three")) as nodes:
        yield nodes


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """One node to which nothing happens."""
    with log_nodes(1, tmp_path_factory.mktemp("calm")) as nodes:
        yield nodes


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Nodes]:
    with log_nodes(1, tmp_path) as nodes:
        yield nodes


class TestOneNode(PortContract):
    @pytest.fixture
    async def candidate(self, calm: Nodes) -> AsyncIterator[LogNodes]:
        async with calm.opened() as nodes:
            yield nodes


class TestThreeNodes(PortContract):
    @pytest.fixture
    async def candidate(self, three: Nodes) -> AsyncIterator[LogNodes]:
        async with three.opened() as nodes:
            yield nodes


@asynccontextmanager
async def client(nodes: NatsNodes) -> AsyncIterator[NatsNodes]:
    async with trio.open_nursery() as nursery:
        await nursery.start(nodes.run)
        yield nodes
        nursery.cancel_scope.cancel()


async def failure_of(nodes: NatsNodes) -> LogFailed:
    with pytest.raises(LogFailed) as failed, trio.fail_after(PATIENCE_SECONDS):
        await nodes.run()
    return failed.value


# --- one node ------------------------------------------------------------------------------------


async def test_everything_is_there_after_a_kill(one: Nodes) -> None:
    (process,) = one.processes.values()
    async with one.opened() as client:
        nodes = PatientNodes(client)
        stream = await nodes.open_stream("a")
        for at in range(5):
            await stream.append(b"%d" % at, at)
        await stream.purge(5)
        revision = await nodes.set_value("key", b"1", 0)
        await nodes.set_value("gone", b"2", 0)
        await nodes.remove_value("gone")
        await nodes.save_part("base.1.1", b"part")
        process.kill()
        with pytest.raises(Unanswered):
            await stream.stream.append(b"5", 5)
        process.start()
        assert await append_surely(stream, b"5", 5)
        assert await stream.bounds() == Bounds(5, 6)
        assert [each.data for each in await read_all(stream, 5, 6)] == [b"4", b"5"]
        assert {key: each.revision for key, each in (await nodes.values("")).items()} == {
            "key": revision
        }
        assert await nodes.set_value("key", b"3", revision) > revision + 1
        assert await nodes.load_part("base.1.1") == b"part"


@pytest.mark.long
async def test_a_lost_answer_may_have_been_applied(one: Nodes) -> None:
    """The node stands still between the message and its answer, and goes on later."""
    (process,) = one.processes.values()
    async with one.opened() as nodes:
        stream = await PatientNodes(nodes).open_stream("a")
        assert await stream.append(b"a", 0) == 1
        process.stop()
        with pytest.raises(Unanswered):
            await stream.stream.append(b"b", 1)
        process.continue_()
        assert await append_surely(stream, b"b", 1)
        assert [each.data for each in await read_all(stream, 1, 2)] == [b"a", b"b"]
        with pytest.raises(Refused) as refused:
            await stream.append(b"b", 1)
        assert refused.value.last == 2


async def test_a_wrong_token_is_refused(calm: Nodes) -> None:
    failure = await failure_of(NatsNodes(calm.servers, copies=1, token="another-one"))
    assert "Authorization Violation" in failure.message
    assert "QSERVER_LOG_TOKEN" in (failure.hint or "")


async def test_a_node_that_does_not_sync_is_refused(one: Nodes) -> None:
    (process,) = one.processes.values()
    process.kill()
    process.start(sync="2m")
    failure = await failure_of(NatsNodes(one.servers, copies=1, token=TOKEN))
    assert failure.message == "the log node n1 acknowledges messages before they are synced"
    assert "sync_interval: always" in (failure.hint or "")


async def test_a_node_that_may_not_be_asked_is_refused(one: Nodes) -> None:
    (process,) = one.processes.values()
    process.kill()
    process.start(accounts=False)
    failure = await failure_of(NatsNodes(one.servers, copies=1, token=TOKEN))
    assert "does not say whether log nodes sync" in failure.message
    assert "qserver log-config" in (failure.hint or "")


@pytest.mark.long
async def test_messages_go_through_tls(tmp_path: Path) -> None:
    certificate, key = str(TLS / "localhost.pem"), str(TLS / "localhost.key.pem")
    with log_nodes(1, tmp_path, Tls(certificate, key, certificate)) as nodes:
        servers = [Server("localhost", server.port, True) for server in nodes.servers]
        context = ssl.create_default_context(cafile=certificate)
        async with client(NatsNodes(servers, copies=1, token=TOKEN, tls=context)) as secure:
            stream = await PatientNodes(secure).open_stream("a")
            assert await stream.append(b"x" * 3_000_000, 0) == 1
            assert [len(each.data) for each in await read_all(stream, 1, 1)] == [3_000_000]
        failure = await failure_of(NatsNodes(nodes.servers, copies=1, token=TOKEN))
        assert "speaks TLS only" in failure.message
        failure = await failure_of(NatsNodes(servers, copies=1, token=TOKEN))
        assert "certificate verify failed" in failure.message


@pytest.mark.parametrize(
    ("count", "are_watched"),
    [(1, False), (1, True), pytest.param(3, False, marks=pytest.mark.nightly)],
)
async def test_nodes_that_are_full_go_on_when_there_is_room_again(
    tmp_path: Path, count: int, are_watched: bool
) -> None:
    with log_nodes(count, tmp_path, bytes_max=4_000_000) as full:
        async with full.opened() as client:
            nodes = PatientNodes(client)
            stream = await nodes.open_stream("a")
            last = 0
            with pytest.raises(LogFailed) as failed:
                for last in range(1000):
                    await stream.append(b"%d" % last + b"x" * 100_000, last)
                    if are_watched:
                        await answered(client.check)
            assert "--data-bytes-max" in (failed.value.hint or "")
            assert last > 10
            if are_watched:  # there is room for what makes room
                assert failed.value.message.startswith("log nodes store")
                await nodes.set_value("manifest", b"", 0)
                await nodes.save_part("base.1.1", b"part")
            else:
                assert "resource limits exceeded" in failed.value.message
            await stream.purge(last - 1)
            with trio.fail_after(PATIENCE_SECONDS):
                while not await is_appended(client, stream, b"again", last):
                    pass
            assert [each.data for each in await read_all(stream, last + 1, last + 1)] == [b"again"]


async def is_appended(client: NatsNodes, stream: Stream, data: bytes, last: int) -> bool:
    """Nodes tell each other how much they store when some time has passed."""
    await answered(client.check)
    try:
        return await append_surely(stream, data, last)
    except LogFailed:
        await trio.sleep(0.01)
        return False


# --- three nodes ---------------------------------------------------------------------------------


async def leader_of(nodes: NatsNodes, stream: Stream) -> str:
    """The name of the node that leads a stream."""
    subject = f"$JS.API.STREAM.INFO.{stream.name}"
    with trio.fail_after(PATIENCE_SECONDS):
        while True:
            try:
                (reply,) = await nodes._connection.ask(subject, b"", 5.0)
            except Unanswered:
                continue
            leader = json.loads(reply.payload).get("cluster", {}).get("leader")
            if isinstance(leader, str):
                return leader


async def until_known(nodes: NatsNodes, stream: Stream, refused: str | None) -> None:
    """Ask how the nodes are set up, as `run` does at times, until one is refused, or none."""
    found: str | None = "nothing yet"
    with trio.fail_after(PATIENCE_SECONDS):
        while found != refused:
            try:
                await nodes.check()
                await stream.bounds()
            except Unanswered:
                continue
            except LogFailed as failure:
                found = failure.message
            else:
                found = None


@pytest.mark.long
async def test_a_node_that_is_set_up_anew_is_refused_while_it_does_not_sync(
    three: Nodes,
) -> None:
    async with three.opened() as nodes:
        stream = (await PatientNodes(nodes).open_stream("set-up")).stream
        assert await append_surely(stream, b"a", 0)
        leader = await leader_of(nodes, stream)
        process = next(each for name, each in three.processes.items() if name != leader)
        refused = f"the log node {process.name} acknowledges messages before they are synced"
        process.kill()
        await until_known(nodes, stream, None)
        process.start(sync="2m")
        await until_known(nodes, stream, refused)
        with pytest.raises(LogFailed, match=refused):
            await stream.append(b"b", 1)
        process.kill()
        process.start()
        await until_known(nodes, stream, None)
        assert await append_surely(stream, b"b", 1)


Fault = Callable[[Nodes, NatsNodes, Stream], Awaitable[None]]


async def step_down(three: Nodes, client: NatsNodes, stream: Stream) -> None:
    subject = f"$JS.API.STREAM.LEADER.STEPDOWN.{stream.name}"
    await client._connection.ask(subject, b"", PATIENCE_SECONDS)


async def kill_leader(three: Nodes, client: NatsNodes, stream: Stream) -> None:
    await _kill_for_a_while(three.processes[await leader_of(client, stream)])


async def kill_other(three: Nodes, client: NatsNodes, stream: Stream) -> None:
    leader = await leader_of(client, stream)
    others = (each for name, each in three.processes.items() if name != leader)
    await _kill_for_a_while(next(others))


async def _kill_for_a_while(process: NodeProcess) -> None:
    process.kill()
    await trio.sleep(1)
    process.start()


async def stop_leader(three: Nodes, client: NatsNodes, stream: Stream) -> None:
    process = three.processes[await leader_of(client, stream)]
    process.stop()
    await trio.sleep(12)
    process.continue_()


async def kill_majority(three: Nodes, client: NatsNodes, stream: Stream) -> None:
    processes = list(three.processes.values())[:2]
    for process in processes:
        process.kill()
    await trio.sleep(3)
    for process in processes:
        process.start()


async def kill_all(three: Nodes, client: NatsNodes, stream: Stream) -> None:
    for process in three.processes.values():
        process.kill()
    for process in three.processes.values():
        process.start()


FAULTS: list[Fault] = [step_down, kill_leader, kill_other, stop_leader, kill_majority, kill_all]


async def race_beside(three: Nodes, name: str, faults: list[Fault], after: int) -> None:
    """Let three clients write to one stream while faults happen; then some more."""
    acknowledged = 0
    until = math.inf
    progress = trio.lowlevel.ParkingLot()

    def is_enough(done: dict[int, bytes]) -> bool:
        nonlocal acknowledged
        acknowledged = len(done)
        progress.unpark_all()
        return acknowledged >= until

    async with three.opened() as first, three.opened() as second, three.opened() as third:
        clients = [PatientNodes(each) for each in (first, second, third)]
        streams = [(await each.open_stream(name)).stream for each in clients]

        async def fail() -> None:
            nonlocal until
            for fault in faults:
                enough = acknowledged + after
                while acknowledged < enough:
                    await progress.park()
                await fault(three, third, streams[2])
            until = acknowledged + after

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail)
            await check_race(streams[0], await race(streams, is_enough))


@pytest.mark.long
async def test_another_leader_loses_and_forks_nothing(three: Nodes) -> None:
    await race_beside(three, "led", [step_down], after=30)


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_loses_and_forks_nothing(three: Nodes, fault: Fault) -> None:
    await race_beside(three, fault.__name__, [fault] * 3, after=200)


@pytest.mark.nightly
async def test_many_faults_lose_and_fork_nothing(three: Nodes) -> None:
    await race_beside(three, "many", Random(SEED).choices(FAULTS, k=12), after=100)


@pytest.mark.long
async def test_copies_follow_the_setting(three: Nodes) -> None:
    async with three.opened(copies=1) as nodes:
        stream = await PatientNodes(nodes).open_stream("copies")
        assert await append_surely(stream, b"a", 0)
    async with three.opened(copies=3) as nodes:
        stream = await PatientNodes(nodes).open_stream("copies")
        assert await append_surely(stream, b"b", 1)
        assert [each.data for each in await read_all(stream, 1, 2)] == [b"a", b"b"]
        found = await answered(lambda: nodes._calls.info("copies"))
        assert found.config == nodes._stream("copies").settings(3)
        await stream.bounds()
        assert stream.leader in three.processes
