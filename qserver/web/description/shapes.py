"""The shapes of requests and answers, each declared once.

Requests are decoded into these classes, answers without rows are encoded from them, and the OpenAPI
description is generated from them, so the three cannot drift apart. `answers` writes answers with
rows, for speed; a test compares them with `QueryAnswer`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import NODEFAULT, UNSET, Meta, Struct, UnsetType, defstruct
from msgspec.structs import fields

from qserver.probes import Capability, Catalogue, ProbeResult
from qserver.web import fields as options
from qserver.web.service.storage_test import StorageReport
from qserver.workloads.measuring import BenchReport


class QueryRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """One statement and its options."""

    sql: options.Sql
    params: options.Params = None
    database: options.InDatabase = None
    format: options.Format = "objects"
    max_rows: options.MaxRows = None
    timeout_ms: options.TimeoutMs = None
    max_retries: options.MaxRetries = None
    max_affected: options.MaxAffected = None
    if_version: options.IfVersion = None
    dry_run: options.DryRun = False
    as_of: options.AsOf = None
    transaction: options.InTransaction = None
    min_version: options.MinVersion = None
    consistency: options.Consistency = "strong"
    max_age_ms: options.MaxAgeMs = None
    settings: options.Settings = None
    live: options.Live = False
    every_ms: options.EveryMs = None


class StatementRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """One statement of a transaction."""

    sql: options.Sql
    params: options.Params = None


class TransactionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Statements that are applied together or not at all."""

    statements: list[str | StatementRequest]
    database: options.InDatabase = None
    format: options.Format = "objects"
    max_rows: options.MaxRows = None
    timeout_ms: options.TimeoutMs = None
    max_retries: options.MaxRetries = None
    max_affected: options.MaxAffected = None
    if_version: options.IfVersion = None
    dry_run: options.DryRun = False
    as_of: options.AsOf = None
    transaction: options.InTransaction = None
    min_version: options.MinVersion = None
    consistency: options.Consistency = "strong"
    max_age_ms: options.MaxAgeMs = None
    settings: options.Settings = None
    branch: options.Branch = False


class OpenRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A transaction that stays open between requests."""

    database: options.InDatabase = None
    read_only: options.ReadOnly = None
    as_of: options.AsOf = None
    min_version: options.MinVersion = None
    idle_ms: options.IdleMs = None
    settings: options.Settings = None


class NoFields(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that has nothing to say."""


def _named(name: str, shape: type[Struct], *own: tuple[str, Any, Any]) -> type[Struct]:
    """A request of a key that can only run its statements: the options that it shares."""
    taken = {"sql", *NAMED_REFUSED, *(each[0] for each in own)}
    shared = [
        (each.name, each.type, each.default) for each in fields(shape) if each.name not in taken
    ]
    return defstruct(name, [*own, *shared], frozen=True, forbid_unknown_fields=True)


NAMED_REFUSED: Final = ("dry_run", "branch", "as_of", "settings")
"""Options that such a key may not send: they show more than the statement does, or change it."""


class NamedStatementRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A statement of the key, by its name."""

    statement: options.StatementName
    params: options.NamedParams = None


NamedQueryRequest: Final = _named(
    "NamedQueryRequest",
    QueryRequest,
    ("statement", options.StatementName, NODEFAULT),
    ("params", options.NamedParams, None),
)
NamedTransactionRequest: Final = _named(
    "NamedTransactionRequest",
    TransactionRequest,
    ("statements", list[NamedStatementRequest], NODEFAULT),
)


# --- answers of the data plane -------------------------------------------------------------------


class Timings(Struct, frozen=True):
    """Microseconds: since the last byte of the request, and of planning and execution alone."""

    total_us: int
    exec_us: int


class TransactionTimings(Timings, frozen=True):
    commit_us: int


class StatementAnswer(Struct, frozen=True):
    """The result of one statement of a transaction."""

    columns: list[str]
    rows: list[Any]
    affected_rows: int
    timings: Timings
    types: list[str]
    truncated: bool | UnsetType = UNSET


class DefinitionChange(Struct, frozen=True):
    """Statements that would create it as it was, and as it is; null: there is none."""

    before: list[str] | None
    after: list[str] | None


class RowChange(Struct, frozen=True):
    """A row before and after; `key` is null for a table without a primary key."""

    table: str
    op: Literal["insert", "update", "delete", "schema"]
    key: dict[str, Any] | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    statement: str | UnsetType = UNSET
    definition: DefinitionChange | UnsetType = UNSET


class FeedChange(RowChange, frozen=True, kw_only=True):
    """A change in the feed; `statement` made a change of schema."""

    version: int
    time: datetime


class ChangesAnswer(Struct, frozen=True):
    """Whole versions, in order; go on with `next` as `since`."""

    success: Literal[True]
    changes: list[FeedChange]
    next: int
    newest: int


class QueryAnswer(Struct, frozen=True):
    """The result of one statement."""

    success: Literal[True]
    columns: list[str]
    rows: list[Any]
    affected_rows: int
    timings: Timings
    types: list[str]
    version: int
    retries: int
    truncated: bool | UnsetType = UNSET
    diff: list[RowChange] | UnsetType = UNSET
    diff_truncated: bool | UnsetType = UNSET


class TransactionAnswer(Struct, frozen=True):
    """The results of a transaction, one for each statement."""

    success: Literal[True]
    results: list[StatementAnswer]
    affected_rows: int
    version: int
    retries: int
    timings: TransactionTimings
    diff: list[RowChange] | UnsetType = UNSET
    diff_truncated: bool | UnsetType = UNSET
    database: str | UnsetType = UNSET
    """The branch that has the changes, if one was asked for."""


class OpenTransaction(Struct, frozen=True):
    """An open transaction; `expires_at` is when it is gone if nobody uses it."""

    id: str
    database: str
    version: int
    read_only: bool
    created_at: datetime
    expires_at: datetime


class OpenTransactionRecord(OpenTransaction, frozen=True):
    """What it has done so far; `bytes` is what it holds in memory."""

    state: Literal["active", "failed"]
    statements: int
    rows_changed: int
    bytes: int


class OpenTransactionAnswer(Struct, frozen=True):
    success: Literal[True]
    transaction: OpenTransaction


class OpenTransactionRecordAnswer(Struct, frozen=True):
    success: Literal[True]
    transaction: OpenTransactionRecord


class CommitAnswer(Struct, frozen=True):
    """The version that the commit made; its timings end where the commit is sent."""

    success: Literal[True]
    version: int
    affected_rows: int
    timings: TransactionTimings


BULK: Final = list[dict[str, Any]]
"""Rows in bulk, if they come as JSON."""


class BulkAnswer(Struct, frozen=True):
    """`affected_rows` counts the rows that were inserted or updated, not those ignored."""

    success: Literal[True]
    affected_rows: int
    version: int
    timings: Timings


class ErrorObject(Struct, frozen=True):
    """The error: `code` is PostgreSQL's SQLSTATE, or QS… for an error that SQL does not have."""

    code: str
    name: str
    message: str
    detail: str | None
    hint: str | None
    position: int | None
    statement: int | None
    table: str | None
    column: str | None
    constraint: str | None
    retryable: bool
    request_id: str
    conflict: options.Conflict | UnsetType = UNSET
    row: int | UnsetType = UNSET
    where: str | UnsetType = UNSET


class ErrorAnswer(Struct, frozen=True):
    """The answer to any request that failed."""

    success: Literal[False]
    columns: list[str]
    rows: list[Any]
    affected_rows: int
    timings: Timings
    error: ErrorObject
    results: list[Any] | UnsetType = UNSET


# --- the control plane ---------------------------------------------------------------------------


class SessionRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """`database` and `scopes` narrow the session; without them it may do what its key may.

    `bind` gives parameters of the key's statements values that the session cannot change. One that
    the key wants bound is null only with `allow_null`.
    """

    database: str | None = None
    scopes: list[str] | None = None
    bind: dict[str, Any] | UnsetType = UNSET
    allow_null: bool = False


class DatabaseRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A new database; with `branch_of`, one that begins as that database is now, or was."""

    name: str
    branch_of: str | None = None
    as_of: int | str | None = None


class DatabaseChange(Struct, frozen=True, forbid_unknown_fields=True):
    """What is to change: the name, or that a branch is kept that would be deleted.

    `history`: how long older versions are kept, as seconds or as 30m, 24h, 7d. `replicas`: how many
    other processes may follow the database and answer reads of it; null: as the service does.
    """

    name: str | None = None
    keep: Literal[True] | None = None
    history: int | str | None = None
    replicas: int | UnsetType | None = UNSET


class KeyRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """A new key: by default with the scopes and databases of the key that makes it, no expiry.

    With `statements`, by name, it can run these and nothing else; every session of it has to bind
    the parameters in `bound`.
    """

    name: str
    scopes: list[str] | None = None
    databases: list[str] | None = None
    expires_in: Annotated[int, Meta(ge=1)] | None = None
    statements: dict[str, str] | None = None
    bound: list[str] | None = None


class KeyChange(Struct, frozen=True, forbid_unknown_fields=True):
    """A new name, fewer scopes or databases; for a key that has statements other ones, or other
    parameters that every session has to bind."""

    name: str | None = None
    scopes: list[str] | None = None
    databases: list[str] | None = None
    statements: dict[str, str] | None = None
    bound: list[str] | None = None


class RotateRequest(Struct, frozen=True, forbid_unknown_fields=True):
    grace_seconds: Annotated[int, Meta(ge=0)] = 0


class SignupRequest(Struct, frozen=True, forbid_unknown_fields=True):
    organization: str


class Session(Struct, frozen=True):
    """A token for 24 hours. Only the answer that creates it shows the token."""

    id: str
    token_type: Literal["Bearer"]
    expires_in: int
    expires_at: datetime
    created_at: datetime
    key_id: str
    scopes: list[str]
    database: str | None
    token: str | UnsetType = UNSET
    bind: dict[str, Any] | UnsetType = UNSET


class SessionAnswer(Struct, frozen=True):
    success: Literal[True]
    session: Session


class Database(Struct, frozen=True):
    id: str
    name: str
    organization: str
    state: str
    version: int
    tables: int
    rows: int
    size_bytes: int
    created_at: datetime
    branch_of: str | UnsetType = UNSET
    """The database that this one is a branch of: its name, or its id if it was deleted."""
    branch_version: int | UnsetType = UNSET
    """The last version that both have in common."""
    expires_at: datetime | UnsetType | None = UNSET
    """When a branch is deleted that nobody keeps; null: never."""
    history: int = 0
    """For how many seconds older versions are kept."""
    replicas: int | None = None
    """How many other processes may answer reads of it; null: as the service does."""


class DatabaseAnswer(Database, frozen=True):
    """The record of a database."""

    success: Literal[True] = True


class DatabasesAnswer(Struct, frozen=True):
    success: Literal[True]
    databases: list[Database]
    next_cursor: str | None


class Key(Struct, frozen=True):
    """An API key. Only the answer that creates it shows the secret."""

    id: str
    name: str
    prefix: str
    state: str
    scopes: list[str]
    databases: list[str] | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    statements: dict[str, str] | UnsetType = UNSET
    bound: list[str] | UnsetType = UNSET


class KeyAnswer(Key, frozen=True):
    """The record of a key; `key`, the secret, only in the answer that creates it."""

    success: Literal[True] = True
    key: str | UnsetType = UNSET


class KeysAnswer(Struct, frozen=True):
    success: Literal[True]
    keys: list[Key]
    next_cursor: str | None


# --- the service itself --------------------------------------------------------------------------


class BannerRoute(Struct, frozen=True):
    method: str
    path: str
    purpose: str


class Banner(Struct, frozen=True):
    service: str
    version: str
    api: list[str]
    routes: list[BannerRoute]
    docs: str
    openapi: str


class TableColumn(Struct, frozen=True):
    name: str
    type: str
    nullable: bool
    default: str | None
    primary_key: bool


class TableIndex(Struct, frozen=True):
    name: str
    columns: list[str]
    unique: bool


class TableForeignKey(Struct, frozen=True):
    name: str
    columns: list[str]
    references: str
    referenced_columns: list[str]
    on_delete: str
    on_update: str


class TableDescription(Struct, frozen=True):
    name: str
    columns: list[TableColumn]
    primary_key: list[str]
    indexes: list[TableIndex]
    foreign_keys: list[TableForeignKey]
    row_count: int


class TablesAnswer(Struct, frozen=True):
    success: Literal[True]
    database: str
    version: int
    tables: list[TableDescription]


class HealthAnswer(Struct, frozen=True):
    """One check for each part that can fail: "ok", or the problem."""

    success: bool
    status: Literal["ok", "fail"]
    version: str
    uptime_s: float
    checks: dict[str, str]


class ReadyAnswer(Struct, frozen=True):
    success: bool
    status: Literal["ready", "starting", "draining"]


class ResetAnswer(Struct, frozen=True):
    success: Literal[True]
    databases: int
    tables_dropped: int
    rows_deleted: int


class CapabilitiesAnswer(Catalogue, frozen=True, kw_only=True):
    """The feature matrix: each feature, and the probe that demonstrates it."""

    success: Literal[True] = True
    capabilities: list[Capability]


class ProbeAnswer(ProbeResult, frozen=True, kw_only=True):
    success: bool


class BenchAnswer(BenchReport, frozen=True, kw_only=True):
    success: Literal[True] = True


class StorageAnswer(StorageReport, frozen=True, kw_only=True):
    success: Literal[True] = True
