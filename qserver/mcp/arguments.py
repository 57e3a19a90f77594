"""What each tool takes: decoded into these, and shown to clients as their JSON Schemas."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from qserver.limits import (
    MCP_DIFF_ROWS_MAX,
    MCP_ROWS_DEFAULT,
    MCP_ROWS_MAX,
    MCP_STATEMENTS_MAX,
    MCP_TIMEOUT_MS_DEFAULT,
    MCP_TIMEOUT_MS_MAX,
)

Database = Annotated[str | None, Meta(description="Which database; by default the server's own.")]
Sql = Annotated[str, Meta(min_length=1, description="One SQL statement in PostgreSQL's dialect.")]
Params = Annotated[
    list[Any] | dict[str, Any] | None,
    Meta(description="Values for $1 or ? as an array, for :name as an object. Always prefer them."),
]
Statements = Annotated[
    list[Annotated[str, Meta(min_length=1)]],
    Meta(
        min_length=1,
        max_length=MCP_STATEMENTS_MAX,
        description="SQL statements; they run in order, all or none.",
    ),
]
TimeoutMs = Annotated[
    int, Meta(ge=1, le=MCP_TIMEOUT_MS_MAX, description="Give up after so many milliseconds.")
]
MaxAffected = Annotated[
    Annotated[int, Meta(ge=0)] | None,
    Meta(description="Refuse to change more rows than this, and change nothing then."),
]
Moment = Annotated[
    int | str, Meta(description="A version, or a time with its zone: 2030-01-31T12:00:00Z.")
]


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a tool."""


class NoArguments(Arguments, frozen=True):
    """A tool that takes none."""


class DescribeSchema(Arguments, frozen=True):
    tables: Annotated[
        list[str] | None, Meta(description="Only these, by name; by default all.")
    ] = None
    database: Database = None


class Query(Arguments, frozen=True):
    sql: Sql
    params: Params = None
    database: Database = None
    max_rows: Annotated[
        int, Meta(ge=1, le=MCP_ROWS_MAX, description="Return at most so many rows.")
    ] = MCP_ROWS_DEFAULT
    timeout_ms: TimeoutMs = MCP_TIMEOUT_MS_DEFAULT
    as_of: Annotated[
        int | str | None, Meta(description="Read an older version, by its number or a time.")
    ] = None


class Explain(Arguments, frozen=True):
    sql: Sql
    params: Params = None
    database: Database = None
    analyze: Annotated[
        bool, Meta(description="Run the query and measure it; only for what reads.")
    ] = False
    timeout_ms: TimeoutMs = MCP_TIMEOUT_MS_DEFAULT


class History(Arguments, frozen=True):
    database: Database = None
    limit: Annotated[
        int, Meta(ge=1, le=MCP_ROWS_MAX, description="At most so many versions, newest first.")
    ] = 20


class Difference(Arguments, frozen=True):
    since: Annotated[
        int | str | None,
        Meta(
            description="The earlier version or time, of `from_database` if that is given: by"
            " default its newest. Otherwise required."
        ),
    ] = None
    until: Annotated[
        int | str | None, Meta(description="The later version or time; by default now.")
    ] = None
    tables: Annotated[list[str] | None, Meta(description="Only these tables.")] = None
    database: Database = None
    from_database: Annotated[
        str | None, Meta(description="Compare with this one: the parent of a branch, or a branch.")
    ] = None
    count: Annotated[
        bool, Meta(description="Only count the changes by table, however many there are.")
    ] = False
    limit: Annotated[
        int, Meta(ge=1, le=MCP_DIFF_ROWS_MAX, description="At most so many changes.")
    ] = MCP_DIFF_ROWS_MAX


class Change(Arguments, frozen=True):
    """Statements that are run together."""

    statements: Statements
    database: Database = None
    max_affected: MaxAffected = None
    timeout_ms: TimeoutMs = MCP_TIMEOUT_MS_DEFAULT


class Branch(Arguments, frozen=True):
    """A branch that `try_on_branch` has made."""

    branch: Annotated[str, Meta(min_length=1, description="The name of the branch.")]


class Undo(Arguments, frozen=True):
    version: Annotated[
        int, Meta(ge=1, description="The version that the change made, as its answer says.")
    ]
    database: Database = None
