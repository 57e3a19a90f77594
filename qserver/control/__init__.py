"""Organizations, databases, keys, sessions and rate limits: see `plane`."""

from __future__ import annotations

from qserver.control.databases import (
    Databases as Databases,
    OpenDatabase as OpenDatabase,
    OpenDatabaseStatistics as OpenDatabaseStatistics,
)
from qserver.control.logs import Logs as Logs, MemoryLogs as MemoryLogs
from qserver.control.plane import ControlPlane as ControlPlane
from qserver.control.rates import Allowance as Allowance
from qserver.control.records import (
    SCOPES as SCOPES,
    DatabaseFacts as DatabaseFacts,
    DatabaseRecord as DatabaseRecord,
    Grant as Grant,
    KeyRecord as KeyRecord,
    Organization as Organization,
    OrganizationOverview as OrganizationOverview,
    ResetReport as ResetReport,
    SessionRecord as SessionRecord,
)
from qserver.control.tiers import TIERS as TIERS, Tier as Tier
