"""What statements of a session need of the run that they are a part of, see `statements`."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import msgspec

from qserver.query.catalog_names import CatalogNames
from qserver.query.cursor import StatementSteps
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Planner
from qserver.query.request import Request, RequestContext
from qserver.query.session import Session
from qserver.query.settings.values import Scope
from qserver.sql import Given, Parsed, ast
from qserver.storage.transaction import Transaction
from qserver.values.schema import Table
from qserver.values.types import SqlType


class Opening(msgspec.Struct, frozen=True):
    """A cursor that is to be opened, with its parameters."""

    parsed: Parsed
    given: Given
    declared: Mapping[int | str, SqlType] | None
    """The types of parameters that the client declares."""
    plan: CachedPlan | None = None
    table: Table | None = None
    """Of a cursor by which a table can be changed: its plan, and the table. The key of the table
    stands behind the columns of each row."""

    @property
    def node(self) -> ast.Declare:
        assert isinstance(self.parsed.statement, ast.Declare)
        return self.parsed.statement


Controls: TypeAlias = Callable[[ast.TransactionControl | Opening], StatementSteps]
"""What an open transaction does for SAVEPOINT, ROLLBACK TO, DECLARE and the like."""


class StatementPort(Protocol):
    controls: Controls | None
    planner: Planner
    transaction: Transaction
    request: Request
    session: Session | None
    context: RequestContext

    @property
    def scope(self) -> Scope | None: ...
    @property
    def names(self) -> CatalogNames: ...
    @property
    def path(self) -> tuple[str, ...]: ...
    @property
    def is_in_block(self) -> bool: ...
    @property
    def database(self) -> str: ...
    def warn_outside_block(self, what: str) -> None: ...
    def own_session(self) -> Session: ...
    def check_read(self) -> None: ...
    def check_define(self) -> None: ...
    def check_notify(self) -> None: ...
    def check_allowed(self, plan: CachedPlan, runs: bool = True) -> None: ...
    def making_way(self, changes: bool, steps: StatementSteps) -> StatementSteps: ...
    def run_plan(self, plan: CachedPlan, slots: Any) -> StatementSteps: ...
    def plan_inside(
        self,
        statement: ast.Statement,
        literals: Sequence[Any],
        declared: Mapping[int | str, SqlType] | None = ...,
        given: Given = None,
    ) -> Generator[Any, Any, CachedPlan]: ...
    def run_with(
        self,
        name: tuple[str, ...],
        statement: ast.Statement,
        values: Sequence[tuple[SqlType, Any]],
    ) -> Generator[Any, Any, int]: ...
