"""The requests of an open transaction need no task, and heads with its id are parsed once."""

from __future__ import annotations

import json

from tests.http1.serving import Answer, Client
from tests.web.served import (
    USES_UNTIL_KNOWN,
    Way,
    filled,
    message,
    opened_transaction,
    query,
    serving,
)


async def used(client: Client, name: str, number: int) -> list[Answer]:
    """Read a row, write it, commit."""
    inside = {"X_Transaction": name, "X_Request_Id": f"step-of-{name}"}
    return [
        await client.ask(query("select n from t where id = $1", [number], **inside)),
        await client.ask(query("update t set n = n + 1 where id = $1", [number], **inside)),
        await client.ask(message("POST", f"/v1/transaction/{name}/commit")),
    ]


async def test_no_request_of_a_short_open_transaction_needs_a_task() -> None:
    async with serving() as served, await served.client() as client:
        await filled(client)
        for number in range(1, USES_UNTIL_KNOWN):
            await used(client, await opened_transaction(client), number)
        kept, served.ways[:] = list(served.ways), []
        name = await opened_transaction(client)
        answers = await used(client, name, 1)
        assert [each.status for each in answers] == [200, 200, 200], answers
        assert Way.TASK not in served.ways, kept
        assert len(served.ways) == 4


async def test_each_request_is_told_and_logged_by_its_own_ids() -> None:
    async with serving() as served, await served.client() as client:
        await filled(client)
        names = [await opened_transaction(client) for _ in range(5)]
        served.log.clear()
        for at, name in enumerate(names, start=1):
            read, write, committed = await used(client, name, at)
            assert read.header("x-request-id") == write.header("x-request-id") == f"step-of-{name}"
            assert json.loads(read.body)["rows"] == [{"n": at % 7}]
            assert json.loads(committed.body)["affected_rows"] == 1
        for name in names:
            (line,) = [each for each in served.log if "/commit" in each and name in each]
            assert f"POST /v1/transaction/{name}/commit 200" in line
            shown = await client.ask(message("GET", f"/v1/transaction/{name}"))
            assert shown.status == 404 and name in json.loads(shown.body)["error"]["message"]
        wrong = await client.ask(message("POST", f"/v1/transaction/{names[0]}/comit"))
        assert wrong.status == 404 and names[0] in wrong.body.decode()


async def test_its_session_lasts_also_with_settings_of_its_own() -> None:
    async with serving() as served, await served.client() as client:
        settings = {"settings": {"timezone": "Asia/Tokyo"}}
        answer = await client.ask(message("POST", "/v1/transaction/open", settings))
        inside = {"X_Transaction": json.loads(answer.body)["transaction"]["id"]}
        for sql in ("prepare p as select current_setting('timezone') as zone", "execute p"):
            answer = await client.ask(query(sql, **inside))
        assert json.loads(answer.body)["rows"] == [{"zone": "Asia/Tokyo"}]
