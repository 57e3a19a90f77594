"""Features that the database lacks, stated so that nobody has to find out.

`refused` is a statement that asks for the feature, if there is one. Tests check that the server
refuses it with PostgreSQL's code (0A000) and does not accept it without effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Absent:
    """A feature that the database lacks."""

    name: str
    category: str
    description: str
    refused: str | None = None


ABSENT: Final = (
    Absent(
        "copy",
        "statements",
        "COPY among other statements; it has a route of its own, /v1/copy.",
        "COPY t FROM STDIN",
    ),
    Absent(
        "stored_procedures",
        "definitions",
        "Functions and procedures of one's own.",
        "CREATE FUNCTION f() RETURNS INTEGER AS 'SELECT 1' LANGUAGE sql",
    ),
    Absent(
        "triggers",
        "definitions",
        "Triggers and rules.",
        "CREATE TRIGGER g AFTER INSERT ON t EXECUTE FUNCTION f()",
    ),
    Absent(
        "materialized_views",
        "definitions",
        "Materialized views.",
        "CREATE MATERIALIZED VIEW m AS SELECT 1",
    ),
    Absent("extensions", "definitions", "Extensions.", "CREATE EXTENSION hstore"),
    Absent("domains", "definitions", "Domains.", "CREATE DOMAIN d AS INTEGER"),
    Absent(
        "roles",
        "definitions",
        "Roles; API keys have scopes instead.",
        "CREATE ROLE reader",
    ),
    Absent("weaker_isolation", "isolation", "READ COMMITTED and its kin: all is serializable."),
    Absent("type_geometric", "types", "Geometric, network, range, bit string and XML types."),
    Absent("text_search", "types", "Text search with tsvector and tsquery."),
)
