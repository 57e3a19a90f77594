"""A prepared statement of a session; see `named_statements` for what makes and runs it."""

from __future__ import annotations

from datetime import datetime

import msgspec

from qserver.lexing.fingerprint import Parameterized
from qserver.query.plan_cache import CachedPlan
from qserver.query.planning import Prepared
from qserver.values.types import SqlType


class NamedStatement(msgspec.Struct, frozen=True, eq=False):
    name: str
    sql: str
    """As it was sent."""
    text: str
    """The statement itself."""
    parameterized: Parameterized | None
    found: CachedPlan | Prepared | None
    """What it was when it was prepared; None if the engine does not run it."""
    created: datetime
    from_sql: bool = True
    """Whether PREPARE has made it."""

    @property
    def parameters(self) -> tuple[SqlType, ...]:
        plan = self.found.inner if isinstance(self.found, Prepared) else self.found
        known = plan.parameters if isinstance(plan, CachedPlan) else None
        return () if known is None else known.types
