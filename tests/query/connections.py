"""A connection as a wire protocol has one: one session, and at most one open transaction."""

from __future__ import annotations

import re
from typing import Any, Final

from qserver.engine.work import run
from qserver.errors import QserverError
from qserver.query.open_transaction import OpenTransaction
from qserver.query.results import Result, RunOptions, Statement
from qserver.query.session import Session
from qserver.query.sql_database import SqlDatabase

_BEGIN: Final = re.compile(r"(begin|start\s+transaction)\b(.*)", re.IGNORECASE | re.DOTALL)
_COMMIT: Final = re.compile(r"(commit|end)\s*;?\s*", re.IGNORECASE)
_ROLLBACK: Final = re.compile(r"(rollback|abort)\s*;?\s*", re.IGNORECASE)
DONE: Final = Result((), (), [], 0, 0)


class Connection:
    def __init__(self, database: SqlDatabase, settings: dict[str, str] | None = None) -> None:
        self.database = database
        self.session = Session(settings)
        self.session.told = lambda: None
        self.transaction: OpenTransaction | None = None

    async def run(self, sql: str, parameters: Any = None) -> Result:
        begin = _BEGIN.fullmatch(sql)
        if begin is not None:
            return await self._begin(begin[2].strip())
        if _COMMIT.fullmatch(sql):
            return await self._commit()
        if _ROLLBACK.fullmatch(sql):
            self._release()
            return DONE
        statement = Statement(sql, parameters)
        if self.transaction is not None:
            done = await self.database.inside(self.transaction, [statement], RunOptions())
        else:
            done = await run(self.database.perform([statement], RunOptions(session=self.session)))
        result: Result = done.results[0]
        return result

    async def _begin(self, modes: str) -> Result:
        read_only = self.session.settings.read_only
        self.transaction = await self.database.open(read_only, session=self.session)
        if modes:
            await self.run(f"SET TRANSACTION {modes}")
        return DONE

    async def _commit(self) -> Result:
        transaction = self.transaction
        if transaction is None:
            return DONE
        try:
            if not transaction.failed:
                if transaction.transaction.changes_anything:
                    await run(self.database.committing(transaction, RunOptions()))
                else:
                    request = self.database.request_of(RunOptions())
                    await run(transaction.commit_nothing(request))
        finally:
            self._release()
        return DONE

    def _release(self) -> None:
        if self.transaction is not None:
            self.transaction.release()
            self.transaction = None


async def outcome(connection: Connection, sql: str, parameters: Any = None) -> Result | str:
    """The result of a statement, or the code of its error."""
    try:
        return await connection.run(sql, parameters)
    except QserverError as error:
        return error.code
