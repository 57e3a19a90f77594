"""Requests of the description that work as they are, with an answer; a test sends each of them.

They are in order: a later one may use what an earlier one has made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_TIMINGS: Final = {"total_us": 412, "exec_us": 96}

EXAMPLES: Final[Mapping[tuple[str, str], tuple[Mapping[str, Any], Mapping[str, Any]]]] = {
    ("POST", "/v1/databases"): (
        {"name": "example"},
        {
            "success": True,
            "id": "db_01m7ez",
            "name": "example",
            "organization": "default",
            "state": "ready",
            "version": 0,
            "tables": 0,
            "rows": 0,
            "size_bytes": 4096,
            "created_at": "2030-01-01T00:00:00Z",
            "history": 86400,
            "replicas": None,
        },
    ),
    ("POST", "/v1/transaction"): (
        {
            "statements": [
                "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
                {"sql": "INSERT INTO users VALUES ($1, $2)", "params": [1, "Ada"]},
            ],
            "database": "example",
        },
        {
            "success": True,
            "results": [
                {
                    "columns": [],
                    "rows": [],
                    "affected_rows": affected,
                    "timings": {"total_us": 41, "exec_us": 41},
                    "types": [],
                }
                for affected in (0, 1)
            ],
            "affected_rows": 1,
            "version": 1,
            "retries": 0,
            "timings": {**_TIMINGS, "commit_us": 270},
        },
    ),
    ("POST", "/v1/query"): (
        {
            "sql": "SELECT id, name FROM users WHERE id = $1",
            "params": [1],
            "database": "example",
        },
        {
            "success": True,
            "columns": ["id", "name"],
            "rows": [{"id": 1, "name": "Ada"}],
            "affected_rows": 0,
            "timings": _TIMINGS,
            "types": ["integer", "text"],
            "version": 1,
            "retries": 0,
        },
    ),
    ("POST", "/v1/transaction/open"): (
        {"database": "example", "read_only": True},
        {
            "success": True,
            "transaction": {
                "id": "txn_01m7ez_01m7f0",
                "database": "example",
                "version": 1,
                "read_only": True,
                "created_at": "2030-01-01T00:00:00Z",
                "expires_at": "2030-01-01T00:01:00Z",
            },
        },
    ),
    ("POST", "/v1/session"): (
        {"database": "example", "scopes": ["data:read"]},
        {
            "success": True,
            "session": {
                "id": "ses_01m7ex",
                "token_type": "Bearer",
                "expires_in": 86400,
                "expires_at": "2030-01-02T00:00:00Z",
                "created_at": "2030-01-01T00:00:00Z",
                "key_id": "key_01m7ex",
                "scopes": ["data:read"],
                "database": "example",
                "token": "svc_s_0123456789",
            },
        },
    ),
}
"""By method and path: the body of a request, and the answer to it."""
