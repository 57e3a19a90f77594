"""A shell on the fake server, whose output is kept in two lists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from qserver.cli.shell.commands import run_command
from qserver.cli.shell.prompt import run_text
from qserver.cli.shell.shell import Shell
from qserver.client import Client
from tests.client.fake_server import KEY, Answer, FakeServer

TABLES: dict[str, Any] = {
    "success": True,
    "database": "main",
    "version": 3,
    "tables": [
        {
            "name": "users",
            "columns": [
                {
                    "name": "id",
                    "type": "integer",
                    "nullable": False,
                    "default": None,
                    "primary_key": True,
                },
                {
                    "name": "Full Name",
                    "type": "text",
                    "nullable": True,
                    "default": "'?'",
                    "primary_key": False,
                },
            ],
            "primary_key": ["id"],
            "indexes": [{"name": "users_name", "columns": ["Full Name"], "unique": True}],
            "foreign_keys": [],
            "row_count": 2,
        },
        {
            "name": "orders",
            "columns": [
                {
                    "name": "user_id",
                    "type": "integer",
                    "nullable": True,
                    "default": None,
                    "primary_key": False,
                }
            ],
            "primary_key": [],
            "indexes": [],
            "foreign_keys": [
                {
                    "name": "orders_user",
                    "columns": ["user_id"],
                    "references": "users",
                    "referenced_columns": ["id"],
                    "on_delete": "cascade",
                    "on_update": "no action",
                }
            ],
            "row_count": 0,
        },
    ],
}


@dataclass
class Talk:
    """A shell, what it wrote (results) and what it said (everything else)."""

    shell: Shell
    written: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)

    def run(self, text: str) -> str:
        """Type this; what was written and said because of it."""
        self.written.clear()
        self.said.clear()
        run_text(self.shell, text)
        return "".join(self.written + self.said)


@contextmanager
def talk(server: FakeServer) -> Iterator[Talk]:
    server.route("GET", "/tables", Answer(TABLES))
    written: list[str] = []
    said: list[str] = []
    pauses: list[float] = []
    with Client(server.url, KEY) as client:
        shell = Shell(client, run_command, written.append, said.append, pauses.append)
        yield Talk(shell, written, said, pauses)
        shell.output.redirect(None)
