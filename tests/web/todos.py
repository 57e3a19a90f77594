"""A service with todos of two owners, and a key that can only run statements about one of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.http1.serving import Answer, Client
from tests.web.served import ADMIN, Served, message, serving

STATEMENTS = {
    "my_todos": "SELECT id, title FROM todos WHERE owner = :user AND done = :done ORDER BY id",
    "everything": "SELECT * FROM todos WHERE owner = :user ORDER BY id",
    "add": "INSERT INTO todos (id, owner, title) VALUES (:id, :user, :title) RETURNING id",
    "finish": "UPDATE todos SET done = true WHERE owner = :user AND id = :id",
    "count": "SELECT count(*) AS n FROM todos",
    "number": "SELECT id FROM todos WHERE owner = :user AND title::int = :n",
}
OWN, OTHER = 42, 7
SECRET = "of somebody else"
SETUP = (
    "CREATE TABLE todos (id INTEGER PRIMARY KEY, owner INTEGER NOT NULL, title TEXT NOT NULL"
    " CHECK (length(title) < 100), done BOOLEAN DEFAULT false,"
    " CONSTRAINT one UNIQUE (owner, title))",
    "INSERT INTO todos VALUES (1, 42, 'mine'), (2, 42, 'mine too'),"
    f" (3, 7, '{SECRET}'), (4, 7, '{SECRET} 2')",
    f"CREATE TABLE hidden AS SELECT '{SECRET}' AS word",
)


@dataclass
class Todos:
    served: Served
    client: Client
    key: str
    key_id: str
    session: str

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        **headers: str,
    ) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = message(method, path, body, token or self.session, named)
        return await self.client.ask(sent, method)

    async def run(self, name: str, params: Any = None, **more: Any) -> Any:
        """Run a statement of the bound session, and return its answer's body."""
        token = more.pop("token", None)
        body = {"statement": name, **more} | ({} if params is None else {"params": params})
        answer = await self.ask("POST", "/v1/query", body, token=token)
        return {"status": answer.status, **json.loads(answer.body)}

    async def session_of(self, bind: Mapping[str, Any] | None = None) -> str:
        answer = await self.ask(
            "POST", "/v1/session", {} if bind is None else {"bind": bind}, token=self.key
        )
        assert answer.status == 201, answer
        token = json.loads(answer.body)["session"]["token"]
        assert isinstance(token, str)
        return token


async def key_with(served: Served, statements: Mapping[str, str], **more: Any) -> Any:
    return await served.admin(
        "POST", "/v1/keys", {"name": "browsers", "statements": statements, **more}
    )


@asynccontextmanager
async def todos(**variables: str) -> AsyncIterator[Todos]:
    async with serving(**variables) as served, await served.client() as client:
        for sql in SETUP:
            answer = await client.ask(message("POST", "/v1/query", {"sql": sql}, ADMIN))
            assert json.loads(answer.body)["success"], answer
        made = await key_with(served, STATEMENTS, databases=["main"])
        opened = Todos(served, client, made["key"], made["id"], "")
        opened.session = await opened.session_of({"user": OWN})
        yield opened


def error_of(answer: Answer) -> Any:
    return json.loads(answer.body)["error"]
