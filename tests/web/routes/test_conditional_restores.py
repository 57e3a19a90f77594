"""A restore with `if_version` loses nothing that others commit in the same moment."""

from __future__ import annotations

import json
from typing import Any

import trio

from tests.web.served import Served, message, query, serving

RESTORE = "/v1/databases/main/restore"
ROUNDS = 30


async def ask(served: Served, data: bytes) -> Any:
    async with await served.client() as client:
        return json.loads((await client.ask(data)).body)


async def test_what_is_committed_meanwhile_stays() -> None:
    async with serving() as served:
        await ask(served, query("create table t (id int primary key)"))
        outcomes = set()
        for number in range(ROUNDS):
            over = trio.Event()
            made = await ask(served, query("insert into t values ($1)", [-1 - number]))
            version: int = made["version"]
            found: dict[str, Any] = {}

            async def commit(number: int = number, over: trio.Event = over) -> None:
                if number == ROUNDS - 1:
                    await over.wait()
                for _ in range(3 * number):  # sooner and later within the restore, and after it
                    await trio.lowlevel.checkpoint()
                assert (await ask(served, query("insert into t values ($1)", [number])))["success"]

            async def undo(
                found: dict[str, Any] = found, version: int = version, over: trio.Event = over
            ) -> None:
                asked = {"as_of": version - 1, "if_version": version}
                found.update(await ask(served, message("POST", RESTORE, asked)))
                over.set()

            async with trio.open_nursery() as nursery:
                nursery.start_soon(undo)
                nursery.start_soon(commit)
            outcomes.add(found["success"])
            if not found["success"]:
                assert found["error"]["code"] == "40001", found
                assert found["error"]["conflict"]["table"] == "t"
            left = await ask(served, query("select id from t where id >= 0 order by id"))
            assert [row["id"] for row in left["rows"]] == list(range(number + 1)), found
        assert outcomes == {True, False}


async def test_a_version_that_is_not_there_yet_is_refused() -> None:
    async with serving() as served:
        asked = {"as_of": 0, "if_version": 1000}
        async with await served.client() as client:
            answer = await client.ask(message("POST", RESTORE, asked))
        assert answer.status == 400, answer
