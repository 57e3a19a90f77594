"""A real process that makes, changes and deletes branches, killed at any moment.

It prints what it is about to do and what was done. After each kill a plane is started on the same
folder: each branch that was made has its rows, or was being deleted, and nothing else is there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from qserver.durability.branch_log import read_base
from qserver.durability.data_folder import DataFolder
from qserver.durability.kept import decode_outline
from tests.control.planes import opened_plane
from tests.sampling import NIGHTLY

KILLS = 3 if NIGHTLY else 2
ROWS = 300

PROGRAM = """
import sys
from pathlib import Path
from random import Random
import trio
from qserver.control.branches import Origin
from qserver.durability.data_folder import DataFolder
from tests.control.planes import CHANCE, opened_plane

async def main(path, seed):
    chance = Random(seed)
    CHANCE.seed(f"of process {seed}")
    async with opened_plane(DataFolder(path), first_key="svc_k_0123456789abcdef") as opened:
        plane, grant = opened.plane, opened.grant
        there = [each.name for each in (await plane.records.list_page(grant))[0]]
        if seed == 0:
            await opened.run(grant, "create table t (id integer primary key, n integer)")
            await opened.run(
                grant, f"insert into t select n, 0 from generate_series(1, {sys.argv[3]}) n"
            )
        for number in range(10**6):
            name = f"b{seed}-{number}"
            print("make", name, flush=True)
            await plane.records.create(grant, name, Origin(chance.choice(there)))
            await opened.run(grant, f"update t set n = {seed * 10**6 + number}", name)
            print("made", name, seed * 10**6 + number, flush=True)
            there.append(name)
            with await plane.database(grant, chance.choice(there)) as used:
                await used.database.checkpoint()
            if len(there) > 4:
                gone = there.pop(chance.randrange(1, len(there)))
                print("delete", gone, flush=True)
                await plane.records.delete(grant, gone)
                print("deleted", gone, flush=True)

trio.run(main, Path(sys.argv[1]), int(sys.argv[2]))
"""


def run_and_kill(path: Path, seed: int, after: int) -> list[list[str]]:
    """What the process has said before it was killed."""
    said = []
    command = [sys.executable, "-c", PROGRAM, str(path), str(seed), str(ROWS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.split())
            if len(said) == after:
                process.kill()
    return said


@pytest.mark.long
async def test_a_kill_loses_no_branch_and_leaves_no_half_of_one(tmp_path: Path) -> None:
    chance = Random(4)
    values: dict[str, int] = {"main": 0}
    for kill in range(KILLS):
        said = run_and_kill(tmp_path, kill, chance.randrange(12, 28))
        unsure: dict[str, int | None] = {}
        for what, name, *more in said:
            if what == "made":
                values[name] = int(more[0])
            elif what == "delete":
                unsure[name] = values.pop(name)
        if said[-1][0] == "make":
            unsure[said[-1][1]] = None
        folder = DataFolder(tmp_path)
        async with opened_plane(folder) as opened:
            listed = {each.name for each in (await opened.plane.records.list_page(opened.grant))[0]}
            assert set(values) <= listed <= {*values, *unsure}
            for name in listed & set(values):
                rows = await opened.run(
                    opened.grant, "select count(*), max(n), min(n) from t", name
                )
                assert rows == [(ROWS, values[name], values[name])], name
        gone = {what[1] for what in said if what[0] == "deleted"}
        assert not gone & listed
        for name in listed - set(values):  # deleted halfway, or made and not said
            values[name] = -1
        await check_files(folder)
        values = {name: value for name, value in values.items() if value >= 0}


async def check_files(folder: DataFolder) -> None:
    """Each branch has its pin, each pin its branch, and no branch lacks its parent."""
    pins, bases = set(), set()
    for name in folder.names():
        async with folder.open(name) as log:
            base = read_base(log)
            if base is not None:
                bases.add((base.parent, name))
            pins |= {
                (name, branch)
                for version, outline in await log.load_outlines()
                for branch in decode_outline(version, outline).names
            }
    assert pins == bases
