"""A statement on its way into a run."""

from __future__ import annotations

from typing import Any

import msgspec

from qserver.lexing.fingerprint import Parameterized
from qserver.query.plan_cache import CachedPlan
from qserver.sql import Given


class PreparedStatement(msgspec.Struct, eq=False):
    """A statement with its parameters, and what is known of it before it runs."""

    sql: str
    given: Given
    parameterized: Parameterized | None = None
    plan: CachedPlan | None = None
    """Used if the catalog is still the one that it was made for."""
    slots: Any = None
    """What the plan runs with, if that was made of the parameters already."""
