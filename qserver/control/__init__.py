"""Organizations, databases, keys, sessions and rate limits: see `plane`."""

from __future__ import annotations

from qserver.control.databases import Databases, OpenDatabase, OpenDatabaseStatistics
from qserver.control.logs import Logs, MemoryLogs
from qserver.control.plane import ControlPlane
from qserver.control.rates import Allowance
from qserver.control.records import (
    SCOPES,
    DatabaseFacts,
    DatabaseRecord,
    Grant,
    KeyRecord,
    Organization,
    OrganizationOverview,
    ResetReport,
    SessionRecord,
)
from qserver.control.tiers import TIERS, Tier

__all__ = [
    "SCOPES",
    "TIERS",
    "Allowance",
    "ControlPlane",
    "DatabaseFacts",
    "DatabaseRecord",
    "Databases",
    "Grant",
    "KeyRecord",
    "Logs",
    "MemoryLogs",
    "OpenDatabase",
    "OpenDatabaseStatistics",
    "Organization",
    "OrganizationOverview",
    "SessionRecord",
    "Tier",
    "ResetReport",
]
