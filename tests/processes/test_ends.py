"""How several processes begin and end: signals, a folder or a port in use, too many deaths."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP, SIGTERM

import pytest
import trio

from tests.forked import Forked
from tests.patience import eventually
from tests.processes.machine import Machine, until
from tests.processes.planted import begin_for_ever, temporary_files_here
from tests.processes.wire import Lost, query

ROWS = 500_000  # more bytes than the buffers of two sockets hold
NO_CERTIFICATE = {"QSERVER_TLS_CERTIFICATE": "none.pem", "QSERVER_TLS_KEY": "none.pem"}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """Drains for an hour, if nobody is impatient."""
    made = Machine(tmp_path, {"QSERVER_DRAIN_TIMEOUT_S": "3600"}, prepare=None)
    yield made
    made.kill()


@pytest.mark.long
async def test_a_second_signal_ends_all_at_once(machine: Machine) -> None:
    await machine.start()
    sql = f"/*+ STREAM */ SELECT n, repeat('x', 100) AS x FROM generate_series(1, {ROWS}) AS n"
    async with machine.connected() as wire:
        await wire.begin([query(sql)])
        await wire.answering()  # and is not read: so it does not end
        machine.supervisor.send_signal(SIGTERM)
        await until(lambda: len(machine.members()) < machine.count, "none drains")
        assert machine.supervisor.poll() is None, "it waits for the stream"
        machine.supervisor.send_signal(SIGTERM)
        assert await machine.ended() == 0, machine.output
        with pytest.raises(Lost):
            await wire.receive()
    assert machine.bugs == []


async def test_a_second_server_on_the_folder_is_refused(machine: Machine) -> None:
    await machine.start()
    before = len(machine.output)
    second = Machine(machine.folder, prepare=None)
    second.launch()
    assert await second.ended() == 1
    said = machine.output[before:]
    assert "is in use by process" in said and "Traceback" not in said, said
    assert await machine.stop() == 0


async def test_a_bad_certificate_is_named_once(tmp_path: Path) -> None:
    machine = Machine(tmp_path, NO_CERTIFICATE, prepare=None)
    machine.launch()
    assert await machine.ended() == 1
    (said,) = [line for line in machine.output.splitlines() if "cannot use" in line]
    assert "none.pem" in said and "ended" not in machine.output, machine.output


async def test_a_port_in_use_is_named(machine: Machine) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", machine.port))
        taken.listen()
        machine.launch()
        assert await machine.ended() == 1
    said = machine.output
    assert str(machine.port) in said and "Traceback" not in said, said


@pytest.mark.long
async def test_too_many_deaths_are_no_accidents(machine: Machine) -> None:
    """Whichever these are: who begins while the first is away may end by itself."""
    await machine.start()

    def has_ended() -> bool:
        for process in machine.numbers().values():
            with suppress(ProcessLookupError):
                os.kill(process, SIGKILL)
        return machine.supervisor.poll() is not None

    await until(has_ended, "the supervisor goes on")
    assert await machine.ended() == 1
    gives_up = r"process \d ended .*, the last of 5 ends: giving up"  # ends are seen in any order
    assert re.search(gives_up, machine.output), machine.output
    assert len(re.findall(r"process \d ended", machine.output)) == 5, machine.output
    assert machine.bugs == []


async def test_a_process_that_begins_while_the_first_is_away_ends_when_it_is_told_to(
    machine: Machine,
) -> None:
    await machine.start()
    first = await machine.signal(0, SIGSTOP)
    await machine.kill_process(1)
    await machine.process(1)
    machine.supervisor.send_signal(SIGTERM)
    await until(lambda: machine.numbers().keys() == {0}, "one waits for the first")
    os.kill(first, SIGCONT)
    assert await machine.ended() == 0, machine.output
    assert machine.bugs == []


async def test_processes_that_have_hardly_begun_end_well(tmp_path: Path) -> None:
    machine = Machine(tmp_path, prepare=begin_for_ever)
    try:
        machine.launch()
        await until(lambda: len(machine.members()) == machine.count, "they do not begin")
        assert await machine.stop() == 0, machine.output
    finally:
        machine.kill()


@pytest.mark.long
async def test_processes_end_with_their_supervisor_and_leave_the_folder_free(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path, prepare=temporary_files_here)
    await machine.start()
    async with machine.connected() as wire:
        assert (await wire.query("CREATE TABLE t (a int)")).is_good
    machine.supervisor.send_signal(SIGKILL)
    await machine.ended()
    assert [*(tmp_path / "temporary").iterdir()] == []
    await machine.start()
    async with machine.connected() as wire:
        assert (await wire.query("SELECT count(*) AS n FROM t")).rows == [[0]]
    assert await machine.stop() == 0


@pytest.mark.long
async def test_processes_serve_while_their_supervisor_stands_still(machine: Machine) -> None:
    await machine.start()
    databases = await machine.make_databases(4)
    machine.supervisor.send_signal(SIGSTOP)
    for name in databases:
        async with machine.connected() as wire:
            assert (await wire.query("CREATE TABLE t (a int)", database=name)).is_good
    machine.supervisor.send_signal(SIGCONT)
    assert await machine.stop() == 0
    assert machine.bugs == []


@pytest.mark.long
async def test_the_number_of_processes_may_change_between_starts(machine: Machine) -> None:
    """Each has all databases and branches, whoever owned them, and writes them."""
    await machine.start(processes=2)
    databases = await machine.make_databases(6)
    async with machine.connected() as wire:
        for name in databases:
            assert (await wire.query("CREATE TABLE t (a int)", database=name)).is_good
            await wire.made("/v1/databases", name=f"{name}-twig", branch_of=name)
    assert await machine.stop() == 0
    for round_, processes in enumerate((3, 1, 2), start=1):
        await machine.start(processes=processes)
        async with machine.connected() as wire:
            for name in [*databases, *(f"{each}-twig" for each in databases)]:
                written = await wire.query("INSERT INTO t VALUES (1)", database=name)
                assert written.is_good, written.body
                found = await wire.query("SELECT count(*) AS n FROM t", database=name)
                assert found.rows == [[round_]], name
        assert await machine.stop() == 0
    assert machine.bugs == []


@pytest.mark.long
async def test_a_served_folder_is_copied_checked_and_restored(machine: Machine) -> None:
    """Everything acknowledged before the backup began is in it; commits go on meanwhile."""
    await machine.start()
    databases = await machine.make_databases(6)
    for name in databases:
        async with machine.connected() as wire:
            assert (await wire.query("CREATE TABLE t (a int)", database=name)).is_good
    written = dict.fromkeys(databases, 0)

    async def write(name: str) -> None:
        async with machine.connected() as wire:
            while True:
                answer = await wire.query("INSERT INTO t VALUES (1)", database=name)
                assert answer.is_good, answer.body
                written[name] += 1

    copy, restored = machine.folder / "copy", machine.folder / "restored"
    async with trio.open_nursery() as nursery:
        for name in databases:
            nursery.start_soon(write, name)
        await until(lambda: min(written.values()) > 5, "nothing is written")
        before = dict(written)
        await _run(machine.folder, "backup", "--data", str(machine.data), str(copy))
        after = dict(written)
        nursery.cancel_scope.cancel()
    assert all(after[name] > before[name] for name in databases), "commits went on"
    assert await machine.stop() == 0
    await _run(machine.folder, "check", "--data", str(copy))
    await _run(machine.folder, "restore", str(copy), "--data", str(restored))
    machine.data = restored
    await machine.start()
    async with machine.connected() as wire:
        for name in databases:
            ((found,),) = (await wire.query("SELECT count(*) AS n FROM t", database=name)).rows
            assert before[name] <= found <= after[name] + 1, name
    assert await machine.stop() == 0
    assert machine.bugs == []


async def _run(folder: Path, *arguments: str) -> None:
    """Run a command, which must succeed."""
    with (folder / "commands").open("ab") as output:
        process = Forked(arguments, folder, {"HOME": str(folder)}, output.fileno())
    await trio.to_thread.run_sync(
        eventually, lambda: process.poll() is not None, f"{arguments[0]} does not end"
    )
    assert process.poll() == 0, (folder / "commands").read_text()
