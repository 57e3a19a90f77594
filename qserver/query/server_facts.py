"""What statements can ask of a database and its server beside what it holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(slots=True)
class ServerFacts:
    """They may change while plans are kept, so no plan holds any of them."""

    database: str = "main"
    """The name of the database, as of the last request for it."""
    started: float = 0.0
    """When the server began: seconds since 1970."""


NO_FACTS: Final = ServerFacts()
