"""The web framework behind the other routes is loaded when the first of them is asked."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

import pytest

from tests.web.served import serving

PROGRAM: Final = """
import gc, sys, threading, trio
from tests.web.served import message, serving

threads = []

def note(event, arguments):
    if event == "import" and arguments[0] == "quart":
        threads.append(threading.current_thread() is threading.main_thread())

async def main():
    async with serving() as served:
        await served.admin("POST", "/v1/query", {"sql": "select 1"})
        print({"quart", "hypercorn"} & set(sys.modules), threads)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(served.admin, "GET", "/v1/keys")
        print("quart" in sys.modules, set(threads))
        print([type(each).__name__ for each in gc.get_objects()].count("QuartTrio"))

sys.addaudithook(note)
trio.run(main)
"""


@pytest.mark.long
def test_only_the_other_routes_load_the_framework_and_beside_the_loop() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True, check=True, timeout=240
    )
    assert done.stdout.splitlines() == ["set() []", "True {False}", "1"]


async def test_other_processes_are_answered_before_one_of_its_routes_was_asked() -> None:
    async with serving() as served:
        assert {"checks", "metrics", "state"} <= served.service.plane.owners.methods.keys()
