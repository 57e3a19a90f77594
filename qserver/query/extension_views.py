"""Views that an extension of PostgreSQL brings, which every database has: `pg_stat_statements`.

They are found in `public`, where CREATE EXTENSION puts them, unless the database has a relation of
that name. No catalog lists them, so no dump has them.
"""

from __future__ import annotations

from typing import Final

from qserver.functions.statements import COLUMNS
from qserver.values.relations import View

_NAMES: Final = tuple(name for name, _ in COLUMNS)

EXTENSION_VIEWS: Final = {
    "pg_stat_statements": View(
        "pg_stat_statements", COLUMNS, _NAMES, "SELECT * FROM pg_stat_statements(true)"
    )
}
