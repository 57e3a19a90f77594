"""The options of requests: their bounds, which decoding checks, and what OpenAPI says of each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from qserver.limits import (
    ANSWER_ROWS_MAX,
    LIVE_EVERY_MS_MAX,
    LIVE_EVERY_MS_MIN,
    OPEN_IDLE_SECONDS_MAX,
    RETRIES_MAX,
    STATEMENT_SECONDS_MAX,
)

_Count = Annotated[int, Meta(ge=0)]

Sql = Annotated[str, Meta(description="One statement; a semicolon may follow it.")]
Params = Annotated[
    list[Any] | dict[str, Any] | None,
    Meta(description="Values of its parameters: an array for ? or $1, an object for :name."),
]
StatementName = Annotated[str, Meta(description="The name of a statement of the key.")]
NamedParams = Annotated[
    dict[str, Any] | None,
    Meta(description="Values of its parameters, by name; those that the session binds left out."),
]
InDatabase = Annotated[
    str | None,
    Meta(description="Which database; else the header X-Database, the key's own, or main."),
]
Format = Annotated[Literal["objects", "arrays"], Meta(description="The form of each row.")]
MaxRows = Annotated[
    Annotated[int, Meta(ge=0, le=ANSWER_ROWS_MAX)] | None,
    Meta(description="Give the first so many, and `truncated` if there were more."),
]
TimeoutMs = Annotated[
    Annotated[int, Meta(ge=1, le=int(STATEMENT_SECONDS_MAX * 1000))] | None,
    Meta(description="Give up after so long, with error 57014; how long that may be is a limit."),
]
MaxRetries = Annotated[
    Annotated[int, Meta(ge=0, le=RETRIES_MAX)] | None,
    Meta(description="Retries after conflicts, before an exclusive commit; 0: report the first."),
]
MaxAffected = Annotated[
    _Count | None,
    Meta(description="How many rows may change; more: error QS003, and nothing is applied."),
]
IfVersion = Annotated[
    _Count | None,
    Meta(description="Only if no table that it touches has changed since; else error 40001."),
]
DryRun = Annotated[
    bool, Meta(description="Answer with the results and `diff`, what would change; apply nothing.")
]
AsOf = Annotated[
    int | str | None,
    Meta(description="Read the database as it was: a version, or a time with its zone."),
]
MinVersion = Annotated[
    _Count | None,
    Meta(description="Read this version or a later one, and wait for it; else error QS025."),
]
Consistency = Annotated[
    Literal["strong", "session", "any"],
    Meta(
        description="See every acknowledged commit; what is near and has min_version; or what is"
        " near, which may lack the last commits."
    ),
]
MaxAgeMs = Annotated[
    _Count | None,
    Meta(description="So long ago a replica may have heard of its database for the last time."),
]
InTransaction = Annotated[
    str | None,
    Meta(description="The open transaction that it is part of; else the header X-Transaction."),
]
Settings = Annotated[
    dict[str, str | int | float | bool] | None,
    Meta(description="Settings of the session by their names, as SET takes them."),
]
Live = Annotated[bool, Meta(description="Stream the result, and then every change of it.")]
EveryMs = Annotated[
    Annotated[int, Meta(ge=LIVE_EVERY_MS_MIN, le=LIVE_EVERY_MS_MAX)] | None,
    Meta(description="The least time between two changes of a live query."),
]
Branch = Annotated[
    bool, Meta(description="Commit to a new branch of the database, which the answer names.")
]
ReadOnly = Annotated[
    bool | None, Meta(description="Refuse statements that write, with error 25006.")
]
IdleMs = Annotated[
    Annotated[int, Meta(ge=1, le=int(OPEN_IDLE_SECONDS_MAX * 1000))] | None,
    Meta(description="It ends when nobody has used it for so long."),
]
Conflict = Annotated[
    dict[str, Any],
    Meta(
        description="What no longer held.",
        extra_json_schema={
            "properties": {
                "reason": {"type": "string"},
                "table": {"type": ["string", "null"]},
                "key": {"type": ["object", "null"]},
                "range": {"type": ["object", "null"]},
                "statement": {"type": ["integer", "null"]},
                "read_version": {"type": ["integer", "null"]},
                "changed_version": {"type": ["integer", "null"]},
                "changed_by": {"type": ["object", "null"]},
            },
            "additionalProperties": False,
        },
    ),
]
